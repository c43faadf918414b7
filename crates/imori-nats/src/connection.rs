//! The inbound half of a connection: turns bytes into broker commands and queues the answers on the
//! outbound half.
//!
//! Reads no socket and no clock. One caller feeds a connection; any cell with deliveries for its
//! client writes to the outbound half.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use imori_core::authorize::Identity;
use imori_core::broker::{self, Actor, Revoked};
use imori_core::confirm::Confirm;
use imori_core::id::ConnectionId;
use imori_core::inbound::{Accept, Inbound, Intake, Performed, Phase, Repeat, Taken, Unread, park};
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
    intake: Intake,
    client: Client,
    decoder: Decoder,
    pending: PendingSubscriptions,
    keepalive: Keepalive,
    repeat: Repeat,
    /// The client got the INFO that follows its CONNECT.
    is_informed: bool,
}

/// State of a connection.
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
    /// Before login. CONNECT stays in the input until the credentials are checked, then is read
    /// again.
    Greeting,
    /// Every operation is performed on arrival.
    Open,
    /// Publishes wait for the end of a memory alarm or for a queue to shrink, and PINGs wait behind
    /// them; other operations are performed on arrival.
    Parking,
    /// Every operation is ignored.
    Closed,
}

/// The kinds of operations that the state machine distinguishes.
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
    /// Log in with the options of a CONNECT.
    LogIn,
    /// Log in with the default options, then take the operation again.
    LogInUnasked,
    /// Perform the operation.
    Perform,
    /// Perform the operation, or park it during a memory alarm or if a target queue is too long.
    Publish,
    /// Park the operation.
    Park,
    /// Drop the operation.
    Ignore,
}

/// The whole state machine: an action for every state and kind of operation (SECURITY LIM-11).
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

impl Accept for Connection {
    type Settings = Settings;

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

    /// Starts without headers, which only a CONNECT can ask for.
    fn encoder(settings: &Settings) -> Box<dyn Encoder> {
        Box::new(DeliveryEncoder::new(false, settings))
    }
}

impl Inbound for Connection {
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

    /// As in nats-server, the connection goes on without these subscriptions.
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

    /// Sends INFO, which clients wait for before they send anything.
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
            // Log in before the operation is complete, so that a client without rights cannot send
            // a payload.
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
            // The operation ends with a CR LF after the payload.
            ClientOp::Publish(publish) => unread.kept_body(len - 2, publish.payload.len()),
            _ => None,
        };
        self.take_op(world, &op, input.get(..len).unwrap_or_default(), payload.as_ref(), budget)
    }

    fn replay<W: World>(
        &mut self,
        world: &W,
        _scratch: &mut (),
        parked: &[u8],
        budget: &mut Budget,
    ) -> Performed {
        match Decoder::new(self.client.settings.limits).client_op(parked) {
            Ok(Step::Op { op, .. }) => self.perform(world, &op, None, budget),
            // Unreachable: the same bytes decoded as an operation before they were parked.
            _ => Performed::Done,
        }
    }

    fn replayed(&mut self, _: SessionId) {
        self.state = State::Open;
    }

    fn finish_turn<W: World>(&mut self, world: &W) {
        self.apply_pending(world);
    }

    /// The disk's alarm does not matter, as no message of a NATS client is persistent.
    #[inline]
    fn must_wait<W: World>(&self, world: &W) -> bool {
        world.is_alarmed()
    }

    fn login_timed_out<W: World>(&mut self, world: &W) {
        self.refuse(world, &ProtocolError::AuthenticationTimeout, "no CONNECT came in time");
    }

    fn keepalive_deadline(&self) -> Option<Time> {
        self.keepalive.next_deadline(&self.intake.reading)
    }

    /// Sends PING to a silent client; ends the connection if earlier ones were not answered.
    fn keep_alive<W: World>(&mut self, world: &W) {
        match self.keepalive.due(world.now(), &self.intake.reading) {
            Due::Nothing => {}
            Due::Ping => {
                world.with_outbound(self.client.connection, |outbound| outbound.beat(PING));
            }
            Due::Stale => self.refuse(world, &ProtocolError::StaleConnection, "PINGs were not answered"),
            // The client reconnects to another broker, or to this one after its restart.
            Due::Stop => {
                let cut = |outbound: &mut Outbound| outbound.cut(CutReason::ShuttingDown);
                world.with_outbound(self.client.connection, cut);
                self.close();
            }
        }
    }

    /// Asks the client to reconnect elsewhere and sets a deadline for it. A client that does not
    /// understand the request is closed at once.
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
    /// Treats an operation as the state machine says.
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

    /// Publishes the leading messages of the input that repeat a known control line; returns their
    /// length in bytes.
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

    /// Performs an operation.
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
            // Applied first: if the pending SUB is refused, its sid is free for this one.
            self.apply_pending(world);
        }
        match op {
            ClientOp::Subscribe(subscribe) => match self.pending.add(&mut self.client, world, subscribe) {
                Ok(()) if self.client.options.verbose => {
                    // A SUB for a sid in use is ignored and gets no other answer.
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

    /// Makes or ends the pending subscriptions.
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

    /// Logs the client in, or leaves CONNECT in the input while the credentials are checked.
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
                    // A second CONNECT may have changed the user, so its subscriptions are checked
                    // again.
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
            // A client on this machine may log in as the built-in user without credentials.
            auth_required: !self.intake.peer.is_loopback,
            tls_required: peer.is_encrypted || peer.start_tls == StartTls::Demanded,
            tls_available: peer.start_tls == StartTls::Offered,
            max_payload: settings.limits.payload_bytes_max,
            jetstream: true,
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

    /// Parks an operation that publishes; later PINGs wait behind it.
    #[cold]
    fn begin_to_park<W: World>(&mut self, world: &W, bytes: &[u8]) -> Taken {
        if let Some(next) = park(self, world, SESSION, || bytes.into()) {
            return Taken::Left(next);
        }
        self.state = State::Parking;
        Taken::Bytes(bytes.len())
    }

    /// Refuses undecodable input and closes: the start of the next operation is unknown (SECURITY
    /// XPI-03).
    #[cold]
    fn refuse_bytes<W: World>(&mut self, world: &W, error: &DecodeError) {
        self.apply_pending(world);
        self.refuse(world, &ProtocolError::from(error), &error.to_string());
    }

    /// Sends a -ERR, and closes the connection if the error demands it.
    #[cold]
    fn refuse<W: World>(&mut self, world: &W, error: &ProtocolError, text: &str) {
        let (said, is_last) = (error.text(), error.is_last());
        world.with_outbound(self.client.connection, |outbound| {
            if is_last {
                // Before the -ERR, so that an overflow caused by it does not append another one.
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
