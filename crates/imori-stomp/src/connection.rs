//! The inbound half of a connection: turns bytes into broker commands and queues the answers on the
//! outbound half.
//!
//! Reads no socket and no clock. One caller feeds a connection; any cell with deliveries for its
//! client writes to the outbound half.

use std::sync::Arc;

use bytes::Bytes;
use imori_core::authorize::Identity;
use imori_core::broker::{Actor, Revoked};
use imori_core::confirm::Confirm;
use imori_core::error::BrokerError;
use imori_core::id::ConnectionId;
use imori_core::inbound::{
    Accept, Inbound, Intake, Keepalive, Performed, Phase, Repeat, Repeated, Taken, Unread, park,
};
use imori_core::outbound::{Encoder, Outbound, SessionId};
use imori_core::room::Room;
use imori_core::time::Time;
use imori_core::turn::{Budget, ClientFacts, Next, Notice, Peer};
use imori_core::world::World;

use crate::client::{Client, SESSION};
use crate::codec::command::Command;
use crate::codec::decode::{Decoder, Step};
use crate::codec::error::DecodeError;
use crate::codec::frame::{Frame, HeaderTable};
use crate::codec::number::parse_bool;
use crate::codec::version::Version;
use crate::commands::commit::{abort, begin, commit};
use crate::commands::foreign::unknown_headers;
use crate::commands::login::log_in;
use crate::commands::repeat::note;
use crate::commands::send::send;
use crate::commands::settle::settle;
use crate::commands::subscribe::{subscribe, unsubscribe};
use crate::delivery::DeliveryEncoder;
use crate::outcome::{FrameOutcome, ReceiptKind};
use crate::parked::{Parked, ParkedMarks};
use crate::protocol_error::{ProtocolError, push_error, push_receipt};
use crate::settings::Settings;

/// The inbound half of a connection.
#[derive(Debug)]
pub struct Connection {
    state: State,
    intake: Intake,
    client: Client,
    decoder: Decoder,
    /// Transactions and settles among the parked frames, which hold up later frames.
    marks: ParkedMarks,
    keepalive: Keepalive,
    repeat: Repeat,
    /// An unknown header of SUBSCRIBE was already logged for this connection.
    has_unknown: bool,
}

/// State of a connection.
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
    /// Before login. CONNECT stays in the input until the credentials are checked, then is read
    /// again.
    Greeting,
    /// Every frame is performed on arrival.
    Open,
    /// Publishes wait for the end of a memory alarm or for a queue to shrink; other frames are
    /// performed on arrival.
    Parking,
    /// As `Parking`, after the client has sent DISCONNECT.
    Leaving,
    /// Every frame is ignored.
    Closed,
}

/// The treatment of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// Log in.
    LogIn,
    /// Perform the frame.
    Perform,
    /// Perform the frame, or park it during a memory alarm or if a target queue is too long.
    Publish,
    /// Park the frame.
    Park,
    /// Park the frame if it must stay behind parked frames, else perform it.
    ParkWithTransaction,
    /// Drop the frame.
    Ignore,
    /// Refuse the frame: the client must log in first.
    RefuseBeforeLogin,
    /// Refuse the frame: the client is already logged in.
    RefuseSecondLogin,
    /// Refuse the frame: only brokers send it.
    RefuseServerFrame,
}

/// The whole state machine: an action for every state and command (SECURITY LIM-11).
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

impl Accept for Connection {
    type Settings = Settings;

    fn new(settings: Arc<Settings>, id: ConnectionId, peer: Peer, now: Time) -> Self {
        Self {
            state: State::Greeting,
            intake: Intake::new(peer, settings.login_timeout, settings.parked_bytes_max, now),
            decoder: Decoder::new(settings.limits.clone()),
            marks: ParkedMarks::default(),
            keepalive: Keepalive::new(now),
            client: Client::new(settings, id),
            repeat: Repeat::default(),
            has_unknown: false,
        }
    }

    /// Starts with STOMP 1.0, as the version is negotiated at login.
    fn encoder(settings: &Settings) -> Box<dyn Encoder> {
        Box::new(DeliveryEncoder::new(Version::V10, settings))
    }
}

impl Inbound for Connection {
    type Scratch = HeaderTable;

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
            State::Leaving => Phase::Leaving,
            State::Closed => Phase::Closed,
        }
    }

    fn close(&mut self) {
        self.state = State::Closed;
        self.intake.parking.clear();
        self.marks = ParkedMarks::default();
        self.client.transactions.clear();
    }

    fn set_identity(&mut self, identity: Identity) {
        self.client.set_identity(identity);
        self.repeat.clear();
    }

    /// Ends the connection, like any other refusal.
    fn readers_revoked<W: World>(&mut self, world: &W, revoked: Vec<Revoked>) {
        let is_gone = |reader| revoked.iter().any(|revoked| revoked.reader == reader);
        self.client.subscriptions.retain(|_, subscription| !is_gone(subscription.reader));
        for Revoked { refusal, .. } in revoked {
            if self.state != State::Closed {
                self.refuse(world, &ProtocolError::from(BrokerError::from(refusal)), None);
            }
        }
    }

    fn is_logged_in(&self) -> bool {
        self.state != State::Greeting && !self.client.name.is_empty()
    }

    /// Reports only the version; STOMP clients do not identify their software.
    fn client(&self) -> ClientFacts {
        let version = self.client.version.as_str();
        ClientFacts {
            version: version.to_owned(),
            user: self.client.identity.user.to_string(),
            vhost: Some(self.client.vhost),
            protocol: format!("STOMP {version}"),
            ..ClientFacts::default()
        }
    }

    #[inline]
    fn take<W: World>(
        &mut self,
        world: &W,
        table: &mut HeaderTable,
        unread: Unread<'_>,
        budget: &mut Budget,
    ) -> Taken {
        let input = unread.bytes();
        if let Some(bytes) = self.send_again(world, input, budget) {
            return Taken::Bytes(bytes);
        }
        let (frame, len) = match self.decoder.decode(input, table) {
            Ok(Step::Frame { frame, consumed }) => (frame, consumed),
            Ok(Step::Noise { consumed }) => return Taken::Bytes(consumed),
            Ok(Step::Incomplete { needed }) => return Taken::Incomplete { frame_bytes: needed },
            Err(error) => {
                self.refuse_bytes(world, &error);
                return Taken::Bytes(0);
            }
        };
        // The frame ends with a NUL after the body.
        let body = unread.kept_body(len - 1, frame.body.len());
        self.take_frame(world, &frame, input.get(..len).unwrap_or_default(), body.as_ref(), budget)
    }

    fn replay<W: World>(
        &mut self,
        world: &W,
        table: &mut HeaderTable,
        parked: &[u8],
        budget: &mut Budget,
    ) -> Performed {
        match Parked::decode(parked) {
            Parked::Receipt(receipt) => {
                self.answer(world, receipt);
                Performed::Done
            }
            Parked::Frame(bytes) => {
                let mut decoder = Decoder::new(self.client.settings.limits.clone());
                decoder.connected(self.client.version);
                match decoder.decode(bytes, table) {
                    Ok(Step::Frame { frame, .. }) => self.perform(world, &frame, None, budget),
                    // Unreachable: the same bytes decoded as a frame before they were parked.
                    _ => Performed::Done,
                }
            }
        }
    }

    fn replayed(&mut self, _: SessionId) {
        self.state = State::Open;
        self.marks = ParkedMarks::default();
    }

    /// Logs the timeout but sends no ERROR: the client may speak another protocol and wait for the
    /// broker to start.
    fn login_timed_out<W: World>(&mut self, _: &W) {
        let text = String::from("no CONNECT came in time; send it at once");
        self.intake.notice = Some(Notice::refused("no login in time", text));
        self.close();
    }

    fn keepalive_deadline(&self) -> Option<Time> {
        self.keepalive.next_deadline(&self.intake.reading)
    }

    /// Sends a heart-beat if the connection is idle; ends the connection if the client has been
    /// silent too long.
    fn keep_alive<W: World>(&mut self, world: &W) {
        let due = self.keepalive.due(world.now(), &self.intake.reading);
        if let Some(max) = due.silence {
            let text = format_args!(
                "nothing was received for {} s, twice the agreed heart-beat; send one in time or agree on longer ones",
                max.as_secs_f32()
            );
            self.refuse(world, &ProtocolError::last("Missed heart-beat", text), None);
        } else if due.beat {
            let keepalive = &mut self.keepalive;
            world.with_outbound(self.client.connection, |outbound| {
                if keepalive.is_idle(outbound.appended()) {
                    outbound.beat(b"\n");
                    keepalive.is_idle(outbound.appended());
                }
            });
        }
    }
}

impl Connection {
    /// Treats a frame as the state machine says.
    #[inline]
    fn take_frame<W: World>(
        &mut self,
        world: &W,
        frame: &Frame<'_>,
        bytes: &[u8],
        shared: Option<&Bytes>,
        budget: &mut Budget,
    ) -> Taken {
        match action(self.state, frame.command) {
            Action::Publish if !self.must_park(world, frame) => {
                if self.perform(world, frame, shared, budget) == Performed::Held {
                    self.intake.parking.wait_for_queue(SESSION, world.gauge());
                    return self.begin_to_park(world, frame, bytes);
                }
                if frame.command == Command::Send && self.state == State::Open {
                    note(&mut self.repeat, &mut self.client, world, frame, bytes);
                }
            }
            Action::Publish => return self.begin_to_park(world, frame, bytes),
            Action::Park => self.park_frame(world, frame, bytes),
            Action::ParkWithTransaction if self.must_stay_behind(frame) => {
                self.park_frame(world, frame, bytes);
            }
            // `Held` cannot occur here: a long queue holds up only frames that publish.
            Action::Perform | Action::ParkWithTransaction => {
                if self.perform_at_once(world, frame, budget) == Performed::Partly {
                    return Taken::Left(Next::Again);
                }
            }
            Action::Ignore => {}
            Action::LogIn => return self.log_in(world, frame, bytes.len()),
            Action::RefuseBeforeLogin => {
                let text = format_args!("{} is not allowed before login; send CONNECT first", frame.command);
                self.refuse(world, &ProtocolError::last("Illegal command", text), Some(frame));
            }
            Action::RefuseSecondLogin => {
                let text = "this connection is logged in already; open another for another login";
                self.refuse(world, &ProtocolError::last("Illegal command", text), Some(frame));
            }
            Action::RefuseServerFrame => {
                let text =
                    format_args!("{} is sent by brokers only; send a command for clients", frame.command);
                self.refuse(world, &ProtocolError::last("Bad command", text), Some(frame));
            }
        }
        Taken::Bytes(bytes.len())
    }

    /// Publishes the leading frames of the input that repeat a known header block; returns their
    /// length in bytes.
    #[inline]
    fn send_again<W: World>(&mut self, world: &W, input: &[u8], budget: &mut Budget) -> Option<usize> {
        if self.state != State::Open || self.must_wait(world) {
            return None;
        }
        let Repeated { bytes, frames, report } =
            self.repeat.publish(world, &self.client.actor(), input, budget)?;
        self.decoder.pass_over();
        self.client.confirm(report.confirm);
        budget.spend(frames, report.receivers, report.slow_reader);
        Some(bytes)
    }

    /// Performs a frame and sends its receipt.
    #[inline]
    fn perform<W: World>(
        &mut self,
        world: &W,
        frame: &Frame<'_>,
        shared: Option<&Bytes>,
        budget: &mut Budget,
    ) -> Performed {
        let outcome = if frame.command == Command::Send {
            send(&mut self.client, world, frame, shared)
        } else {
            self.perform_other(world, frame)
        };
        if matches!(frame.command, Command::Subscribe | Command::Unsubscribe) {
            budget.spend_change();
        }
        match outcome {
            Ok(outcome) if outcome.performed == Performed::Held => return Performed::Held,
            Ok(outcome) => {
                budget.spend(outcome.commands, outcome.receivers, outcome.slow_reader);
                let confirm = self.client.confirm(outcome.confirm);
                if outcome.performed == Performed::Partly {
                    return Performed::Partly;
                }
                if let Some(receipt) = outcome.receipt {
                    self.give_receipt(world, receipt, confirm, outcome.receipt_kind);
                }
                if self.state == State::Closed {
                    world.with_outbound(self.client.connection, Outbound::finish);
                }
            }
            Err(error) => self.refuse(world, &error, Some(frame)),
        }
        Performed::Done
    }

    /// Performs a frame other than SEND. Kept out of line so that the path of a SEND stays short.
    #[inline(never)]
    fn perform_at_once<W: World>(&mut self, world: &W, frame: &Frame<'_>, budget: &mut Budget) -> Performed {
        self.perform(world, frame, None, budget)
    }

    fn perform_other<'a, W: World>(
        &mut self,
        world: &W,
        frame: &Frame<'a>,
    ) -> Result<FrameOutcome<'a>, ProtocolError> {
        let receipt = frame.headers.raw("receipt");
        if frame.command == Command::Subscribe && !self.has_unknown {
            self.notice_unknown(frame);
        }
        let client = &mut self.client;
        match frame.command {
            Command::Ack | Command::Nack => settle(client, world, frame, receipt),
            // While frames are parked, the receipt is queued behind them.
            Command::Subscribe if self.intake.parking.has_parked() => {
                subscribe(client, world, frame, None).map(|outcome| FrameOutcome { receipt, ..outcome })
            }
            Command::Subscribe => subscribe(client, world, frame, receipt),
            Command::Unsubscribe => unsubscribe(client, world, frame, receipt),
            Command::Begin => begin(client, frame, receipt),
            Command::Commit => {
                let (outcome, receipts) = commit(client, world, frame, receipt)?;
                let confirm = client.confirm(outcome.confirm);
                for receipt in receipts {
                    self.give_receipt(world, &receipt.id, confirm, receipt.kind);
                }
                Ok(outcome)
            }
            Command::Abort => abort(client, frame, receipt),
            _ => {
                // DISCONNECT: the state machine lets no other command get here.
                self.state = State::Closed;
                Ok(FrameOutcome::with_receipt(receipt))
            }
        }
    }

    /// Logs unknown headers of SUBSCRIBE, once per connection.
    fn notice_unknown(&mut self, frame: &Frame<'_>) {
        let Some(names) = unknown_headers(&frame.headers) else { return };
        self.has_unknown = true;
        let text = format!("no broker knows {names}; correct the name, or leave it out");
        self.intake.notice.get_or_insert(Notice::ignored("unknown header of SUBSCRIBE", text));
    }

    /// Logs the client in, or leaves CONNECT in the input while the credentials are checked.
    fn log_in<W: World>(&mut self, world: &W, frame: &Frame<'_>, len: usize) -> Taken {
        let (intake, connection) = (&mut self.intake, self.client.connection);
        let verify = |credentials| intake.verify(world, connection, credentials);
        match log_in(&mut self.client, world, frame, verify) {
            Ok(None) => return Taken::Left(Next::Verify),
            Ok(Some(agreed)) => {
                self.decoder.connected(self.client.version);
                self.intake.reading.logged_in();
                self.keepalive.agreed(agreed.send_every, agreed.receive_every, world.now());
                self.state = State::Open;
            }
            Err(error) => self.refuse(world, &error, Some(frame)),
        }
        Taken::Bytes(len)
    }

    /// Sends a receipt, or queues it behind parked frames.
    #[inline]
    fn give_receipt<W: World>(&mut self, world: &W, receipt: &[u8], confirm: Confirm, kind: ReceiptKind) {
        if !self.has_parked() {
            let write = |out: &mut Vec<u8>| push_receipt(out, receipt, kind, confirm.level());
            world.with_outbound(self.client.connection, |outbound| match kind.promises() {
                true => outbound.promise(SESSION, confirm, confirm.level(), write),
                false => outbound.answer(SESSION, confirm, write),
            });
        } else {
            self.intake.parking.push(SESSION, Parked::Receipt(receipt).encode(), world.gauge());
        }
    }

    /// Whether a frame must wait: it publishes during a memory alarm, or publishes a persistent
    /// message while the disk is full.
    #[inline]
    fn must_park<W: World>(&self, world: &W, frame: &Frame<'_>) -> bool {
        let is_kept = || {
            frame.command == Command::Commit
                || frame.headers.raw("persistent").and_then(parse_bool) == Some(true)
        };
        (world.is_alarmed() || world.room().is_alarmed() && is_kept()) && self.publishes(frame)
    }

    /// Whether a frame publishes.
    #[inline]
    fn publishes(&self, frame: &Frame<'_>) -> bool {
        match frame.command {
            Command::Send => true,
            Command::Commit => {
                let name = frame.headers.value("transaction");
                name.is_some_and(|name| self.client.transactions.publishes(&name))
            }
            _ => false,
        }
    }

    /// Whether a frame must wait behind the parked frames.
    fn must_stay_behind(&self, frame: &Frame<'_>) -> bool {
        match frame.headers.value("transaction") {
            // Parked frames go first even if the alarm is over by now. BEGIN waits at the
            // transaction limit because a parked COMMIT may make room.
            Some(name) => {
                let is_full = self.client.transactions.is_full(&self.client.settings.limits);
                self.marks.has_transaction(&name)
                    || self.publishes(frame)
                    || frame.command == Command::Begin && is_full
            }
            // A cumulative ACK would settle deliveries that a parked transaction names.
            None => self.marks.has_settles() && matches!(frame.command, Command::Ack | Command::Nack),
        }
    }

    /// Parks a frame that publishes and starts parking the frames that depend on it.
    #[cold]
    fn begin_to_park<W: World>(&mut self, world: &W, frame: &Frame<'_>, bytes: &[u8]) -> Taken {
        if let Some(next) = park(self, world, SESSION, || Parked::Frame(bytes).encode()) {
            return Taken::Left(next);
        }
        self.state = State::Parking;
        self.mark(frame);
        Taken::Bytes(bytes.len())
    }

    fn park_frame<W: World>(&mut self, world: &W, frame: &Frame<'_>, bytes: &[u8]) {
        self.intake.parking.push(SESSION, Parked::Frame(bytes).encode(), world.gauge());
        self.mark(frame);
        if frame.command == Command::Disconnect {
            self.state = State::Leaving;
        }
    }

    /// Records the properties of a parked frame that hold up later frames.
    fn mark(&mut self, frame: &Frame<'_>) {
        let transaction = frame.headers.value("transaction");
        let settles = match frame.command {
            Command::Ack | Command::Nack => true,
            Command::Commit => {
                transaction.as_deref().is_some_and(|name| self.client.transactions.settles(name))
            }
            _ => false,
        };
        self.marks.note(transaction.as_deref(), settles);
    }

    fn answer<W: World>(&self, world: &W, receipt: &[u8]) {
        world.with_outbound(self.client.connection, |outbound| {
            let confirm = self.client.unconfirmed;
            outbound.answer(SESSION, confirm, |out| {
                push_receipt(out, receipt, ReceiptKind::Plain, confirm.level());
            });
        });
    }

    /// Refuses undecodable input and closes: the start of the next frame is unknown (SECURITY
    /// XPI-03).
    #[cold]
    fn refuse_bytes<W: World>(&mut self, world: &W, error: &DecodeError) {
        // A client that has not logged in learns no details.
        let stranger = "what came is no STOMP frame; send CONNECT first";
        let error = match (self.state, error) {
            (State::Greeting, DecodeError::UnknownCommand { .. }) => {
                ProtocolError::last("Illegal command", stranger)
            }
            (State::Greeting, _) => ProtocolError::last("Malformed frame", stranger),
            (_, DecodeError::UnknownCommand { .. }) => ProtocolError::last("Bad command", error),
            (_, _) => ProtocolError::last("Malformed frame", error),
        };
        self.refuse(world, &error, None);
    }

    /// Sends an ERROR and closes the connection, unless the settings keep it open.
    #[cold]
    fn refuse<W: World>(&mut self, world: &W, error: &ProtocolError, frame: Option<&Frame<'_>>) {
        let receipt = frame.and_then(|frame| frame.headers.raw("receipt"));
        let version = self.client.version;
        // STOMP 1.1 and 1.2, ERROR: the server MUST close the connection just after it.
        let is_last = error.is_final() || !self.client.settings.keeps_open_after_error;
        world.with_outbound(self.client.connection, |outbound| {
            if is_last {
                // Before the ERROR, so that an overflow caused by it does not append another one.
                outbound.finish();
            }
            outbound.answer(SESSION, Confirm::NOW, |out| push_error(out, version, error, receipt, b""));
        });
        self.intake.notice = Some(Notice::refused(error.message(), error.text().to_string()));
        if is_last {
            self.close();
        }
    }
}

#[cfg(test)]
mod tests;
