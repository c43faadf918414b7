//! What a client says: bytes in, commands to the broker, answers into the connection's outbound half.
//!
//! It reads no socket and no clock. One connection is fed by one caller; what goes the other
//! way is written by whoever has something for it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use imori_core::broker::{self, Actor};
use imori_core::confirm::Confirm;
use imori_core::id::ConnectionId;
use imori_core::inbound::Inbound;
use imori_core::message::BODY_SHARED_MIN;
use imori_core::outbound::{CutReason, Encoder, Outbound};
use imori_core::time::Time;
use imori_core::turn::{Budget, ClientFacts, Next, Peer, Received, Refusal};
use imori_core::world::World;

use crate::complaint::Complaint;
use crate::connect::ConnectOptions;
use crate::decode::{Decoder, Step};
use crate::encode::{PING, PONG, push_error, push_info};
use crate::error::DecodeError;
use crate::info::Info;
use crate::login::log_in;
use crate::message::MessageEncoder;
use crate::operation::{ClientOp, Publish};
use crate::parked::Parked;
use crate::publish::publish;
use crate::pulse::{Due, Pulse};
use crate::repeat::Repeat;
use crate::session::{SESSION, Session};
use crate::settings::Settings;
use crate::subscribe::Wishes;

/// The inbound half of a connection.
#[derive(Debug)]
pub struct Connection {
    state: State,
    session: Session,
    peer: Peer,
    decoder: Decoder,
    wishes: Wishes,
    parked: Parked,
    pulse: Pulse,
    refusal: Option<Refusal>,
    repeat: Repeat,
    /// What it published last, or what is parked first, waits for a queue, which will say when to try again.
    is_held: bool,
    /// It was told what the broker knows of it after its CONNECT.
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
    /// The client has said nothing.
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

/// What an operation leads to.
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

    fn new(settings: Arc<Settings>, id: ConnectionId, peer: Peer, now: Time) -> Self {
        let login_until = now.after(settings.login_timeout);
        Self {
            state: State::Greeting,
            peer,
            decoder: Decoder::new(settings.limits),
            wishes: Wishes::default(),
            parked: Parked::default(),
            pulse: Pulse::new(login_until, settings.ping_interval, settings.pings_out_max, now),
            refusal: None,
            repeat: Repeat::default(),
            is_held: false,
            is_informed: false,
            session: Session::new(settings, id),
        }
    }

    /// The client has not said what it can.
    fn encoder(settings: &Settings) -> Box<dyn Encoder> {
        Box::new(MessageEncoder::new(false, settings))
    }

    fn actor(&self) -> Actor<'_> {
        self.session.actor()
    }

    /// Sends INFO, which a client waits for before it says anything.
    fn greet<W: World>(&mut self, world: &W) {
        let info = self.info();
        self.session.answer(world, |out| push_info(out, &info));
    }

    /// The broker begins to stop: tells a client that understands it to go elsewhere, and gives it the time of
    /// a lame duck to do so.
    fn stopping<W: World>(&mut self, world: &W) {
        if self.state == State::Closed {
            return;
        }
        let grace = if self.session.options.protocol >= 1 {
            let info = Info { ldm: true, ..self.info() };
            self.session.answer(world, |out| push_info(out, &info));
            self.session.settings.lame_duck
        } else {
            Duration::ZERO
        };
        self.pulse.stop_at(world.now().after(grace));
    }

    fn receive<W: World>(
        &mut self,
        world: &W,
        _scratch: &mut (),
        input: &[u8],
        shared: Option<&Bytes>,
        budget: &mut Budget,
    ) -> Received {
        self.pulse.received(world.now());
        if let Some(next) = self.replay(world, budget) {
            return Received { consumed: 0, next };
        }
        let received = self.work(world, input, shared, budget);
        self.fulfil_wishes(world);
        match self.state {
            State::Closed => Received { consumed: input.len(), next: Next::Close },
            _ => received,
        }
    }

    fn is_logged_in(&self) -> bool {
        !self.session.identity.user.as_bytes().is_empty()
    }

    fn client(&self) -> ClientFacts {
        let ConnectOptions { name, lang, version, .. } = &self.session.options;
        let said = |value: &Option<String>| value.clone().unwrap_or_default();
        ClientFacts { name: said(name), language: said(lang), version: said(version) }
    }

    fn take_refusal(&mut self) -> Option<Refusal> {
        self.refusal.take()
    }

    fn has_parked(&self) -> bool {
        !self.parked.is_empty()
    }

    fn parked_bytes(&self) -> usize {
        self.parked.bytes()
    }

    fn waits_for_queue(&self) -> bool {
        self.is_held
    }

    fn next_deadline(&self) -> Option<Time> {
        (self.state != State::Closed).then(|| self.pulse.next_deadline())
    }

    /// Asks a silent client for a PONG, and ends a connection that has not logged in or gives none.
    fn tick<W: World>(&mut self, world: &W) -> Next {
        if self.state == State::Closed {
            return Next::Close;
        }
        match self.pulse.due(world.now()) {
            Due::Nothing => {}
            Due::Ping => {
                world.with_outbound(self.session.connection, |outbound| outbound.beat(PING));
            }
            // SECURITY LIM-02: whoever sends a byte now and then is no exception.
            Due::Login => {
                self.refuse(world, &Complaint::AuthenticationTimeout, "no CONNECT came in time");
            }
            Due::Stale => {
                self.refuse(world, &Complaint::StaleConnection, "PINGs were not answered");
            }
            // Its client connects again, to another broker or to this one after its restart.
            Due::Stop => {
                world
                    .with_outbound(self.session.connection, |outbound| outbound.cut(CutReason::ShuttingDown));
                self.close();
            }
        }
        match self.state {
            State::Closed => Next::Close,
            _ if self.pulse.is_paused() => Next::Parked,
            _ => Next::More { frame_bytes: None },
        }
    }

    fn alarm_ended<W: World>(&mut self, world: &W) -> Next {
        if self.is_held {
            // There may be input behind what waits that need not wait.
            return if self.pulse.is_paused() { Next::Parked } else { Next::Again };
        }
        self.pulse.received(world.now());
        self.replay(world, &mut Budget::default()).unwrap_or(Next::Again)
    }

    fn relieved<W: World>(&mut self, world: &W) -> Next {
        self.is_held = false;
        self.alarm_ended(world)
    }

    fn disconnect<W: World>(&mut self, world: &W) -> bool {
        self.close();
        broker::disconnect(world, &self.session.actor())
    }
}

impl Connection {
    fn work<W: World>(
        &mut self,
        world: &W,
        input: &[u8],
        shared: Option<&Bytes>,
        budget: &mut Budget,
    ) -> Received {
        let mut consumed = 0;
        loop {
            match self.state {
                State::Closed => return Received { consumed: input.len(), next: Next::Close },
                _ if budget.is_spent() => return Received { consumed, next: budget.close(Next::Again) },
                _ if self.is_full() => return Received { consumed, next: self.pause() },
                _ => {}
            }
            let rest = input.get(consumed..).unwrap_or_default();
            if self.state == State::Greeting && !matches!(rest, [] | [b'C' | b'c', ..]) {
                // Before the operation is awaited, so that whoever may not log in sends no payload.
                self.log_in(world, None);
                continue;
            }
            if let Some(len) = self.publish_again(world, rest, budget) {
                consumed += len;
                continue;
            }
            let (op, len) = match self.decoder.client_op(rest) {
                Ok(Step::Op { op, consumed }) => (op, consumed),
                Ok(Step::Incomplete { needed }) => {
                    return Received { consumed, next: budget.close(Next::More { frame_bytes: needed }) };
                }
                Err(error) => {
                    self.refuse_bytes(world, &error);
                    continue;
                }
            };
            let shared = match (shared, &op) {
                (Some(input), ClientOp::Publish(publish)) if publish.payload.len() >= BODY_SHARED_MIN => {
                    let end = consumed + len - 2;
                    Some(input.slice(end - publish.payload.len()..end))
                }
                _ => None,
            };
            let bytes = rest.get(..len).unwrap_or_default();
            if !self.take(world, &op, bytes, shared.as_ref(), budget) {
                return Received { consumed, next: self.pause() };
            }
            consumed += len;
        }
    }

    /// Takes one operation; false where it was not taken, because it waits for the end of the memory alarm or for
    /// a queue where it came from.
    #[inline]
    fn take<W: World>(
        &mut self,
        world: &W,
        op: &ClientOp<'_>,
        bytes: &[u8],
        shared: Option<&Bytes>,
        budget: &mut Budget,
    ) -> bool {
        if self.wishes.come_before(op) {
            self.fulfil_wishes(world);
        }
        match action(self.state, Kind::of(op)) {
            Action::Publish if world.is_alarmed() => return self.begin_to_park(world, bytes),
            Action::Publish | Action::Perform => {
                if !self.perform(world, op, shared, budget) {
                    self.is_held = true;
                    return self.begin_to_park(world, bytes);
                }
                if let ClientOp::Publish(publish) = op {
                    self.repeat.note(&self.session, publish, bytes);
                }
            }
            Action::Park => self.parked.push(bytes, world.gauge()),
            Action::LogIn => {
                let ClientOp::Connect(json) = op else { return true };
                self.log_in(world, Some(json));
                budget.spend(1, 0, None);
            }
            Action::LogInUnasked => self.log_in(world, None),
            Action::Ignore => {}
        }
        true
    }

    /// Publishes the messages that the input begins with, if their lines are one seen before; gives their bytes.
    #[inline]
    fn publish_again<W: World>(&mut self, world: &W, input: &[u8], budget: &mut Budget) -> Option<usize> {
        if self.state != State::Open || !self.wishes.is_empty() || world.is_alarmed() {
            return None;
        }
        let sent = self.repeat.send(&self.session, world, input, budget)?;
        self.decoder.pass_over();
        budget.spend(sent.operations, sent.report.receivers, sent.report.pressed);
        Some(sent.bytes)
    }

    /// Does what an operation asks for; false where nothing was done, as a queue is too long.
    #[inline]
    fn perform<W: World>(
        &mut self,
        world: &W,
        op: &ClientOp<'_>,
        shared: Option<&Bytes>,
        budget: &mut Budget,
    ) -> bool {
        if let ClientOp::Publish(publish) = op {
            return self.publish(world, publish, shared, budget);
        }
        match op {
            ClientOp::Subscribe(_) | ClientOp::Unsubscribe(_) => budget.spend_change(),
            _ => budget.spend(1, 0, None),
        }
        if let ClientOp::Subscribe(subscribe) = op
            && self.wishes.has(&self.session, subscribe.sid)
        {
            // One that is refused leaves its sid to the next.
            self.fulfil_wishes(world);
        }
        match op {
            ClientOp::Subscribe(subscribe) => match self.wishes.add(&mut self.session, world, subscribe) {
                Ok(()) if self.session.options.verbose => {
                    // The answer to a SUB for a sid in use says nothing else.
                    if self.wishes.is_empty() {
                        self.session.agree(world);
                    }
                    self.fulfil_wishes(world);
                }
                Ok(()) => {}
                Err(complaint) => {
                    self.refuse(world, &complaint, "this connection has as many as it may have");
                }
            },
            ClientOp::Unsubscribe(op) => {
                self.wishes.end(&mut self.session, world, op);
                if self.session.options.verbose {
                    self.fulfil_wishes(world);
                    self.session.agree(world);
                }
            }
            ClientOp::Ping => self.answer_ping(world),
            ClientOp::Pong => self.pulse.answered(),
            ClientOp::Publish(_) | ClientOp::Connect(_) | ClientOp::Nothing => {}
        }
        true
    }

    #[inline]
    fn publish<W: World>(
        &mut self,
        world: &W,
        op: &Publish<'_>,
        shared: Option<&Bytes>,
        budget: &mut Budget,
    ) -> bool {
        match publish(&mut self.session, world, op, shared) {
            Ok(Some(report)) => budget.spend(1, report.receivers, report.pressed),
            Ok(None) => return false,
            Err(complaint) => {
                budget.spend(1, 0, None);
                self.refuse(world, &complaint, "a message was not published");
            }
        }
        true
    }

    /// Makes the subscriptions that the client has asked for, or ends those that it wants no more.
    #[inline]
    fn fulfil_wishes<W: World>(&mut self, world: &W) {
        if self.wishes.is_empty() || self.state == State::Closed {
            return;
        }
        for result in self.wishes.fulfil(&mut self.session, world) {
            match result {
                Ok(()) => self.session.agree(world),
                Err(complaint) => self.refuse(world, &complaint, "a subscription was not made"),
            }
        }
    }

    fn answer_ping<W: World>(&mut self, world: &W) {
        let informs = !self.is_informed && self.session.options.protocol >= 1;
        self.is_informed = true;
        let info = informs.then(|| Info { connect_info: true, ..self.info() });
        self.session.answer(world, |out| {
            out.extend_from_slice(PONG);
            if let Some(info) = &info {
                push_info(out, info);
            }
        });
    }

    fn log_in<W: World>(&mut self, world: &W, json: Option<&[u8]>) {
        self.repeat.clear();
        match log_in(&mut self.session, world, &self.peer, json) {
            Ok(()) => {
                if self.state == State::Greeting {
                    self.state = State::Open;
                    self.pulse.logged_in(world.now());
                }
                if json.is_some() {
                    self.session.agree(world);
                }
            }
            Err(complaint) => self.refuse(world, &complaint, "a CONNECT was refused"),
        }
    }

    fn info(&self) -> Info {
        let settings = &self.session.settings;
        let address = &self.peer.address;
        Info {
            server_id: settings.server_id.clone(),
            server_name: settings.server_name.clone(),
            version: settings.version.clone(),
            proto: 1,
            host: settings.host.clone(),
            port: settings.port,
            headers: true,
            // Nobody but a guest on this machine is known.
            auth_required: !self.peer.is_loopback,
            tls_required: settings.tls_required,
            max_payload: settings.limits.payload_bytes_max,
            client_id: self.peer.number,
            client_ip: match address.parse::<SocketAddr>() {
                Ok(address) => address.ip().to_string(),
                Err(_) => address.clone(),
            },
            connect_urls: settings.connect_urls.clone(),
            connect_info: false,
            ldm: false,
        }
    }

    /// Says that nothing of this client would help to free memory.
    fn only_publishes<W: World>(&self, world: &W) -> bool {
        world.with_outbound(self.session.connection, |outbound| outbound.readers_len() > 0) != Some(true)
    }

    fn is_full(&self) -> bool {
        self.parked.bytes() >= self.session.settings.parked_bytes_max
    }

    fn pause(&mut self) -> Next {
        self.pulse.pause();
        Next::Parked
    }

    /// Lets an operation wait that publishes, and what comes behind it that has to; false where it came from.
    #[cold]
    fn begin_to_park<W: World>(&mut self, world: &W, bytes: &[u8]) -> bool {
        if self.only_publishes(world) {
            return false;
        }
        self.state = State::Parking;
        self.parked.push(bytes, world.gauge());
        true
    }

    /// Does what was parked as far as alarms and queues allow; none where nothing waits any more, or reading goes on.
    fn replay<W: World>(&mut self, world: &W, budget: &mut Budget) -> Option<Next> {
        if self.parked.is_empty() {
            return None;
        }
        if self.is_held || world.is_alarmed() {
            // Reading goes on unless too much waits.
            return self.is_full().then(|| self.pause());
        }
        let mut decoder = Decoder::new(self.session.settings.limits);
        let mut parked = std::mem::take(&mut self.parked);
        let next = self.replay_first(world, &mut parked, &mut decoder, budget);
        if self.state == State::Closed {
            return Some(Next::Close);
        }
        self.parked = parked;
        if next.is_some() {
            return next;
        }
        if self.parked.is_empty() {
            self.state = State::Open;
            return None;
        }
        match self.is_held {
            true => self.is_full().then(|| self.pause()),
            false => Some(self.pause()),
        }
    }

    /// Does what comes first until something has to wait.
    fn replay_first<W: World>(
        &mut self,
        world: &W,
        parked: &mut Parked,
        decoder: &mut Decoder,
        budget: &mut Budget,
    ) -> Option<Next> {
        while let Some(bytes) = parked.front() {
            // It was an operation before.
            if let Ok(Step::Op { op, .. }) = decoder.client_op(bytes)
                && !self.perform(world, &op, None, budget)
            {
                self.is_held = true;
                return None;
            }
            parked.pop();
            if self.state == State::Closed || parked.is_empty() {
                return None;
            }
            if budget.is_spent() {
                return Some(budget.close(Next::Again));
            }
            if world.is_alarmed() {
                return None;
            }
        }
        None
    }

    /// Bytes are no operation: where the next one would begin is not known (SECURITY XPI-03).
    #[cold]
    fn refuse_bytes<W: World>(&mut self, world: &W, error: &DecodeError) {
        self.fulfil_wishes(world);
        self.refuse(world, &Complaint::from(error), &error.to_string());
    }

    /// Sends an -ERR, and ends the connection if it is one that does.
    #[cold]
    fn refuse<W: World>(&mut self, world: &W, complaint: &Complaint, text: &str) {
        let (said, is_last) = (complaint.text(), complaint.is_last());
        world.with_outbound(self.session.connection, |outbound| {
            if is_last {
                // First, so that this answer, should it be one too many, is not followed by another.
                Outbound::finish(outbound);
            }
            outbound.answer(SESSION, Confirm::NOW, |out| push_error(out, &said));
        });
        self.refusal = Some(Refusal { message: complaint.message(), text: format!("{said}: {text}") });
        if is_last {
            self.close();
        }
    }

    fn close(&mut self) {
        self.state = State::Closed;
        self.parked.clear();
    }
}

#[cfg(test)]
mod tests;
