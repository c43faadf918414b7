//! The connection of an internal client: takes commands from its pipe, runs the broker's verbs, and answers.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use super::command::{
    Bind, BindTarget, Check, Command, CommandError, Consume, DeclareQueue, Done, StreamVerb, Subscribe, Verb,
};
use super::encoder::{ANSWER_BYTES, InternalEncoder, label, read_label};
use super::incoming::{Incoming, Receiver, SubscriptionEnd};
use super::moves::move_messages;
use super::outgoing::OutgoingMessage;
use super::pipe::{Pipe, push_ticket};
use super::streams::operate_on_stream;
use crate::authorize::{Action, Actor, Identity, Object};
use crate::broker::{
    self, ConsumeOptions, Declared, Deleted, GetOptions, PublishReport, Revoked, SettleReport,
    SubscribeOptions, TakeReport,
};
use crate::confirm::{Confirm, Level};
use crate::delivery::Outcome;
use crate::error::BrokerError;
use crate::id::{ConnectionId, ReaderId, SessionId, VhostId};
use crate::inbound::{Accept, Inbound, Intake, Performed, Phase, Taken, Unread};
use crate::limits::SUBJECT_BYTES_MAX;
use crate::message::{Address, HeaderReaders, Property};
use crate::name::Name;
use crate::outbound::{Credit, Encoder, Grant, Numbers};
use crate::queue::{Got, Queue};
use crate::route::{PatternError, RouteError, Target};
use crate::stream::{CursorOptions, Start};
use crate::time::Time;
use crate::turn::{Budget, ClientFacts, Peer};
use crate::world::World;

/// The session used by every command.
const SESSION: SessionId = SessionId::FIRST;

/// The line of parked publishes.
const PUBLISHES: SessionId = SessionId(0);

/// The line of parked gets, which hold up no publish. No session has this id.
const GETS: SessionId = SessionId(1);

/// Settings of an internal client's connection.
#[derive(Debug)]
pub struct Settings<P> {
    /// Holds the client's commands and the items sent to it.
    pub pipe: Arc<P>,
    /// The user that the client acts for; the login has been checked.
    pub identity: Identity,
    /// The vhost that the client works in.
    pub vhost: VhostId,
    /// The client's name, for operators.
    pub name: String,
    /// The header readers of all protocols.
    pub header_readers: HeaderReaders,
    /// The most bytes of parked messages.
    pub parked_bytes_max: usize,
}

/// The inbound half of an internal client.
///
/// Commands run in order, but a publish or get that has to wait lets other commands pass. Publishes and calls keep
/// their order among each other.
#[derive(Debug)]
pub struct Connection<P> {
    settings: Arc<Settings<P>>,
    id: ConnectionId,
    identity: Identity,
    intake: Intake,
    is_closed: bool,
    /// Subscriptions and consumers by number.
    readers: BTreeMap<u64, ReaderId>,
    /// Parked commands by number, which is their frame. A call is removed when its caller gives up.
    parked: BTreeMap<u64, Command>,
}

/// The answer to a command, and the confirm that it waits for.
type Answered = Result<(Done, Confirm), CommandError>;

impl<P: Pipe> Accept for Connection<P> {
    type Settings = Settings<P>;

    fn new(settings: Arc<Settings<P>>, id: ConnectionId, peer: Peer, now: Time) -> Connection<P> {
        let mut intake = Intake::new(peer, Duration::ZERO, settings.parked_bytes_max, now);
        intake.reading.logged_in();
        Connection {
            identity: settings.identity.clone(),
            settings,
            id,
            intake,
            is_closed: false,
            readers: BTreeMap::new(),
            parked: BTreeMap::new(),
        }
    }

    fn encoder(settings: &Settings<P>) -> Box<dyn Encoder> {
        Box::new(InternalEncoder::new(Arc::clone(&settings.pipe), settings.header_readers))
    }
}

impl<P: Pipe> Inbound for Connection<P> {
    type Scratch = ();

    fn intake(&self) -> &Intake {
        &self.intake
    }

    fn intake_mut(&mut self) -> &mut Intake {
        &mut self.intake
    }

    fn actor(&self) -> Actor<'_> {
        Actor { identity: &self.identity, connection: self.id, vhost: self.settings.vhost }
    }

    fn phase(&self) -> Phase {
        if self.is_closed { Phase::Closed } else { Phase::Open }
    }

    fn close(&mut self) {
        self.is_closed = true;
        self.intake.parking.clear();
        self.parked.clear();
    }

    fn set_identity(&mut self, identity: Identity) {
        self.identity = identity;
    }

    fn readers_revoked<W: World>(&mut self, world: &W, revoked: Vec<Revoked>) {
        for Revoked { label, refusal, .. } in revoked {
            let Some(Receiver::Subscription(subscription)) = read_label(&label) else { continue };
            self.readers.remove(&subscription);
            let reason = SubscriptionEnd::Revoked(refusal);
            self.send(world, Confirm::NOW, Incoming::Ended { subscription, reason });
        }
    }

    fn is_logged_in(&self) -> bool {
        true
    }

    fn client(&self) -> ClientFacts {
        ClientFacts {
            name: self.settings.name.clone(),
            user: self.identity.user.to_string(),
            vhost: Some(self.settings.vhost),
            protocol: String::from("internal"),
            ..ClientFacts::default()
        }
    }

    fn take<W: World>(&mut self, world: &W, _: &mut (), unread: Unread<'_>, budget: &mut Budget) -> Taken {
        if unread.bytes().is_empty() {
            return Taken::Incomplete { frame_bytes: None };
        }
        if let Some(command) = self.settings.pipe.take_command() {
            budget.spend(1, 0, None);
            self.accept(world, command, budget);
        }
        Taken::Bytes(1)
    }

    fn replay<W: World>(&mut self, world: &W, _: &mut (), frame: &[u8], budget: &mut Budget) -> Performed {
        let number = frame.first_chunk().copied().map(u64::from_le_bytes);
        let Some(command) = number.and_then(|number| self.parked.remove(&number)) else {
            return Performed::Done;
        };
        let performed = self.perform(world, &command, budget);
        if performed != Performed::Done {
            self.parked.insert(command.number, command);
        }
        performed
    }
}

impl<P: Pipe> Connection<P> {
    /// Runs a command, or parks it.
    fn accept<W: World>(&mut self, world: &W, command: Command, budget: &mut Budget) {
        let line = if command.verb.publishes() { PUBLISHES } else { GETS };
        let must_wait = command.verb.publishes()
            && (self.intake.parking.has_parked_of(PUBLISHES) || self.must_wait(world));
        if !must_wait {
            if self.perform(world, &command, budget) != Performed::Held {
                return;
            }
            self.intake.parking.wait_for_queue(line, world.gauge());
        }
        let (frame, body_bytes) = (Box::from(command.number.to_le_bytes()), command.verb.body_bytes());
        self.parked.insert(command.number, command);
        self.intake.parking.push_with(line, frame, body_bytes, world.gauge());
    }

    fn perform<W: World>(&mut self, world: &W, command: &Command, budget: &mut Budget) -> Performed {
        let number = command.number;
        let answered = match &command.verb {
            Verb::Publish { to, message } => match self.publish(world, to, message, None, budget) {
                None => return Performed::Held,
                Some(published) => {
                    self.answer_publish(world, number, published);
                    return Performed::Done;
                }
            },
            Verb::Call { to, message } => match self.call(world, number, to, message, budget) {
                None => return Performed::Held,
                // The reply is the answer.
                Some(Ok(())) => return Performed::Done,
                Some(Err(error)) => Err(error),
            },
            Verb::Forget { call } => {
                self.forget(world, *call);
                return Performed::Done;
            }
            Verb::Grant { subscription, taken, credit } => {
                if let Some(reader) = self.readers.get(subscription) {
                    let grant = Grant { used: *taken, credit: *credit, drains: false };
                    broker::grant(world, &self.actor(), *reader, &grant);
                }
                return Performed::Done;
            }
            Verb::Consume(consume) => match self.consume(world, number, consume) {
                // The answer was sent before the first delivery.
                Ok(()) => return Performed::Done,
                Err(error) => Err(error),
            },
            Verb::Get { queue, settles } => match self.get(world, number, queue, *settles) {
                Ok(Got::Pending) => return Performed::Held,
                // The delivery is the answer.
                Ok(Got::Delivered { .. }) => return Performed::Done,
                Ok(Got::Empty) => Ok((Done::Empty, Confirm::NOW)),
                Err(error) => Err(error),
            },
            Verb::Subscribe(subscribe) => {
                budget.spend_change();
                self.subscribe(world, number, subscribe)
            }
            Verb::Cancel { subscription } => {
                budget.spend_change();
                if let Some(reader) = self.readers.remove(subscription) {
                    broker::cancel(world, &self.actor(), reader);
                }
                Ok((Done::Done, Confirm::NOW))
            }
            Verb::Settle { numbers, outcome } => {
                budget.spend(numbers.len() / 8, 0, None);
                let (outcome, confirm) = self.settle(world, numbers, *outcome);
                self.send(world, confirm, Incoming::Answer { command: number, outcome });
                return Performed::Done;
            }
            Verb::DeclareQueue(_)
            | Verb::DeleteQueue { .. }
            | Verb::DeclareExchange { .. }
            | Verb::DeleteExchange { .. }
            | Verb::Bind(_)
            | Verb::Unbind(_)
            | Verb::Stream { .. } => {
                budget.spend_change();
                self.define(world, &command.verb)
            }
            Verb::Define(verbs) => {
                verbs.iter().for_each(|_| budget.spend_change());
                Ok(self.define_all(world, verbs))
            }
            verb => self.operate(world, verb),
        };
        self.answer(world, number, answered);
        Performed::Done
    }

    /// Publishes a message; `None` if it has to wait.
    fn publish<W: World>(
        &self,
        world: &W,
        to: &Address,
        message: &OutgoingMessage,
        inbox: Option<&[u8]>,
        budget: &mut Budget,
    ) -> Option<Result<PublishReport, CommandError>> {
        let (actor, exchange, subject) = (self.actor(), to.exchange.as_bytes(), to.subject.as_bytes());
        let sender = message.property(Property::UserId);
        if sender.is_some_and(|user| *user != *self.identity.user.as_bytes()) {
            return Some(Err(CommandError::OtherUser));
        }
        let published = message.lend_with(inbox, |publication| {
            // A call checks this before it creates its inbox.
            if inbox.is_none()
                && broker::must_wait_to_publish(world, &actor, exchange, subject, &publication.view())
            {
                return None;
            }
            Some(broker::publish(world, &actor, exchange, subject, publication))
        });
        let Some(published) = published else { return Some(Err(BrokerError::HeadersTooLarge.into())) };
        let report = match published? {
            Ok(report) => report,
            Err(error) => return Some(Err(error.into())),
        };
        budget.spend(0, report.receivers, report.slow_reader);
        Some(match report.refused_by {
            Some(queue) => Err(BrokerError::QueueFull(queue).into()),
            None => Ok(report),
        })
    }

    /// Publishes a request whose replies go to a new inbox; `None` if it has to wait.
    fn call<W: World>(
        &self,
        world: &W,
        number: u64,
        to: &Address,
        message: &OutgoingMessage,
        budget: &mut Budget,
    ) -> Option<Result<(), CommandError>> {
        let actor = self.actor();
        if let Err(refusal) = world.authorize(&actor, Action::Receive, Object::Inbox) {
            return Some(Err(BrokerError::from(refusal).into()));
        }
        let waits = message.lend(|publication| {
            let (exchange, subject) = (to.exchange.as_bytes(), to.subject.as_bytes());
            broker::must_wait_to_publish(world, &actor, exchange, subject, &publication.view())
        });
        if waits == Some(true) {
            return None;
        }
        let (name, label) = (number.to_le_bytes(), label(Receiver::Call(number)));
        let inbox = world
            .with_outbound(self.id, |outbound| outbound.inbox(SESSION, &name, || (label, world.secret())));
        let Some(inbox) = inbox.flatten() else { return Some(Err(CommandError::TooManyCalls)) };
        let called = match self.publish(world, to, message, Some(&inbox.to_key()), budget)? {
            Ok(PublishReport { receivers: 0, .. }) => Err(CommandError::NoResponder),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        if called.is_err() {
            self.close_inbox(world, number);
        }
        Some(called)
    }

    /// Stops waiting for the reply to a call; a late reply is dropped and counted.
    fn forget<W: World>(&mut self, world: &W, call: u64) {
        match self.parked.remove(&call) {
            Some(_) => self.intake.parking.discharge(PUBLISHES, &call.to_le_bytes()),
            None => self.close_inbox(world, call),
        }
    }

    fn close_inbox<W: World>(&self, world: &W, call: u64) {
        world.with_outbound(self.id, |outbound| outbound.close_inbox(SESSION, &call.to_le_bytes()));
    }

    fn subscribe<W: World>(&mut self, world: &W, number: u64, subscribe: &Subscribe) -> Answered {
        let Subscribe { exchange, key, group, selector } = subscribe;
        let options = SubscribeOptions {
            session: SESSION,
            label: label(Receiver::Subscription(number)),
            group: group.clone(),
            selector: selector.clone(),
        };
        let reader = broker::subscribe(world, &self.actor(), exchange.as_bytes(), key, options)?;
        self.readers.insert(number, reader);
        Ok((Done::Done, Confirm::NOW))
    }

    fn consume<W: World>(&mut self, world: &W, number: u64, consume: &Consume) -> Result<(), CommandError> {
        let queue = consume.queue.as_bytes();
        let id = broker::find_queue(world, &self.actor(), queue)?;
        let settles = consume.settles && !consume.is_browser;
        let options = ConsumeOptions {
            session: SESSION,
            label: label(Receiver::Subscription(number)),
            settles,
            credit: match settles {
                true => Credit::window(consume.credit),
                false => Credit::Granted { left: consume.credit, used: 0 },
            },
            priority: consume.priority,
            is_exclusive: consume.is_exclusive,
            selector: consume.selector.clone(),
            drops_unwanted: false,
            is_browser: consume.is_browser,
            name: None,
            cursor: match consume.is_browser {
                true => CursorOptions { start: Start::First, ..CursorOptions::default() },
                false => CursorOptions::default(),
            },
        };
        let answer = Incoming::Answer { command: number, outcome: Ok(Done::Done) };
        let write = self.ticket_of(answer);
        let reader = broker::consume(world, &self.actor(), id, queue, options, |outbound, _| {
            outbound.answer(SESSION, Confirm::NOW, write);
        })?;
        self.readers.insert(number, reader);
        Ok(())
    }

    fn get<W: World>(
        &self,
        world: &W,
        number: u64,
        queue: &Name,
        settles: bool,
    ) -> Result<Got, CommandError> {
        let label = |left: usize| label(Receiver::Get { command: number, left: left as u64 });
        let options = GetOptions { session: SESSION, label: &label, settles };
        Ok(broker::get(world, &self.actor(), queue.as_bytes(), &options)?)
    }

    /// Settles the unsettled deliveries among `numbers`; refuses the command if any of them is not unsettled.
    fn settle<W: World>(
        &self,
        world: &W,
        numbers: &[u64],
        outcome: Outcome,
    ) -> (Result<Done, CommandError>, Confirm) {
        let (mut settled, mut confirm, mut refused) = (0, Confirm::NOW, None);
        for number in numbers {
            match broker::settle(world, &self.actor(), SESSION, Numbers::One(*number), outcome) {
                Ok(SettleReport { confirm: reached, settled: more, .. }) => {
                    settled += more;
                    confirm = reached.after(confirm);
                }
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        (refused.map_or(Ok(Done::Settled(settled)), |error| Err(error.into())), confirm)
    }

    /// Changes queues, exchanges and bindings.
    fn define<W: World>(&self, world: &W, verb: &Verb) -> Answered {
        let actor = self.actor();
        Ok(match verb {
            Verb::DeclareQueue(declare) => self.declare_queue(world, declare)?,
            Verb::DeleteQueue { queue, options } => {
                let deleted = broker::delete_queue_if(world, &actor, queue.as_bytes(), *options, |_| ())?;
                let Deleted { ready, confirm, .. } = deleted;
                (Done::Dropped(ready), confirm)
            }
            Verb::DeclareExchange { exchange, kind, settings } => {
                let (name, settings) = (exchange.as_bytes(), settings.clone());
                check_name(name)?;
                (Done::Done, broker::declare_exchange(world, &actor, name, *kind, settings)?)
            }
            Verb::DeleteExchange { exchange, if_unused } => {
                (Done::Done, broker::delete_exchange(world, &actor, exchange.as_bytes(), *if_unused)?)
            }
            Verb::Bind(bind) => (Done::Done, self.bind(world, bind, true)?),
            Verb::Unbind(bind) => (Done::Done, self.bind(world, bind, false)?),
            Verb::Stream { stream, verb } => operate_on_stream(world, &actor, stream, verb)?,
            _ => (Done::Done, Confirm::NOW),
        })
    }

    fn define_all<W: World>(&self, world: &W, verbs: &[Verb]) -> (Done, Confirm) {
        let (mut confirm, mut new) = (Confirm::NOW, Vec::new());
        for (done, verb) in verbs.iter().enumerate() {
            let is_new = self.is_new(world, verb);
            match self.define(world, verb) {
                Ok((_, reached)) => confirm = reached.after(confirm),
                Err(error) => return (Done::Defined { done, new, refused: Some(Box::new(error)) }, confirm),
            }
            if is_new {
                new.push(done);
            }
        }
        (Done::Defined { done: verbs.len(), new, refused: None }, confirm)
    }

    /// Whether a command declares an object that is not there yet.
    fn is_new<W: World>(&self, world: &W, verb: &Verb) -> bool {
        let vhost = self.settings.vhost;
        world.with_router(|_, table| match verb {
            Verb::DeclareQueue(declare) => table.queue(vhost, declare.name.as_bytes()).is_none(),
            Verb::DeclareExchange { exchange, .. } => table.exchange(vhost, exchange.as_bytes()).is_none(),
            Verb::Bind(bind) => {
                let Bind { source, key, arguments, target } = &**bind;
                let target = match target {
                    BindTarget::Queue(queue) => table.queue(vhost, queue.as_bytes()).map(Target::Queue),
                    BindTarget::Exchange(exchange) => Some(Target::Exchange(exchange.clone())),
                };
                target.is_some_and(|target| {
                    !table.has_binding(vhost, source.as_bytes(), key, arguments, &target)
                })
            }
            Verb::Stream { stream, verb } => match (table.queue(vhost, stream.as_bytes()), verb) {
                (found, StreamVerb::Declare { .. }) => found.is_none(),
                (Some(id), StreamVerb::PutConsumer { consumer, .. }) => {
                    let has = |queue: &mut Queue| {
                        queue.stream().is_some_and(|stream| stream.consumer(consumer.as_bytes()).is_some())
                    };
                    world.with_queue(id, has) == Some(false)
                }
                _ => false,
            },
            _ => false,
        })
    }

    fn declare_queue<W: World>(&self, world: &W, declare: &DeclareQueue) -> Answered {
        let DeclareQueue { name, settings, is_exclusive } = declare;
        let (mut settings, actor) = (settings.clone(), self.actor());
        settings.exclusive_to = is_exclusive.then_some(self.id);
        check_name(name.as_bytes())?;
        let is_unnamed = name.as_bytes().is_empty();
        let name = if is_unnamed { unnamed(world.secret()) } else { name.clone() };
        let is_new = world.with_router(|_, table| table.queue(actor.vhost, name.as_bytes()).is_none());
        let Declared { confirm, .. } = match is_unnamed {
            true => broker::declare_unnamed_queue(world, &actor, name.as_bytes(), &settings)?,
            false => broker::declare_queue(world, &actor, name.as_bytes(), &settings, true)?,
        };
        let found = broker::look_up_queue(world, &actor, name.as_bytes());
        let (ready, consumers) = found.map_or((0, 0), |found| (found.ready, found.consumers));
        Ok((Done::Declared { name, is_new, ready, consumers }, confirm))
    }

    fn bind<W: World>(&self, world: &W, bind: &Bind, is_bound: bool) -> Result<Confirm, CommandError> {
        let Bind { source, key, arguments, target } = bind;
        let (actor, from) = (self.actor(), source.as_bytes());
        Ok(match target {
            BindTarget::Queue(queue) => {
                let queue = broker::find_queue(world, &actor, queue.as_bytes())?;
                match is_bound {
                    true => broker::bind_queue(world, &actor, from, key, arguments, queue)?,
                    false => broker::unbind_queue(world, &actor, from, key, arguments, queue)?,
                }
            }
            BindTarget::Exchange(to) => match is_bound {
                true => broker::bind_exchange(world, &actor, from, key, arguments, to.as_bytes())?,
                false => broker::unbind_exchange(world, &actor, from, key, arguments, to.as_bytes())?,
            },
        })
    }

    /// Inspects queues and exchanges, and runs the commands that operators use on messages.
    fn operate<W: World>(&self, world: &W, verb: &Verb) -> Answered {
        let (actor, now) = (self.actor(), Confirm::NOW);
        Ok(match verb {
            Verb::Purge { queue } => {
                let (dropped, confirm) = broker::purge(world, &actor, queue.as_bytes())?;
                (Done::Dropped(dropped), confirm)
            }
            Verb::LookUpQueue { queue } => {
                (Done::Queue(broker::look_up_queue(world, &actor, queue.as_bytes())?), now)
            }
            Verb::LookUpExchange { exchange } => {
                let (kind, settings) = broker::look_up_exchange(world, &actor, exchange.as_bytes())?;
                (Done::Exchange(kind, Box::new(settings)), now)
            }
            Verb::Peek { queue, skip, count } => {
                let (id, found) = broker::peek(world, &actor, queue.as_bytes(), *skip, *count)?;
                (Done::Peeked(id, found), now)
            }
            Verb::Take { queue, count, bytes_max, outcome } => {
                let limits = (*count, *bytes_max);
                let taken: TakeReport = broker::take(world, &actor, queue.as_bytes(), limits, *outcome)?;
                let confirm = taken.confirm;
                (Done::Taken(taken), confirm)
            }
            Verb::Move { from, target, skip, count } => {
                let (batch, confirm) = move_messages(world, &actor, from, target, (*skip, *count))?;
                (Done::Moved(Box::new(batch)), confirm)
            }
            Verb::Check(Check::Consume(queue)) => {
                let object = Object::Queue(queue.as_bytes());
                world.authorize(&actor, Action::Consume, object).map_err(BrokerError::from)?;
                (Done::Allowed(true), now)
            }
            Verb::Check(Check::Publish(to)) => {
                let (exchange, subject) = (to.exchange.as_bytes(), to.subject.as_bytes());
                (Done::Allowed(broker::may_publish(world, &actor, exchange, subject)), now)
            }
            Verb::Sync => (Done::Done, world.confirm_all(Level::Disk)),
            _ => (Done::Done, now),
        })
    }

    fn answer_publish<W: World>(
        &self,
        world: &W,
        number: u64,
        published: Result<PublishReport, CommandError>,
    ) {
        let (outcome, confirm) = match published {
            Ok(PublishReport { receivers, confirm, .. }) => {
                (Ok(Done::Published { receivers, level: confirm.level() }), confirm)
            }
            Err(error) => return self.answer(world, number, Err(error)),
        };
        let write = self.ticket_of(Incoming::Answer { command: number, outcome });
        world.with_outbound(self.id, |outbound| outbound.promise(SESSION, confirm, confirm.level(), write));
    }

    fn answer<W: World>(&self, world: &W, command: u64, answered: Answered) {
        let (outcome, confirm) = match answered {
            Ok((done, confirm)) => (Ok(done), confirm),
            Err(error) => (Err(error), Confirm::NOW),
        };
        self.send(world, confirm, Incoming::Answer { command, outcome });
    }

    fn send<W: World>(&self, world: &W, confirm: Confirm, incoming: Incoming) {
        let write = self.ticket_of(incoming);
        world.with_outbound(self.id, |outbound| outbound.answer(SESSION, confirm, write));
    }

    /// Returns the writer of an item's ticket. The item enters the pipe when the ticket is written, which waits for its
    /// confirm.
    fn ticket_of(&self, incoming: Incoming) -> impl FnOnce(&mut Vec<u8>) + use<P> {
        let pipe = Arc::clone(&self.settings.pipe);
        move |out| push_ticket(out, pipe.keep(incoming), ANSWER_BYTES)
    }
}

/// Refuses a name that no protocol could use, and no record of a definition holds.
fn check_name(name: &[u8]) -> Result<(), CommandError> {
    match name.len() {
        0..=SUBJECT_BYTES_MAX => Ok(()),
        bytes => Err(BrokerError::from(RouteError::Pattern(PatternError::TooLong { bytes })).into()),
    }
}

/// The generated name of a queue that its client did not name.
fn unnamed(secret: [u8; 16]) -> Name {
    let mut name = String::from("amq.gen-");
    secret.iter().for_each(|byte| write!(name, "{byte:02x}").expect("a string takes every text"));
    Name::from(name.as_str())
}
