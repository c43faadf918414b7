//! An internal client on a virtual cell: text lines become calls of the core's client and verbs.
//!
//! The core's internal client has no wire, so a line stands for each call; its frames are the
//! core's own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use imori_core::authorize::Identity;
use imori_core::broker::{self, Actor, GetOptions, Revoked};
use imori_core::confirm::{Confirm, Level};
use imori_core::delivery::Outcome;
use imori_core::error::BrokerError;
use imori_core::id::{ConnectionId, ReaderId, VhostId};
use imori_core::inbound::{Accept, Inbound, Intake, Performed, Phase, Taken, Unread};
use imori_core::internal::{Client, IncomingMessage, OutgoingMessage, Published};
use imori_core::message::{Address, Property, TOPIC_EXCHANGE, Value};
use imori_core::name::Name;
use imori_core::outbound::{Encoder, SessionId};
use imori_core::queue::Got;
use imori_core::route::{Arguments, BindingKey, ExchangeKind, Settings, Syntax};
use imori_core::time::Time;
use imori_core::turn::{Budget, Peer};
use imori_core::world::World;

use super::board::{Board, PARKED_BYTES_MAX};
use crate::message_text::{body, shared_name};
use crate::planted::Bug;

/// The first number for subscriptions of single gets; the core's client never counts this far.
const FIRST_OF_GETS: u64 = 1 << 32;

/// The credit that a consumer gets under a planted bug.
const UNCHARGED: u32 = 1_000;

/// An internal client, as its cell serves it.
#[derive(Debug)]
pub(crate) struct Internal {
    client: Client,
    intake: Intake,
    board: Arc<Board>,
    is_closed: bool,
    readers: BTreeMap<String, ReaderId>,
    /// Subscriptions and requests so far, counted like the core does.
    subscriptions: u64,
    gets: u64,
}

impl Accept for Internal {
    type Settings = Board;

    fn new(board: Arc<Board>, id: ConnectionId, peer: Peer, now: Time) -> Internal {
        let mut intake = Intake::new(peer, Duration::from_secs(1), PARKED_BYTES_MAX, now);
        intake.reading.logged_in();
        Internal {
            client: Client::new(Identity::broker(), id, VhostId(0)),
            intake,
            board,
            is_closed: false,
            readers: BTreeMap::new(),
            subscriptions: 0,
            gets: FIRST_OF_GETS,
        }
    }

    fn encoder(_: &Board) -> Box<dyn Encoder> {
        Client::encoder()
    }
}

impl Inbound for Internal {
    type Scratch = ();

    fn intake(&self) -> &Intake {
        &self.intake
    }

    fn intake_mut(&mut self) -> &mut Intake {
        &mut self.intake
    }

    fn actor(&self) -> Actor<'_> {
        self.client.actor()
    }

    fn phase(&self) -> Phase {
        if self.is_closed { Phase::Closed } else { Phase::Open }
    }

    fn close(&mut self) {
        self.is_closed = true;
        self.intake.parking.clear();
    }

    fn set_identity(&mut self, identity: Identity) {
        self.client.set_identity(identity);
    }

    fn readers_revoked<W: World>(&mut self, _: &W, revoked: Vec<Revoked>) {
        self.readers.retain(|_, reader| revoked.iter().all(|revoked| revoked.reader != *reader));
    }

    fn is_logged_in(&self) -> bool {
        true
    }

    fn take<W: World>(&mut self, world: &W, _: &mut (), unread: Unread<'_>, budget: &mut Budget) -> Taken {
        let Some(len) = unread.bytes().iter().position(|byte| *byte == b'\n') else {
            return Taken::Incomplete { frame_bytes: None };
        };
        let line = unread.bytes().get(..len).unwrap_or_default();
        budget.spend(1, 0, None);
        let is_publish = line.starts_with(b"publish");
        let must_wait = self.has_parked() || is_publish && self.must_wait(world);
        if must_wait {
            let line = self.settle_ahead(world, line);
            line.into_iter().for_each(|line| self.intake.parking.push(SessionId::FIRST, line, world.gauge()));
        } else if self.perform(world, line) == Performed::Held {
            self.intake.parking.wait_for_queue(SessionId::FIRST, world.gauge());
            self.intake.parking.push(SessionId::FIRST, line.into(), world.gauge());
        }
        Taken::Bytes(len + 1)
    }

    fn replay<W: World>(&mut self, world: &W, _: &mut (), line: &[u8], _: &mut Budget) -> Performed {
        self.perform(world, line)
    }
}

impl Internal {
    /// Settles at once even if commands are parked, as that may free memory. Returns the part of
    /// the command that must wait its turn.
    fn settle_ahead<W: World>(&mut self, world: &W, line: &[u8]) -> Option<Box<[u8]>> {
        let text = String::from_utf8_lossy(line);
        match *text.split(' ').collect::<Vec<_>>() {
            ["settle", number, outcome, confirm] => {
                self.settle(world, number, outcome);
                (confirm != "-").then(|| format!("confirm {confirm}").into_bytes().into())
            }
            _ => Some(line.into()),
        }
    }

    fn perform<W: World>(&mut self, world: &W, line: &[u8]) -> Performed {
        let text = String::from_utf8_lossy(line);
        let fields: Vec<&str> = text.split(' ').collect();
        let done = match *fields {
            ["subscribe", id, pattern, confirm] => self.subscribe(world, id, pattern, confirm),
            ["consume", id, queue, credit, confirm] => self.consume(world, id, queue, credit, confirm),
            ["cancel", id, confirm] => {
                let reader = self.readers.remove(id);
                reader.into_iter().for_each(|reader| broker::cancel(world, &self.client.actor(), reader));
                self.confirm_all(world, confirm);
                Ok(Performed::Done)
            }
            ["publish", ..] => Ok(self.publish(world, &fields)),
            ["settle", number, outcome, confirm] => {
                self.settle(world, number, outcome);
                self.confirm_all(world, confirm);
                Ok(Performed::Done)
            }
            ["confirm", confirm] => {
                self.confirm_all(world, confirm);
                Ok(Performed::Done)
            }
            ["purge", queue, confirm] => self.purge(world, queue, confirm),
            ["get", id, queue, confirm] => self.get(world, id, queue, confirm),
            ["route", queue, subject, kind, confirm] => self.route(world, (queue, subject), kind, confirm),
            ["unroute", queue, subject, kind, place, confirm] => {
                self.unroute(world, (queue, subject), (kind, place), confirm)
            }
            ["look", queue, confirm] => {
                let look = broker::look_up_queue(world, &self.client.actor(), queue.as_bytes());
                look.map(|look| {
                    self.board.count(number(confirm), look.ready);
                    self.confirm_all(world, confirm);
                    Performed::Done
                })
            }
            _ => {
                self.board.note_fault(format!("there is no command `{text}`"));
                Ok(Performed::Done)
            }
        };
        done.unwrap_or_else(|error| {
            self.board.note_fault(format!("`{text}` is refused: {error}"));
            Performed::Done
        })
    }

    /// Confirms a command by its name, if it has one.
    fn confirm<W: World>(&self, world: &W, name: &str, confirm: Confirm) {
        if name != "-" {
            self.client.confirm(world, confirm, number(name));
        }
    }

    /// Confirms a command once all records so far are durable.
    fn confirm_all<W: World>(&self, world: &W, name: &str) {
        self.confirm(world, name, Confirm::of(Level::Disk, world.appended()));
    }

    fn settle<W: World>(&mut self, world: &W, delivery: &str, outcome: &str) {
        let outcome = match outcome {
            "accept" => Outcome::Accept,
            "reject" => Outcome::Reject,
            _ => Outcome::Release { failed: true },
        };
        if let Err(error) = self.client.settle(world, number(delivery), outcome) {
            self.board.note_fault(format!("delivery {delivery} cannot be settled: {error}"));
        }
    }

    fn subscribe<W: World>(
        &mut self,
        world: &W,
        id: &str,
        pattern: &str,
        confirm: &str,
    ) -> Result<Performed, BrokerError> {
        self.subscriptions += 1;
        self.board.name(self.subscriptions, id);
        let key = BindingKey::new(Syntax::Amqp, pattern.as_bytes());
        let (_, reader) = self.client.subscribe(world, TOPIC_EXCHANGE, &key, None)?;
        self.readers.insert(String::from(id), reader);
        self.confirm_all(world, confirm);
        Ok(Performed::Done)
    }

    fn consume<W: World>(
        &mut self,
        world: &W,
        id: &str,
        queue: &str,
        credit: &str,
        confirm: &str,
    ) -> Result<Performed, BrokerError> {
        self.subscriptions += 1;
        self.board.name(self.subscriptions, id);
        let credit = match self.board.bug {
            Some(Bug::InternalCreditUncharged) => UNCHARGED,
            _ => credit.parse().unwrap_or(1),
        };
        let (_, reader) = self.client.consume(world, queue.as_bytes(), credit)?;
        self.readers.insert(String::from(id), reader);
        self.confirm_all(world, confirm);
        Ok(Performed::Done)
    }

    /// Publishes, sends a request or replies, depending on the line.
    fn publish<W: World>(&mut self, world: &W, fields: &[&str]) -> Performed {
        let &[
            _,
            how,
            exchange,
            subject,
            message,
            size,
            persistent,
            headers,
            priority,
            expiration,
            once,
            confirm,
        ] = fields
        else {
            self.board.note_fault(format!("{fields:?} is no publish"));
            return Performed::Done;
        };
        let (exchange, number_of) = (exchange.trim_start_matches('-'), number(message) as usize);
        let to = Address::new(exchange.as_bytes(), subject.as_bytes());
        let mut outgoing = OutgoingMessage::new(body(number_of, number(size) as usize));
        outgoing.properties.is_persistent = persistent == "p";
        outgoing.properties.priority = priority.parse().ok();
        outgoing.properties.expiration_ms = expiration.parse().ok();
        if headers == "h" {
            outgoing = outgoing.header(b"n", message.as_bytes());
        }
        if once != "-" {
            outgoing = outgoing.with(Property::MessageId, shared_name(number(once) as usize).as_bytes());
        }
        let waits = outgoing.lend(|publication| {
            let actor = self.client.actor();
            let (exchange, subject) = (exchange.as_bytes(), subject.as_bytes());
            broker::must_wait_to_publish(world, &actor, exchange, subject, &publication.view())
        });
        if waits == Some(true) {
            return Performed::Held;
        }
        let published = match how {
            "ask" => {
                self.subscriptions += 1;
                self.client.ask(world, &to, outgoing.clone()).map(|(published, request)| {
                    if !matches!(published, Published::Taken { .. }) {
                        self.client.forget(world, request);
                    }
                    published
                })
            }
            "answer" => {
                let request = IncomingMessage {
                    subscription: 0,
                    number: 0,
                    settles: false,
                    is_redelivered: false,
                    failures: 0,
                    address: to.clone(),
                    reply_to: Some(to.clone()),
                    correlation_id: None,
                    content_type: None,
                    headers: Vec::new(),
                    body: Vec::new().into(),
                };
                self.client.answer(world, &request, outgoing.clone())
            }
            _ => {
                let confirm = (confirm != "-").then(|| number(confirm));
                self.client.publish(world, &to, &outgoing, confirm)
            }
        };
        match published {
            Ok(Published::Taken { .. }) if how == "publish" => Performed::Done,
            Ok(Published::Taken { .. }) | Err(BrokerError::QueueFull(_)) => {
                self.confirm_all(world, confirm);
                Performed::Done
            }
            // The alarm, or the queue, fills up only now: publish this one message all the same.
            Ok(Published::WaitForAlarm | Published::WaitForQueue) => {
                self.publish_now(world, &to, &outgoing, confirm);
                Performed::Done
            }
            Err(error) => {
                self.board.note_fault(format!("message {message} is refused: {error}"));
                Performed::Done
            }
        }
    }

    fn publish_now<W: World>(&self, world: &W, to: &Address, message: &OutgoingMessage, confirm: &str) {
        let (exchange, subject) = (to.exchange.as_bytes(), to.subject.as_bytes());
        let actor = self.client.actor();
        let report =
            message.lend(|publication| broker::publish(world, &actor, exchange, subject, publication));
        match report {
            Some(Ok(report)) => self.confirm(world, confirm, report.confirm),
            other => self.board.note_fault(format!("a message is refused: {other:?}")),
        }
    }

    fn purge<W: World>(&mut self, world: &W, queue: &str, confirm: &str) -> Result<Performed, BrokerError> {
        self.board.set_purging(true);
        let purged = broker::purge(world, &self.client.actor(), queue.as_bytes());
        self.board.set_purging(false);
        let (count, reached) = purged?;
        self.board.count(number(confirm), count);
        self.confirm(world, confirm, reached);
        Ok(Performed::Done)
    }

    /// Binds a queue, with an argument, to an exchange of its own, and that to the topic exchange.
    fn route<W: World>(
        &mut self,
        world: &W,
        (queue, subject): (&str, &str),
        kind: &str,
        confirm: &str,
    ) -> Result<Performed, BrokerError> {
        let (actor, own) = (self.client.actor(), subject.as_bytes());
        let settings = Settings { is_durable: true, ..Settings::default() };
        let of_kind = if kind == "headers" { ExchangeKind::Headers } else { ExchangeKind::Topic };
        broker::declare_exchange(world, &actor, own, of_kind, settings)?;
        broker::bind_exchange(world, &actor, TOPIC_EXCHANGE, &key(subject), &Arguments::NONE, own)?;
        let id = broker::find_queue(world, &actor, queue.as_bytes())?;
        broker::bind_queue(world, &actor, own, &key("#"), &arguments(kind), id)?;
        self.confirm_all(world, confirm);
        Ok(Performed::Done)
    }

    /// Deletes the queue's binding, the exchange's binding, or the exchange with both.
    fn unroute<W: World>(
        &mut self,
        world: &W,
        (queue, subject): (&str, &str),
        (kind, place): (&str, &str),
        confirm: &str,
    ) -> Result<Performed, BrokerError> {
        let (actor, own) = (self.client.actor(), subject.as_bytes());
        match place {
            "0" => {
                let id = broker::find_queue(world, &actor, queue.as_bytes())?;
                broker::unbind_queue(world, &actor, own, &key("#"), &arguments(kind), id)?
            }
            "1" => {
                broker::unbind_exchange(world, &actor, TOPIC_EXCHANGE, &key(subject), &Arguments::NONE, own)?
            }
            _ => broker::delete_exchange(world, &actor, own, false)?,
        };
        self.confirm_all(world, confirm);
        Ok(Performed::Done)
    }

    fn get<W: World>(
        &mut self,
        world: &W,
        id: &str,
        queue: &str,
        confirm: &str,
    ) -> Result<Performed, BrokerError> {
        self.gets += 1;
        let label = self.gets.to_le_bytes();
        self.board.name(self.gets, id);
        let options = GetOptions { session: SessionId::FIRST, label: &|_| Box::new(label), settles: true };
        let count = match broker::get(world, &self.client.actor(), queue.as_bytes(), &options)? {
            Got::Pending => return Ok(Performed::Held),
            Got::Delivered { .. } => 1,
            Got::Empty => 0,
        };
        self.board.count(number(confirm), count);
        self.confirm_all(world, confirm);
        Ok(Performed::Done)
    }
}

fn key(text: &str) -> BindingKey {
    BindingKey::new(Syntax::Amqp, text.as_bytes())
}

/// The arguments of a queue's binding; a headers exchange then requires the header `n`.
fn arguments(kind: &str) -> Arguments {
    match kind {
        "headers" => Arguments::new([(Name::from("n"), Value::Null)]),
        _ => Arguments::new([(Name::from("of"), Value::text(b"an operator"))]),
    }
}

fn number(text: &str) -> u64 {
    text.trim_start_matches('r').parse().unwrap_or_default()
}
