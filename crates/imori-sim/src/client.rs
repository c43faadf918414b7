//! A virtual client: what it has sent, what it waits for, and what it makes of what it gets.

use std::collections::VecDeque;

use imori_core::time::Time;
use imori_stomp::command::Command;
use imori_stomp::decode::{Decoder, Step};
use imori_stomp::frame::{Frame, HeaderTable};
use imori_stomp::limits::Limits;
use imori_stomp::version::Version;

use crate::mail::{Mail, body};
use crate::model::{Arrived, Mode, Model, Outcome, Reads, To};
use crate::property::Property;
use crate::shared::Shared;

/// A client's connection.
pub(crate) struct Client {
    /// The transport, and the session's number in the model.
    pub(crate) session: usize,
    pub(crate) cell: usize,
    pub(crate) version: Version,
    decoder: Decoder,
    table: HeaderTable,
    input: Vec<u8>,
    pub(crate) is_connected: bool,
    /// It has said goodbye.
    pub(crate) is_leaving: bool,
    pub(crate) is_ended: bool,
    has_error: bool,
    /// Frames that it has sent.
    pub(crate) frames: u64,
    pub(crate) receipts: VecDeque<(u64, Awaited)>,
    /// What it does not know to be worked off, by frame.
    pub(crate) unconfirmed: VecDeque<(u64, Unconfirmed)>,
    pub(crate) subscriptions: Vec<OwnSubscription>,
    pub(crate) unsettled: Vec<Unsettled>,
    pub(crate) transaction: Option<Transaction>,
    last_number: u64,
    pub(crate) deeds_left: usize,
    pub(crate) is_reading: bool,
    /// It accepts whatever it gets, at once, and publishes nothing more.
    pub(crate) accepts_all: bool,
    pub(crate) next_at: Time,
}

/// What a receipt is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    Subscribe(usize),
    Unsubscribe(usize),
    Message(usize),
    /// To cancel this message, asked at this step.
    Cancel(usize, u64),
    Disconnect,
    Other,
}

/// What the broker may not have worked off.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unconfirmed {
    Message(usize),
    Settled(usize, usize, u64),
}

/// A subscription as its client has it.
#[derive(Debug)]
pub(crate) struct OwnSubscription {
    pub(crate) record: usize,
    pub(crate) id: String,
    pub(crate) is_active: bool,
}

/// A delivery that the client can settle.
#[derive(Debug, Clone)]
pub(crate) struct Unsettled {
    pub(crate) message: usize,
    pub(crate) queue: usize,
    pub(crate) subscription: usize,
    pub(crate) ack: String,
    pub(crate) number: u64,
    /// An open transaction settles it.
    pub(crate) is_claimed: bool,
}

/// An open transaction.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    pub(crate) name: String,
    pub(crate) messages: Vec<usize>,
    pub(crate) settled: Vec<(Unsettled, Outcome)>,
}

impl Client {
    pub(crate) fn new(session: usize, cell: usize, version: Version, deeds: usize) -> Client {
        let mut decoder = Decoder::new(Limits::default());
        decoder.connected(Version::V12);
        Client {
            session,
            cell,
            version,
            decoder,
            table: HeaderTable::default(),
            input: Vec::new(),
            is_connected: false,
            is_leaving: false,
            is_ended: false,
            has_error: false,
            frames: 0,
            receipts: VecDeque::new(),
            unconfirmed: VecDeque::new(),
            subscriptions: Vec::new(),
            unsettled: Vec::new(),
            transaction: None,
            last_number: 0,
            deeds_left: deeds,
            is_reading: true,
            accepts_all: false,
            next_at: Time::default(),
        }
    }

    /// Reads bytes. What comes after its end is looked at all the same, but not answered.
    pub(crate) fn hear(&mut self, shared: &Shared, model: &mut Model, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        let input = std::mem::take(&mut self.input);
        let mut table = std::mem::take(&mut self.table);
        let mut consumed = 0;
        while let Some(rest) = input.get(consumed..) {
            match self.decoder.decode(rest, &mut table) {
                Ok(Step::Frame { frame, consumed: len }) => {
                    consumed += len;
                    self.take(shared, model, &frame);
                }
                Ok(Step::LineEnds { consumed: len }) => consumed += len,
                Ok(Step::Incomplete { .. }) => break,
                Err(error) => {
                    shared.violate(Property::Framing, || {
                        format!("session {} reads no frame: {error}", self.session)
                    });
                    break;
                }
            }
        }
        self.table = table;
        self.input = input.get(consumed..).unwrap_or_default().to_vec();
    }

    fn take(&mut self, shared: &Shared, model: &mut Model, frame: &Frame<'_>) {
        let header =
            |name| frame.headers.value(name).map(|value| String::from_utf8_lossy(&value).into_owned());
        shared.trace.note(&[self.session as u64, frame.body.len() as u64], || {
            let text = String::from_utf8_lossy(frame.headers.block()).replace('\n', " | ");
            format!("session {} gets {} {text}", self.session, frame.command)
        });
        if self.has_error {
            shared.violate(Property::Framing, || {
                format!("session {} got {} after ERROR", self.session, frame.command)
            });
        }
        match frame.command {
            Command::Connected => {
                self.is_connected = true;
                let version = Version::ALL
                    .into_iter()
                    .find(|version| Some(version.as_str()) == header("version").as_deref());
                if version != Some(self.version) {
                    shared.violate(Property::Framing, || format!("session {} got {version:?}", self.session));
                }
                self.decoder.connected(self.version);
            }
            Command::Receipt => {
                let (level, cancelled) = (header("imori-level"), header("imori-cancelled"));
                let cancelled = cancelled.and_then(|count| count.parse().ok());
                let id = header("receipt-id").unwrap_or_default();
                self.take_receipt(shared, model, &id, (level.as_deref(), cancelled));
            }
            Command::Message => self.take_message(shared, model, frame),
            Command::Error => {
                self.has_error = true;
                self.take_error(shared, model, &header("message").unwrap_or_default(), frame.body);
            }
            other => shared.violate(Property::Framing, || format!("session {} got {other}", self.session)),
        }
    }

    fn take_receipt(
        &mut self,
        shared: &Shared,
        model: &mut Model,
        id: &str,
        (level, cancelled): (Option<&str>, Option<usize>),
    ) {
        let now = shared.step.get();
        let awaited = self.receipts.pop_front();
        let Some((number, what)) = awaited.filter(|(number, _)| *id == format!("r{number}")) else {
            shared.violate(Property::Receipts, || {
                format!("session {} got receipt `{id}` and waits for {awaited:?}", self.session)
            });
            return;
        };
        while let Some((_, unconfirmed)) = self.unconfirmed.pop_front_if(|(frame, _)| *frame <= number) {
            match unconfirmed {
                Unconfirmed::Message(message) => {
                    let record = model.message(message);
                    record.confirmed_at = Some(now);
                    if record.is_too_large {
                        shared.violate(Property::Refusal, || {
                            format!(
                                "message {message} is confirmed, and there is no room for it in the journal"
                            )
                        });
                    }
                    let clock = shared.clock.get();
                    record.due.iter_mut().for_each(|due| due.confirmed(clock));
                    record.repetition.iter_mut().for_each(|repetition| repetition.confirmed(clock));
                }
                Unconfirmed::Settled(message, queue, number) => {
                    let fate = model.fates.get_mut(&(message, queue));
                    if let Some(fate) =
                        fate.filter(|fate| (fate.session, fate.number) == (self.session, number))
                    {
                        fate.is_processed = true;
                    }
                }
            }
        }
        match what {
            Awaited::Subscribe(record) => {
                model.subscription(record).receipt_at = Some(now);
                for own in self.subscriptions.iter_mut().filter(|own| own.record == record) {
                    own.is_active = true;
                }
            }
            Awaited::Unsubscribe(record) => self.subscriptions.retain(|own| own.record != record),
            Awaited::Message(message) => {
                model.message(message).has_receipt = true;
                model.check_level(shared, message, level);
            }
            Awaited::Cancel(message, asked_at) => match cancelled {
                Some(count) => model.cancelled(shared, message, count, asked_at),
                None => shared.violate(Property::Framing, || {
                    format!("session {} is not told what it cancelled", self.session)
                }),
            },
            Awaited::Disconnect => {
                self.close(shared, model);
            }
            Awaited::Other => {}
        }
    }

    fn take_message(&mut self, shared: &Shared, model: &mut Model, frame: &Frame<'_>) {
        let header =
            |name| frame.headers.value(name).map(|value| String::from_utf8_lossy(&value).into_owned());
        let id = header("message-id").unwrap_or_default();
        let number = id.rsplit(['-', '.']).next().and_then(|digits| digits.parse().ok()).unwrap_or(0);
        if number != self.last_number + 1 {
            let last = self.last_number;
            shared.violate(Property::WireOrder, || {
                format!("session {} got delivery {number} after {last}", self.session)
            });
        }
        self.last_number = number;
        let text = str::from_utf8(frame.body.get(..8).unwrap_or_default()).unwrap_or_default();
        let message = usize::from_str_radix(text, 16).unwrap_or(usize::MAX);
        let Some(record) = model.messages.get(message) else {
            return shared.violate(Property::Framing, || format!("message `{text}` was never sent"));
        };
        if frame.body != body(message, record.size) || header("n").as_deref() != Some(&*message.to_string()) {
            shared.violate(Property::Framing, || format!("message {message} is not as it was sent"));
        }
        if record.is_too_large {
            shared.violate(Property::Refusal, || {
                format!("message {message} came, and there is no room for it in the journal")
            });
        }
        if record.sent_at.is_none() {
            shared.violate(Property::Visibility, || format!("message {message} came before its COMMIT"));
        }
        let (reason, died_in) = (header("x-death-reason"), header("x-death-queue"));
        let arrived = Arrived {
            session: self.session,
            message,
            number,
            is_redelivered: header("redelivered").as_deref() == Some("true"),
            text_bytes: own_lines(frame),
            death: reason.as_deref().zip(died_in.as_deref()),
        };
        if let To::Inbox(_) = record.to {
            return model.reply_arrived(shared, &arrived);
        }
        let (to, publisher) = (record.to.clone(), record.publisher);
        let name = header("subscription").unwrap_or_default();
        let Some(own) = self.subscriptions.iter().find(|own| own.id == name) else {
            return shared.violate(Property::Visibility, || {
                format!(
                    "message {message} came to session {} for subscription `{name}`, which is not",
                    self.session
                )
            });
        };
        let subscription = own.record;
        let Reads::Queue(queue) = model.subscription(subscription).reads else {
            return model.live_arrived(shared, &arrived, subscription);
        };
        model.check_due(shared, &arrived);
        model.queue_arrived(shared, &arrived, subscription, queue);
        if model.subscription(subscription).mode != Mode::Auto {
            let ack = if self.version == Version::V12 { header("ack").unwrap_or_default() } else { id };
            let unsettled = Unsettled { message, queue, subscription, ack, number, is_claimed: false };
            self.unsettled.push(unsettled.clone());
            if self.accepts_all && !self.is_silent() {
                self.settle(shared, model, &unsettled, Outcome::Accept, false);
            }
        }
        if let Some(reply_to) = header("reply-to").filter(|_| to == To::Queue(queue))
            && !self.is_silent()
            && !self.accepts_all
        {
            let to = To::Inbox(publisher);
            let wants_receipt = shared.random.chance(1, 3);
            self.send(shared, model, &Mail { wants_receipt, ..Mail::new(to, reply_to) });
        }
    }

    /// Some things are refused by rule; all else is the broker's mistake.
    fn take_error(&mut self, shared: &Shared, model: &mut Model, message: &str, text: &[u8]) {
        let has_volatile = model.queues.iter().any(|queue| queue.is_volatile);
        let is_expected = match message {
            "Connection too slow" => true,
            "Server shutting down" => model.has_stopped,
            "resource_error" if self.has_sent_too_large(model) => {
                self.check_refusal(shared, model, text);
                true
            }
            "resource_error" => model.queues.iter().any(|queue| queue.refuses),
            "not_found" | "precondition_failed" | "Server cancelled subscription" | "resource_locked" => {
                has_volatile
            }
            _ => false,
        };
        if !is_expected {
            let text = String::from_utf8_lossy(text).into_owned();
            shared.violate(Property::Framing, || {
                format!("session {} is told `{message}`: {text}", self.session)
            });
        }
        self.end(shared, model);
    }

    fn has_sent_too_large(&self, model: &Model) -> bool {
        let is_too_large = |unconfirmed: &Unconfirmed| match unconfirmed {
            Unconfirmed::Message(message) => {
                model.messages.get(*message).is_some_and(|message| message.is_too_large)
            }
            Unconfirmed::Settled(..) => false,
        };
        self.unconfirmed.iter().any(|(_, unconfirmed)| is_too_large(unconfirmed))
    }

    /// Who is refused is told which limit that is, and how high.
    fn check_refusal(&self, shared: &Shared, model: &Model, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        let bytes_max = format!("`{}`", shared.log.borrow().group_bytes_max());
        let is_told = text.contains("`journal.file_bytes`") && text.contains(&bytes_max);
        if !is_told && !model.queues.iter().any(|queue| queue.refuses) {
            shared.violate(Property::Refusal, || format!("session {} is told: {text}", self.session));
        }
    }

    // ---- How it ends.

    /// It says nothing more.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_ended || self.is_leaving || self.has_error
    }

    /// Closes the transport; what comes still is read.
    pub(crate) fn close(&mut self, shared: &Shared, model: &mut Model) {
        shared.network.pipe(self.session).client_closed = true;
        self.end(shared, model);
    }

    /// Tears the transport down.
    pub(crate) fn reset(&mut self, shared: &Shared, model: &mut Model) {
        shared.trace.note(&[self.session as u64], || format!("session {} is torn down", self.session));
        shared.network.pipe(self.session).is_reset = true;
        self.end(shared, model);
    }

    fn end(&mut self, shared: &Shared, model: &mut Model) {
        self.is_ended = true;
        model.session(self.session).ended_at.get_or_insert(shared.step.get());
    }

    /// Looks at the last bytes that the broker had for it, once the broker has let go.
    pub(crate) fn look_at_remains(&mut self, shared: &Shared, model: &mut Model) {
        let (bytes, is_incomplete) = {
            let mut pipe = shared.network.pipe(self.session);
            pipe.has_remains = false;
            let mut bytes: Vec<u8> = pipe.to_client.drain(..).collect();
            bytes.append(&mut pipe.unsent);
            pipe.client_closed = true;
            (bytes, pipe.is_unsent_incomplete)
        };
        model.is_incomplete |= is_incomplete;
        self.end(shared, model);
        if is_incomplete {
            // What was with another cell is missing in between.
            self.input.clear();
        } else {
            self.hear(shared, model, &bytes);
        }
    }
}

/// Bytes of the header lines that the broker did not add.
fn own_lines(frame: &Frame<'_>) -> usize {
    let is_added = |name: &[u8]| {
        matches!(
            name,
            b"subscription" | b"message-id" | b"ack" | b"redelivered" | b"destination" | b"content-length"
        ) || name.starts_with(b"x-first-death-")
            || name.starts_with(b"x-death-")
    };
    let own = frame.headers.iter().filter(|header| !is_added(header.name));
    own.map(|header| header.name.len() + header.value.len() + 2).sum()
}
