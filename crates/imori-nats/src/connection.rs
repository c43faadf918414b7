//! The inbound half of a connection: bytes in, commands to the broker, answers into the outbound half.
//!
//! Nothing here reads a socket or a clock. One caller feeds one connection; the other direction is written by
//! every cell with something for the client.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use imori_core::authorize::Identity;
use imori_core::broker::{self, Actor, Revoked};
use imori_core::confirm::Confirm;
use imori_core::id::ConnectionId;
use imori_core::inbound::{Inbound, Intake, Performed, Phase, Repeat, Taken, Unread};
use imori_core::outbound::{CutReason, Encoder, Outbound, SessionId, Source};
use imori_core::time::Time;
use imori_core::turn::{Budget, ClientFacts, Next, Notice, Peer, StartTls};
use imori_core::world::World;

use crate::client::{Client, SESSION};
use crate::codec::connect::ConnectOptions;
use crate::codec::decode::{Decoder, Step};
use crate::codec::encode::{PING, PONG, push_error, push_info};
use crate::codec::error::DecodeError;
use crate::codec::info::Info;
use crate::codec::operation::{ClientOp, Publish};
use crate::commands::login::log_in;
use crate::commands::publish::publish;
use crate::commands::repeat::note;
use crate::commands::subscribe::PendingSubscriptions;
use crate::delivery::DeliveryEncoder;
use crate::keepalive::{Due, Keepalive};
use crate::protocol_error::ProtocolError;
use crate::settings::Settings;

/// The inbound half of a connection.
#[derive(Debug)]
pub struct Connection {
    state: State,
    intake: Intake<Box<[u8]>>,
    client: Client,
    decoder: Decoder,
    pending: PendingSubscriptions,
    keepalive: Keepalive,
    repeat: Repeat,
    /// The client got the INFO that follows its CONNECT.
    is_informed: bool,
}

/// Where a connection stands.
///
/// ```text
///           CONNECT, or          PUB in a memory alarm or to a
///           no CONNECT first     queue, of a client that reads too
///  Greeting ────────────► Open ◄───────────────────────────► Parking
///     │                    │    alarm over, queue shorter      │
///     ▼                    ▼                                   │
///   Closed ◄───────────────┴── an error that ends it ──────────┘
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The client has not logged in. Its CONNECT is taken again when the verdict of its credentials is there.
    Greeting,
    /// All operations are worked off as they come.
    Open,
    /// Publishes wait for the end of a memory alarm or for a queue, and PINGs behind them; all else is worked off.
    Parking,
    /// Nothing counts any more.
    Closed,
}

/// The kinds of operations that states tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Connect,
    Publish,
    Subscribe,
    Unsubscribe,
    Ping,
    Pong,
    Nothing,
}

/// The treatment of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// Take the options of a CONNECT.
    LogIn,
    /// Take the usual options, then look again.
    LogInUnasked,
    /// Do what it asks for.
    Perform,
    /// Do what it asks for, but let it wait if there is a memory alarm, or a queue is too long that gets it.
    Publish,
    /// Let it wait.
    Park,
    /// Nothing.
    Ignore,
}

/// The whole state machine: every state and every kind of operation (SECURITY LIM-11).
#[inline]
fn action(state: State, kind: Kind) -> Action {
    match (state, kind) {
        (State::Closed, _) => Action::Ignore,
        (_, Kind::Connect) => Action::LogIn,
        (State::Greeting, _) => Action::LogInUnasked,
        (State::Open | State::Parking, Kind::Nothing) => Action::Ignore,
        (State::Open, Kind::Publish) => Action::Publish,
        (State::Parking, Kind::Publish | Kind::Ping) => Action::Park,
        (State::Open, Kind::Ping) => Action::Perform,
        (State::Open | State::Parking, Kind::Subscribe | Kind::Unsubscribe | Kind::Pong) => Action::Perform,
    }
}

impl Kind {
    #[inline]
    fn of(op: &ClientOp<'_>) -> Self {
        match op {
            ClientOp::Publish(_) => Self::Publish,
            ClientOp::Connect(_) => Self::Connect,
            ClientOp::Subscribe(_) => Self::Subscribe,
            ClientOp::Unsubscribe(_) => Self::Unsubscribe,
            ClientOp::Ping => Self::Ping,
            ClientOp::Pong => Self::Pong,
            ClientOp::Nothing => Self::Nothing,
        }
    }
}

impl Inbound for Connection {
    type Settings = Settings;
    type Scratch = ();
    type Parked = Box<[u8]>;

    fn new(settings: Arc<Settings>, id: ConnectionId, peer: Peer, now: Time) -> Self {
        Self {
            state: State::Greeting,
            intake: Intake::new(peer, settings.login_timeout, settings.parked_bytes_max, now),
            decoder: Decoder::new(settings.limits),
            pending: PendingSubscriptions::default(),
            keepalive: Keepalive::new(settings.ping_interval, settings.pings_out_max, now),
            repeat: Repeat::default(),
            is_informed: false,
            client: Client::new(settings, id),
        }
    }

    /// The client has not said what it can.
    fn encoder(settings: &Settings) -> Box<dyn Encoder> {
        Box::new(DeliveryEncoder::new(false, settings))
    }

    fn intake(&self) -> &Intake<Box<[u8]>> {
        &self.intake
    }

    fn intake_mut(&mut self) -> &mut Intake<Box<[u8]>> {
        &mut self.intake
    }

    fn actor(&self) -> Actor<'_> {
        self.client.actor()
    }

    #[inline]
    fn phase(&self) -> Phase {
        match self.state {
            State::Greeting | State::Open | State::Parking => Phase::Open,
            State::Closed => Phase::Closed,
        }
    }

    fn close(&mut self) {
        self.state = State::Closed;
        self.intake.parking.clear();
    }

    fn set_identity(&mut self, identity: Identity) {
        self.client.set_identity(identity);
        self.repeat.clear();
    }

    /// The subscriptions are gone, and the connection goes on, as in nats-server.
    fn readers_revoked<W: World>(&mut self, world: &W, revoked: Vec<Revoked>) {
        for Revoked { label, source, .. } in revoked {
            self.client.sids.remove(&label);
            if let Source::Live(subscription) = source {
                let group = subscription.group.as_ref().map(|group| group.as_bytes().into());
                let subject = subscription.key.text.as_bytes().into();
                let error = ProtocolError::SubscribeViolation(subject, group);
                self.refuse(world, &error, "the rights of the user have changed");
            }
        }
    }

    fn is_logged_in(&self) -> bool {
        !self.client.identity.user.as_bytes().is_empty()
    }

    fn client(&self) -> ClientFacts {
        let ConnectOptions { name, lang, version, .. } = &self.client.options;
        let said = |value: &Option<String>| value.clone().unwrap_or_default();
        let actor = self.client.actor();
        ClientFacts {
            name: said(name),
            language: said(lang),
            version: said(version),
            user: actor.identity.user.to_string(),
            vhost: Some(actor.vhost),
            protocol: String::from("NATS"),
            ..ClientFacts::default()
        }
    }

    /// Sends INFO, which a client waits for before it says anything.
    fn greet<W: World>(&mut self, world: &W) {
        self.client.nonce = world.secret().iter().map(|byte| format!("{byte:02x}")).collect();
        let info = self.info();
        self.client.answer(world, |out| push_info(out, &info));
    }

    #[inline]
    fn take<W: World>(
        &mut self,
        world: &W,
        _scratch: &mut (),
        unread: Unread<'_>,
        budget: &mut Budget,
    ) -> Taken {
        let input = unread.bytes();
        if self.state == State::Greeting && !matches!(input, [] | [b'C' | b'c', ..]) {
            // Before the operation is awaited, so that whoever may not log in sends no payload.
            return self.log_in(world, None, 0);
        }
        if let Some(bytes) = self.publish_again(world, input, budget) {
            return Taken::Bytes(bytes);
        }
        let (op, len) = match self.decoder.client_op(input) {
            Ok(Step::Op { op, consumed }) => (op, consumed),
            Ok(Step::Incomplete { needed }) => return Taken::Incomplete { frame_bytes: needed },
            Err(error) => {
                self.refuse_bytes(world, &error);
                return Taken::Bytes(0);
            }
        };
        let payload = match &op {
            // Behind the payload there is a line end.
            ClientOp::Publish(publish) => unread.kept_body(len - 2, publish.payload.len()),
            _ => None,
        };
        self.take_op(world, &op, input.get(..len).unwrap_or_default(), payload.as_ref(), budget)
    }

    fn replay<W: World>(
        &mut self,
        world: &W,
        _scratch: &mut (),
        parked: &Box<[u8]>,
        budget: &mut Budget,
    ) -> Performed {
        match Decoder::new(self.client.settings.limits).client_op(parked) {
            Ok(Step::Op { op, .. }) => self.perform(world, &op, None, budget),
            // It was an operation before.
            _ => Performed::Done,
        }
    }

    fn replayed(&mut self, _: SessionId) {
        self.state = State::Open;
    }

    fn finish_turn<W: World>(&mut self, world: &W) {
        self.apply_pending(world);
    }

    /// No message of a client is kept on disk, so that the disk's alarm says nothing to it.
    #[inline]
    fn must_wait<W: World>(world: &W) -> bool {
        world.is_alarmed()
    }

    fn login_timed_out<W: World>(&mut self, world: &W) {
        self.refuse(world, &ProtocolError::AuthenticationTimeout, "no CONNECT came in time");
    }

    fn keepalive_deadline(&self) -> Option<Time> {
        self.keepalive.next_deadline(&self.intake.reading)
    }

    /// Asks a silent client for a PONG, and ends a connection that gives none.
    fn keep_alive<W: World>(&mut self, world: &W) {
        match self.keepalive.due(world.now(), &self.intake.reading) {
            Due::Nothing => {}
            Due::Ping => {
                world.with_outbound(self.client.connection, |outbound| outbound.beat(PING));
            }
            Due::Stale => self.refuse(world, &ProtocolError::StaleConnection, "PINGs were not answered"),
            // Its client connects again, to another broker or to this one after its restart.
            Due::Stop => {
                let cut = |outbound: &mut Outbound| outbound.cut(CutReason::ShuttingDown);
                world.with_outbound(self.client.connection, cut);
                self.close();
            }
        }
    }

    /// Tells a client that understands it to go elsewhere, and gives it the time of a lame duck to do so.
    fn stopping<W: World>(&mut self, world: &W) {
        if self.state == State::Closed {
            return;
        }
        let grace = if self.client.options.protocol >= 1 {
            let info = Info { ldm: true, ..self.info() };
            self.client.answer(world, |out| push_info(out, &info));
            self.client.settings.lame_duck
        } else {
            Duration::ZERO
        };
        self.keepalive.stop_at(world.now().after(grace));
    }
}

impl Connection {
    /// Does with an operation what its state asks for.
    #[inline]
    fn take_op<W: World>(
        &mut self,
        world: &W,
        op: &ClientOp<'_>,
        bytes: &[u8],
        shared: Option<&Bytes>,
        budget: &mut Budget,
    ) -> Taken {
        if self.pending.come_before(op) {
            self.apply_pending(world);
        }
        match action(self.state, Kind::of(op)) {
            Action::Publish if world.is_alarmed() => return self.begin_to_park(world, bytes),
            Action::Publish | Action::Perform => {
                if self.perform(world, op, shared, budget) == Performed::Held {
                    self.intake.parking.wait_for_queue(SESSION, world.gauge());
                    return self.begin_to_park(world, bytes);
                }
                if let ClientOp::Publish(publish) = op {
                    note(&mut self.repeat, &self.client, publish, bytes);
                }
            }
            Action::Park => self.intake.parking.push(SESSION, bytes.into(), world.gauge()),
            Action::LogIn => {
                let ClientOp::Connect(json) = op else { return Taken::Bytes(bytes.len()) };
                budget.spend(1, 0, None);
                return self.log_in(world, Some(json), bytes.len());
            }
            Action::LogInUnasked => return self.log_in(world, None, 0),
            Action::Ignore => {}
        }
        Taken::Bytes(bytes.len())
    }

    /// Publishes the messages that the input begins with, if their lines are one seen before; gives their bytes.
    #[inline]
    fn publish_again<W: World>(&mut self, world: &W, input: &[u8], budget: &mut Budget) -> Option<usize> {
        if self.state != State::Open || !self.pending.is_empty() || world.is_alarmed() {
            return None;
        }
        let sent = self.repeat.publish(world, &self.client.actor(), input, budget)?;
        self.decoder.pass_over();
        budget.spend(sent.frames, sent.report.receivers, sent.report.slow_reader);
        Some(sent.bytes)
    }

    /// Does what an operation asks for.
    #[inline]
    fn perform<W: World>(
        &mut self,
        world: &W,
        op: &ClientOp<'_>,
        shared: Option<&Bytes>,
        budget: &mut Budget,
    ) -> Performed {
        if let ClientOp::Publish(publish) = op {
            return self.publish(world, publish, shared, budget);
        }
        match op {
            ClientOp::Subscribe(_) | ClientOp::Unsubscribe(_) => budget.spend_change(),
            _ => budget.spend(1, 0, None),
        }
        if let ClientOp::Subscribe(subscribe) = op
            && self.pending.has(&self.client, subscribe.sid)
        {
            // One that is refused leaves its sid to the next.
            self.apply_pending(world);
        }
        match op {
            ClientOp::Subscribe(subscribe) => match self.pending.add(&mut self.client, world, subscribe) {
                Ok(()) if self.client.options.verbose => {
                    // The answer to a SUB for a sid in use says nothing else.
                    if self.pending.is_empty() {
                        self.client.agree(world);
                    }
                    self.apply_pending(world);
                }
                Ok(()) => {}
                Err(error @ ProtocolError::SubscribeViolation(..)) => {
                    let text = "a queue is not read by NATS; subscribe to it by STOMP, as `/queue/NAME`";
                    self.refuse(world, &error, text);
                }
                Err(error) => {
                    self.refuse(world, &error, "this connection has as many as it may have");
                }
            },
            ClientOp::Unsubscribe(op) => {
                self.pending.end(&mut self.client, world, op);
                if self.client.options.verbose {
                    self.apply_pending(world);
                    self.client.agree(world);
                }
            }
            ClientOp::Ping => self.answer_ping(world),
            ClientOp::Pong => self.keepalive.answered(),
            ClientOp::Publish(_) | ClientOp::Connect(_) | ClientOp::Nothing => {}
        }
        Performed::Done
    }

    #[inline]
    fn publish<W: World>(
        &mut self,
        world: &W,
        op: &Publish<'_>,
        shared: Option<&Bytes>,
        budget: &mut Budget,
    ) -> Performed {
        match publish(&mut self.client, world, op, shared) {
            Ok(Some(report)) => budget.spend(1, report.receivers, report.slow_reader),
            Ok(None) => return Performed::Held,
            Err(error) => {
                budget.spend(1, 0, None);
                let text = match error {
                    ProtocolError::NoQueue(_) => {
                        "declare it by STOMP first; later messages to it are lost unsaid"
                    }
                    ProtocolError::QueueFull(_) => "it refuses what is over its limit, later messages unsaid",
                    ProtocolError::VhostFull(_) => "consume or purge messages, or raise its `max-bytes`",
                    _ => "a message was not published",
                };
                self.refuse(world, &error, text);
            }
        }
        Performed::Done
    }

    /// Makes the subscriptions that the client has asked for, or ends those that it wants no more.
    #[inline]
    fn apply_pending<W: World>(&mut self, world: &W) {
        if self.pending.is_empty() || self.state == State::Closed {
            return;
        }
        for result in self.pending.apply(&mut self.client, world) {
            match result {
                Ok(()) => self.client.agree(world),
                Err(error) => self.refuse(world, &error, "a subscription was not made"),
            }
        }
    }

    fn answer_ping<W: World>(&mut self, world: &W) {
        let informs = !self.is_informed && self.client.options.protocol >= 1;
        self.is_informed = true;
        let info = informs.then(|| Info { connect_info: true, ..self.info() });
        self.client.answer(world, |out| {
            out.extend_from_slice(PONG);
            if let Some(info) = &info {
                push_info(out, info);
            }
        });
    }

    /// Logs the client in, unless its credentials take longer to check.
    fn log_in<W: World>(&mut self, world: &W, json: Option<&[u8]>, len: usize) -> Taken {
        self.repeat.clear();
        let (intake, connection) = (&mut self.intake, self.client.connection);
        let verify = |credentials| intake.verify(world, connection, credentials);
        match log_in(&mut self.client, world, json, verify) {
            Ok(false) => return Taken::Left(Next::Verify),
            Ok(true) => {
                if self.state == State::Greeting {
                    self.state = State::Open;
                    self.intake.reading.logged_in();
                    self.keepalive.logged_in(world.now());
                } else {
                    // The same connection may be somebody else's now.
                    let revoked = broker::recheck_readers(world, &self.client.actor());
                    self.readers_revoked(world, revoked);
                }
                if json.is_some() {
                    self.client.agree(world);
                }
            }
            Err(error @ ProtocolError::AuthorizationViolation) => {
                let text = "check `user` and `pass`, the token or the key; the built-in user may connect from the \
                            broker's own machine only";
                self.refuse(world, &error, text);
            }
            Err(ProtocolError::TooManyConnections(reached)) => {
                let text = reached.to_string();
                self.refuse(world, &ProtocolError::TooManyConnections(reached), &text);
            }
            Err(error) => self.refuse(world, &error, "a CONNECT was refused"),
        }
        Taken::Bytes(len)
    }

    fn info(&self) -> Info {
        let settings = &self.client.settings;
        let peer = &self.intake.peer;
        let address = &peer.address;
        Info {
            server_id: settings.server_id.clone(),
            server_name: settings.server_name.clone(),
            version: settings.version.clone(),
            proto: 1,
            host: settings.host.clone(),
            port: settings.port,
            headers: true,
            // Nobody but a guest on this machine is known.
            auth_required: !self.intake.peer.is_loopback,
            tls_required: peer.is_encrypted || peer.start_tls == StartTls::Demanded,
            tls_available: peer.start_tls == StartTls::Offered,
            max_payload: settings.limits.payload_bytes_max,
            client_id: self.intake.peer.number,
            client_ip: match address.parse::<SocketAddr>() {
                Ok(address) => address.ip().to_string(),
                Err(_) => address.clone(),
            },
            nonce: self.client.nonce.clone(),
            connect_urls: settings.connect_urls.clone(),
            connect_info: false,
            ldm: false,
        }
    }

    /// Lets an operation wait that publishes, and PINGs behind it.
    #[cold]
    fn begin_to_park<W: World>(&mut self, world: &W, bytes: &[u8]) -> Taken {
        if let Some(next) = self.park(world, SESSION, || bytes.into()) {
            return Taken::Left(next);
        }
        self.state = State::Parking;
        Taken::Bytes(bytes.len())
    }

    /// Bytes are no operation: where the next one would begin is not known (SECURITY XPI-03).
    #[cold]
    fn refuse_bytes<W: World>(&mut self, world: &W, error: &DecodeError) {
        self.apply_pending(world);
        self.refuse(world, &ProtocolError::from(error), &error.to_string());
    }

    /// Sends an -ERR, and ends the connection if it is one that does.
    #[cold]
    fn refuse<W: World>(&mut self, world: &W, error: &ProtocolError, text: &str) {
        let (said, is_last) = (error.text(), error.is_last());
        world.with_outbound(self.client.connection, |outbound| {
            if is_last {
                // First, so that this answer, should it be one too many, is not followed by another.
                Outbound::finish(outbound);
            }
            outbound.answer(SESSION, Confirm::NOW, |out| push_error(out, &said));
        });
        self.intake.notice = Some(Notice::refused(error.message(), format!("{said}: {text}")));
        if is_last {
            self.close();
        }
    }
}

#[cfg(test)]
mod tests;
