//! What a client says: bytes in, commands to the broker, answers into the connection's outbound half.
//!
//! It reads no socket and no clock. One connection is fed by one caller; what goes the other
//! way is written by whoever has something for it.

use std::sync::Arc;

use bytes::Bytes;
use imori_core::broker::{self, Actor};
use imori_core::confirm::Confirm;
use imori_core::id::ConnectionId;
use imori_core::inbound::Inbound;
use imori_core::message::BODY_SHARED_MIN;
use imori_core::outbound::{Encoder, Outbound};
use imori_core::time::Time;
use imori_core::turn::{Budget, ClientFacts, Next, Peer, Received, Refusal};
use imori_core::world::{Event, World};

use crate::command::Command;
use crate::commit::{abort, begin, commit};
use crate::complaint::{Complaint, push_error, push_receipt};
use crate::decode::{Decoder, Step};
use crate::error::DecodeError;
use crate::frame::{Frame, HeaderTable};
use crate::login::log_in;
use crate::message::MessageEncoder;
use crate::parked::{Parked, Waiting};
use crate::pulse::Pulse;
use crate::repeat::{Repeat, Sent};
use crate::send::send;
use crate::session::{SESSION, Session};
use crate::settings::Settings;
use crate::settle::settle;
use crate::subscribe::{subscribe, unsubscribe};
use crate::turn::{Done, Says};
use crate::version::Version;

/// The inbound half of a connection.
#[derive(Debug)]
pub struct Connection {
    state: State,
    session: Session,
    peer: Peer,
    decoder: Decoder,
    parked: Parked,
    pulse: Pulse,
    refusal: Option<Refusal>,
    repeat: Repeat,
    /// What it published last, or what is parked first, waits for a queue, which will say when to try again.
    is_held: bool,
}

/// Where a connection stands.
///
/// ```text
///          CONNECT      SEND in a memory alarm, or to a queue   alarm over
///  Greeting ──────► Open ◄──────────────────────────► Parking ──────────┐
///     │              │  alarm over, queue shorter       │ DISCONNECT    │
///     │ any other    │ DISCONNECT                       ▼               │
///     │ frame        │                               Leaving            │
///     ▼              ▼                                  │ alarm over    │
///   Closed ◄─────────┴──────── any error ───────────────┴───────────────┘
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The client has not logged in.
    Greeting,
    /// All frames are worked off as they come.
    Open,
    /// Publishes wait for the end of a memory alarm or for a queue; all else is worked off as it comes.
    Parking,
    /// As before, and the client has said goodbye.
    Leaving,
    /// Nothing counts any more.
    Closed,
}

/// What a frame leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// Log in.
    LogIn,
    /// Do what it asks for.
    Perform,
    /// Do what it asks for, but let it wait if there is a memory alarm, or a queue is too long that gets it.
    Publish,
    /// Let it wait.
    Park,
    /// Let it wait if its transaction does, else do what it asks for.
    ParkWithTransaction,
    /// Nothing.
    Ignore,
    /// Refuse it: the client has to log in first.
    RefuseBeforeLogin,
    /// Refuse it: the client is logged in.
    RefuseSecondLogin,
    /// Refuse it: only the broker sends such.
    RefuseServerFrame,
}

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Performed {
    /// It is worked off, and this is next if it is not the next frame.
    Done(Option<Next>),
    /// Nothing: a queue is too long.
    Held,
}

/// The whole state machine: every state and every command (SECURITY LIM-11).
#[inline]
fn action(state: State, command: Command) -> Action {
    use Command as C;
    match (state, command) {
        (State::Leaving | State::Closed, _) => Action::Ignore,
        (_, C::Connected | C::Message | C::Receipt | C::Error) => Action::RefuseServerFrame,
        (State::Greeting, C::Connect | C::Stomp) => Action::LogIn,
        (State::Greeting, _) => Action::RefuseBeforeLogin,
        (State::Open | State::Parking, C::Connect | C::Stomp) => Action::RefuseSecondLogin,
        (State::Open, C::Send | C::Commit) => Action::Publish,
        (State::Open, C::Ack | C::Nack | C::Begin | C::Abort) => Action::Perform,
        (State::Open | State::Parking, C::Subscribe | C::Unsubscribe) => Action::Perform,
        (State::Open, C::Disconnect) => Action::Perform,
        (State::Parking, C::Send | C::Disconnect) => Action::Park,
        (State::Parking, C::Ack | C::Nack | C::Begin | C::Commit | C::Abort) => Action::ParkWithTransaction,
    }
}

impl Inbound for Connection {
    type Settings = Settings;
    type Scratch = HeaderTable;

    fn new(settings: Arc<Settings>, id: ConnectionId, peer: Peer, now: Time) -> Self {
        Self {
            state: State::Greeting,
            peer,
            decoder: Decoder::new(settings.limits.clone()),
            parked: Parked::default(),
            refusal: None,
            pulse: Pulse::new(now.after(settings.login_timeout), now),
            session: Session::new(settings, id),
            repeat: Repeat::default(),
            is_held: false,
        }
    }

    /// The version is not agreed on yet.
    fn encoder(settings: &Settings) -> Box<dyn Encoder> {
        Box::new(MessageEncoder::new(Version::V10, settings))
    }

    fn actor(&self) -> Actor<'_> {
        self.session.actor()
    }

    fn receive<W: World>(
        &mut self,
        world: &W,
        table: &mut HeaderTable,
        input: &[u8],
        shared: Option<&Bytes>,
        budget: &mut Budget,
    ) -> Received {
        self.pulse.received(world.now());
        if let Some(next) = self.replay(world, table, budget) {
            return Received { consumed: 0, next };
        }
        let mut consumed = 0;
        loop {
            match self.state {
                State::Closed => return Received { consumed: input.len(), next: Next::Close },
                State::Leaving => return Received { consumed: input.len(), next: Next::Parked },
                _ if budget.is_spent() => return Received { consumed, next: budget.close(Next::Again) },
                _ if self.is_full() => return Received { consumed, next: self.pause() },
                _ => {}
            }
            let rest = input.get(consumed..).unwrap_or_default();
            if let Some(len) = self.send_again(world, rest, budget) {
                consumed += len;
                continue;
            }
            let (frame, len) = match self.decoder.decode(rest, table) {
                Ok(Step::Frame { frame, consumed }) => (frame, consumed),
                Ok(Step::LineEnds { consumed: len }) => {
                    consumed += len;
                    continue;
                }
                Ok(Step::Incomplete { needed }) => {
                    return Received { consumed, next: budget.close(Next::More { frame_bytes: needed }) };
                }
                Err(error) => {
                    self.refuse_bytes(world, &error);
                    continue;
                }
            };
            let body_end = consumed + len - 1;
            let shared = match shared {
                Some(input) if frame.body.len() >= BODY_SHARED_MIN && body_end < input.len() => {
                    Some(input.slice(body_end - frame.body.len()..body_end))
                }
                _ => None,
            };
            let bytes = rest.get(..len).unwrap_or_default();
            let next = self.take(world, &frame, bytes, shared.as_ref(), budget);
            if next == Some(Next::Parked) {
                return Received { consumed, next: Next::Parked };
            }
            consumed += len;
            if let Some(next) = next {
                return Received { consumed, next };
            }
        }
    }

    fn is_logged_in(&self) -> bool {
        self.state != State::Greeting && !self.session.name.is_empty()
    }

    /// STOMP clients tell no more than the version that was agreed on.
    fn client(&self) -> ClientFacts {
        ClientFacts { version: self.session.version.as_str().to_owned(), ..ClientFacts::default() }
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
        if self.state == State::Closed { None } else { self.pulse.next_deadline() }
    }

    /// Sends a heart-beat where nothing else was sent, and ends a connection that has not logged in or has fallen
    /// silent.
    fn tick<W: World>(&mut self, world: &W) -> Next {
        if self.state == State::Closed {
            return Next::Close;
        }
        let due = self.pulse.due(world.now());
        if due.login {
            // SECURITY LIM-02: whoever sends a byte now and then is no exception.
            self.close();
            return Next::Close;
        }
        if let Some(max) = due.silence {
            let text = format_args!(
                "nothing was received for {} s, twice the agreed heart-beat; send one in time or agree on longer ones",
                max.as_secs_f32()
            );
            self.refuse(world, &Complaint::last("Missed heart-beat", text), None);
            return Next::Close;
        }
        if due.beat {
            let pulse = &mut self.pulse;
            world.with_outbound(self.session.connection, |outbound| {
                if pulse.is_idle(outbound.appended()) {
                    outbound.beat(b"\n");
                    pulse.is_idle(outbound.appended());
                }
            });
        }
        if self.pulse.is_paused() { Next::Parked } else { Next::More { frame_bytes: None } }
    }

    fn alarm_ended<W: World>(&mut self, world: &W) -> Next {
        if self.is_held {
            // There may be input behind what waits that need not wait.
            return if self.pulse.is_paused() { Next::Parked } else { Next::Again };
        }
        self.pulse.received(world.now());
        let next = self.replay(world, &mut HeaderTable::default(), &mut Budget::default());
        next.unwrap_or(Next::Again)
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
    /// Takes one frame. [`Next::Parked`] means that it was not taken.
    #[inline]
    fn take<W: World>(
        &mut self,
        world: &W,
        frame: &Frame<'_>,
        bytes: &[u8],
        shared: Option<&Bytes>,
        budget: &mut Budget,
    ) -> Option<Next> {
        match action(self.state, frame.command) {
            Action::Publish if !self.must_park(world, frame) => {
                let Performed::Done(next) = self.perform(world, frame, shared, budget) else {
                    self.is_held = true;
                    return self.begin_to_park(world, frame, bytes);
                };
                if frame.command == Command::Send && self.state == State::Open {
                    self.repeat.note(&mut self.session, world, frame, bytes);
                }
                next
            }
            Action::Perform => self.perform_at_once(world, frame, budget),
            Action::Publish => self.begin_to_park(world, frame, bytes),
            Action::Park => {
                self.park(world, frame, bytes);
                None
            }
            Action::ParkWithTransaction => {
                let waits = match frame.headers.value("transaction") {
                    // Also where the alarm is over by now: what is parked comes first, and with a COMMIT among it
                    // there is room for another transaction again.
                    Some(name) => {
                        let is_full = self.session.transactions.is_full(&self.session.settings.limits);
                        self.parked.has_transaction(&name)
                            || self.publishes(frame)
                            || frame.command == Command::Begin && is_full
                    }
                    // A later ACK of all before it would settle what a transaction that waits names.
                    None => {
                        self.parked.has_settles() && matches!(frame.command, Command::Ack | Command::Nack)
                    }
                };
                if waits {
                    self.park(world, frame, bytes);
                    return None;
                }
                self.perform_at_once(world, frame, budget)
            }
            Action::Ignore => None,
            Action::LogIn => self.greet(world, frame),
            Action::RefuseBeforeLogin => {
                let text = format_args!("{} is not allowed before login; send CONNECT first", frame.command);
                self.refuse(world, &Complaint::last("Illegal command", text), Some(frame))
            }
            Action::RefuseSecondLogin => {
                let text = "this connection is logged in already; open another for another login";
                self.refuse(world, &Complaint::last("Illegal command", text), Some(frame))
            }
            Action::RefuseServerFrame => {
                let text =
                    format_args!("{} is sent by brokers only; send a command for clients", frame.command);
                self.refuse(world, &Complaint::last("Bad command", text), Some(frame))
            }
        }
    }

    /// Publishes the frames that the input begins with, if their heads are one seen before; gives their bytes.
    #[inline]
    fn send_again<W: World>(&mut self, world: &W, input: &[u8], budget: &mut Budget) -> Option<usize> {
        if self.state != State::Open || must_wait(world) {
            return None;
        }
        let Sent { bytes, frames, report } = self.repeat.send(&self.session, world, input, budget)?;
        self.decoder.pass_over();
        self.session.confirm(report.confirm);
        budget.spend(frames, report.receivers, report.pressed);
        Some(bytes)
    }

    /// Does what a frame asks for and gives its receipt.
    #[inline]
    fn perform<W: World>(
        &mut self,
        world: &W,
        frame: &Frame<'_>,
        shared: Option<&Bytes>,
        budget: &mut Budget,
    ) -> Performed {
        let done = if frame.command == Command::Send {
            send(&mut self.session, world, frame, shared)
        } else {
            self.perform_other(world, frame)
        };
        if matches!(frame.command, Command::Subscribe | Command::Unsubscribe) {
            budget.spend_change();
        }
        match done {
            Ok(done) if done.is_held => Performed::Held,
            Ok(done) => {
                budget.spend(done.commands, done.receivers, done.pressed);
                let confirm = self.session.confirm(done.confirm);
                if let Some(receipt) = done.receipt {
                    self.give_receipt(world, receipt, confirm, done.says);
                }
                if self.state == State::Closed {
                    world.with_outbound(self.session.connection, Outbound::finish);
                    return Performed::Done(Some(Next::Close));
                }
                Performed::Done(None)
            }
            Err(complaint) => Performed::Done(self.refuse(world, &complaint, Some(frame))),
        }
    }

    /// Does what a frame asks for that publishes nothing: no queue can hold it up.
    #[inline(never)]
    fn perform_at_once<W: World>(
        &mut self,
        world: &W,
        frame: &Frame<'_>,
        budget: &mut Budget,
    ) -> Option<Next> {
        match self.perform(world, frame, None, budget) {
            Performed::Done(next) => next,
            Performed::Held => None,
        }
    }

    fn perform_other<'a, W: World>(&mut self, world: &W, frame: &Frame<'a>) -> Result<Done<'a>, Complaint> {
        let receipt = frame.headers.raw("receipt");
        let session = &mut self.session;
        match frame.command {
            Command::Ack | Command::Nack => settle(session, world, frame, receipt),
            // While frames are parked the receipt has to wait behind them.
            Command::Subscribe if !self.parked.is_empty() => {
                subscribe(session, world, frame, None).map(|done| Done { receipt, ..done })
            }
            Command::Subscribe => subscribe(session, world, frame, receipt),
            Command::Unsubscribe => unsubscribe(session, world, frame, receipt),
            Command::Begin => begin(session, frame, receipt),
            Command::Commit => commit(session, world, frame, receipt),
            Command::Abort => abort(session, frame, receipt),
            _ => {
                // DISCONNECT: nothing else gets here.
                self.state = State::Closed;
                Ok(Done::with_receipt(receipt))
            }
        }
    }

    fn greet<W: World>(&mut self, world: &W, frame: &Frame<'_>) -> Option<Next> {
        match log_in(&mut self.session, world, &self.peer, frame) {
            Ok(agreed) => {
                self.decoder.connected(self.session.version);
                self.pulse.logged_in(agreed, world.now());
                self.state = State::Open;
                None
            }
            Err(complaint) => self.refuse(world, &complaint, Some(frame)),
        }
    }

    /// Gives a receipt, behind those that wait.
    #[inline]
    fn give_receipt<W: World>(&mut self, world: &W, receipt: &[u8], confirm: Confirm, says: Says) {
        if self.parked.is_empty() {
            let given = world.with_outbound(self.session.connection, |outbound| match says.promises() {
                true => {
                    let write = |out: &mut Vec<u8>| push_receipt(out, receipt, says, confirm.level);
                    outbound.promise(SESSION, confirm, confirm.level, write)
                }
                false => {
                    outbound.answer(SESSION, confirm, |out| push_receipt(out, receipt, says, confirm.level));
                    false
                }
            });
            if given == Some(true) {
                world.count(Event::confirmed(confirm.level));
            }
        } else {
            self.parked.park_receipt(receipt, world.gauge());
        }
    }

    /// Says that a frame would publish while memory is short, or to the disk while that takes nothing.
    #[inline]
    fn must_park<W: World>(&self, world: &W, frame: &Frame<'_>) -> bool {
        let is_kept = || frame.command == Command::Commit || frame.headers.raw("persistent") == Some(b"true");
        (world.is_alarmed() || world.is_disk_alarmed() && is_kept()) && self.publishes(frame)
    }

    /// Says that a frame publishes.
    #[inline]
    fn publishes(&self, frame: &Frame<'_>) -> bool {
        match frame.command {
            Command::Send => true,
            Command::Commit => {
                let name = frame.headers.value("transaction");
                name.is_some_and(|name| self.session.transactions.publishes(&name))
            }
            _ => false,
        }
    }

    /// Says that nothing of this client would help to free memory.
    fn only_publishes<W: World>(&self, world: &W) -> bool {
        let reads = world.with_outbound(self.session.connection, |outbound| {
            outbound.readers_len() > 0 || outbound.unsettled_len() > 0
        });
        reads != Some(true)
    }

    /// Lets a frame wait that publishes, and what comes behind it that has to. [`Next::Parked`]: where it came from.
    #[cold]
    fn begin_to_park<W: World>(&mut self, world: &W, frame: &Frame<'_>, bytes: &[u8]) -> Option<Next> {
        if self.only_publishes(world) {
            return Some(self.pause());
        }
        self.state = State::Parking;
        self.park(world, frame, bytes);
        None
    }

    fn park<W: World>(&mut self, world: &W, frame: &Frame<'_>, bytes: &[u8]) {
        let transaction = frame.headers.value("transaction");
        let settles = match frame.command {
            Command::Ack | Command::Nack => true,
            Command::Commit => {
                transaction.as_deref().is_some_and(|name| self.session.transactions.settles(name))
            }
            _ => false,
        };
        self.parked.park(bytes, transaction.as_deref(), settles, world.gauge());
        if frame.command == Command::Disconnect {
            self.state = State::Leaving;
        }
    }

    fn is_full(&self) -> bool {
        self.parked.bytes() >= self.session.settings.parked_bytes_max
    }

    fn pause(&mut self) -> Next {
        self.pulse.pause();
        Next::Parked
    }

    /// Does what was parked as far as alarms and queues allow; none where nothing waits any more, or reading goes on.
    fn replay<W: World>(&mut self, world: &W, table: &mut HeaderTable, budget: &mut Budget) -> Option<Next> {
        if self.parked.is_empty() {
            return None;
        }
        if !self.is_held && !must_wait(world) {
            // What is worked off meanwhile gives its receipt before those that wait still.
            let mut parked = std::mem::take(&mut self.parked);
            let next = self.replay_first(world, &mut parked, table, budget);
            if self.state == State::Closed {
                return next;
            }
            self.parked = parked;
            if next.is_some() {
                return next;
            }
            if self.parked.is_empty() {
                self.state = State::Open;
                return None;
            }
            if !self.is_held {
                return Some(self.pause());
            }
        }
        // Reading goes on unless the client has left or too much waits.
        let is_over = self.state == State::Leaving || self.is_full();
        is_over.then(|| self.pause())
    }

    /// Does what comes first until something has to wait.
    fn replay_first<W: World>(
        &mut self,
        world: &W,
        parked: &mut Parked,
        table: &mut HeaderTable,
        budget: &mut Budget,
    ) -> Option<Next> {
        let mut decoder = Decoder::new(self.session.settings.limits.clone());
        decoder.connected(self.session.version);
        while let Some(waiting) = parked.front() {
            let performed = match waiting {
                Waiting::Receipt(receipt) => {
                    self.answer(world, receipt);
                    Performed::Done(None)
                }
                Waiting::Frame(bytes) => match decoder.decode(bytes, table) {
                    Ok(Step::Frame { frame, .. }) => self.perform(world, &frame, None, budget),
                    // It was a frame before.
                    _ => Performed::Done(None),
                },
            };
            let Performed::Done(next) = performed else {
                self.is_held = true;
                return None;
            };
            parked.pop();
            if next.is_some() || parked.is_empty() {
                return next;
            }
            if budget.is_spent() {
                return Some(budget.close(Next::Again));
            }
            if must_wait(world) {
                return None;
            }
        }
        None
    }

    fn answer<W: World>(&self, world: &W, receipt: &[u8]) {
        world.with_outbound(self.session.connection, |outbound| {
            let confirm = self.session.unconfirmed;
            outbound.answer(SESSION, confirm, |out| push_receipt(out, receipt, Says::Nothing, confirm.level));
        });
    }

    /// Bytes are no frame: where the next one would begin is not known (SECURITY XPI-03).
    #[cold]
    fn refuse_bytes<W: World>(&mut self, world: &W, error: &DecodeError) {
        let complaint = if self.state == State::Greeting {
            // Whoever this is, it need not be told more.
            Complaint::last("Malformed frame", "what came is no STOMP frame; send CONNECT first")
        } else {
            Complaint::last("Malformed frame", error)
        };
        self.refuse(world, &complaint, None);
    }

    /// Sends an ERROR, and ends the connection unless it may stay open.
    #[cold]
    fn refuse<W: World>(
        &mut self,
        world: &W,
        complaint: &Complaint,
        frame: Option<&Frame<'_>>,
    ) -> Option<Next> {
        let receipt = frame.and_then(|frame| frame.headers.raw("receipt"));
        let version = self.session.version;
        // STOMP 1.1 and 1.2, ERROR: the server MUST close the connection just after it.
        let is_last = complaint.is_final() || !self.session.settings.keeps_open_after_error;
        world.with_outbound(self.session.connection, |outbound| {
            if is_last {
                // First, so that this answer, should it be one too many, is not followed by another ERROR.
                outbound.finish();
            }
            outbound.answer(SESSION, Confirm::NOW, |out| push_error(out, version, complaint, receipt, b""));
        });
        self.refusal = Some(Refusal { message: complaint.message(), text: complaint.text().to_string() });
        if is_last {
            self.close();
            return Some(Next::Close);
        }
        None
    }

    fn close(&mut self) {
        self.state = State::Closed;
        self.parked.clear();
        self.session.transactions.clear();
    }
}

/// Says that some publishes have to wait, and what is parked with them.
#[inline]
fn must_wait<W: World>(world: &W) -> bool {
    world.is_alarmed() || world.is_disk_alarmed()
}

#[cfg(test)]
mod tests;
