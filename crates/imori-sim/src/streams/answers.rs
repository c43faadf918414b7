//! What clients of streams make of answers to their requests.

use imori_nats::codec::headers::{Headers, status};
use serde_json::Value;

use super::client::{Delivery, Heard, Request, StreamClient, text};
use super::ledger::Ledger;
use super::records::{Answer, Stage};
use crate::machine::Shared;
use crate::message_text::body;
use crate::property::Property;

/// Whether a message, by its number, is what a request asks for.
type IsAsked = dyn Fn(&Ledger, u64) -> bool;

/// Codes of errors, as nats-server has them.
const STREAM_NOT_FOUND: u64 = 10059;
const CONSUMER_NOT_FOUND: u64 = 10014;
const MESSAGE_NOT_FOUND: u64 = 10043;
const WRONG_LAST_SEQUENCE: u64 = 10071;
const STORE_FAILED: u64 = 10077;
const INSUFFICIENT_RESOURCES: u64 = 10023;

impl StreamClient {
    pub(super) fn take_answer(
        &mut self,
        shared: &Shared,
        ledger: &mut Ledger,
        request: Request,
        heard: &Heard,
    ) {
        let is_unheard = heard.headers.as_deref().and_then(status) == Some(b"503");
        let json: Value = serde_json::from_slice(&heard.payload).unwrap_or_default();
        let error = json.pointer("/error/err_code").and_then(Value::as_u64);
        let now = shared.step.get();
        match request {
            Request::MakeStream(stream) => {
                let state = ledger.stream_mut(stream);
                state.driver = None;
                match error {
                    None => state.stage = Stage::There,
                    // It may have been made in part.
                    Some(INSUFFICIENT_RESOURCES) => state.stage = Stage::Making,
                    Some(_) => self.refuse(shared, request, heard),
                }
            }
            Request::DeleteStream(stream) => {
                if !matches!(error, None | Some(STREAM_NOT_FOUND)) {
                    self.refuse(shared, request, heard);
                }
                let state = ledger.stream_mut(stream);
                (state.driver, state.stage) = (None, Stage::Absent);
                state.begin_life();
            }
            Request::MakeConsumer(stream, consumer) => {
                let is_there = ledger.stream(stream).stage == Stage::There;
                let Some(own) = ledger.stream_mut(stream).consumers.get_mut(consumer) else { return };
                own.driver = None;
                match error {
                    None => {
                        own.begin_life();
                        (own.stage, own.made_at) = (Stage::There, now);
                    }
                    Some(INSUFFICIENT_RESOURCES) => {}
                    Some(STREAM_NOT_FOUND) if !is_there => own.stage = Stage::Absent,
                    Some(_) => self.refuse(shared, request, heard),
                }
            }
            Request::DeleteConsumer(stream, consumer) => {
                if !matches!(error, None | Some(STREAM_NOT_FOUND | CONSUMER_NOT_FOUND)) {
                    self.refuse(shared, request, heard);
                }
                let Some(own) = ledger.stream_mut(stream).consumers.get_mut(consumer) else { return };
                (own.driver, own.stage) = (None, Stage::Absent);
                own.begin_life();
            }
            Request::Publish(message) if is_unheard => self.take_unheard(shared, ledger, message),
            Request::Publish(message) => match error {
                None => self.take_published(shared, ledger, message, &json),
                Some(error) => self.take_refused(shared, ledger, message, error, heard),
            },
            Request::Ack(delivery) => self.take_acked(shared, ledger, delivery, heard),
            Request::Delete { stream, life, sequence } => {
                if !matches!(error, None | Some(MESSAGE_NOT_FOUND | STREAM_NOT_FOUND)) {
                    self.refuse(shared, request, heard);
                }
                let state = ledger.stream_mut(stream);
                if state.life == life && error.is_none() {
                    state.deletions.insert(sequence, Some(now));
                }
            }
            Request::Purge { stream, life, purge } => {
                if !matches!(error, None | Some(STREAM_NOT_FOUND)) {
                    self.refuse(shared, request, heard);
                }
                let state = ledger.stream_mut(stream);
                let is_done = state.life == life && error.is_none();
                if let Some(purge) = state.purges.get_mut(purge).filter(|_| is_done) {
                    purge.answered_at = Some(now);
                }
            }
            Request::GetLast { stream, life, at, .. } | Request::Get { stream, life, at, .. } => {
                if is_unheard || ledger.stream(stream).life != life {
                    if ledger.stream(stream).life == life && ledger.stream(stream).stage == Stage::There {
                        self.refuse(shared, request, heard);
                    }
                    return;
                }
                self.take_message(shared, ledger, request, at, heard);
            }
        }
    }

    fn refuse(&self, shared: &Shared, request: Request, heard: &Heard) {
        shared.violate(Property::Framing, || {
            format!("session {} is told {} of {request:?}", self.session, text(&heard.payload))
        });
    }

    /// Handles the report that no stream takes a message.
    fn take_unheard(&self, shared: &Shared, ledger: &mut Ledger, message: usize) {
        ledger.message_mut(message).answer = Answer::Refused;
        let sent = ledger.message(message);
        let state = ledger.stream(sent.stream);
        if sent.life == Some(state.life) && state.stage == Stage::There {
            shared.violate(Property::Loss, || {
                format!("session {} is told that no stream takes message {message}", self.session)
            });
        }
    }

    fn take_published(&self, shared: &Shared, ledger: &mut Ledger, message: usize, json: &Value) {
        let sequence = json.get("seq").and_then(Value::as_u64).unwrap_or(0);
        let is_duplicate = json.get("duplicate").and_then(Value::as_bool).unwrap_or(false);
        let (step, now) = (shared.step.get(), shared.clock.get());
        let (stream, once) = (ledger.message(message).stream, ledger.message(message).once);
        let spec = &ledger.stream(stream).spec;
        let level = if spec.is_memory { "memory" } else { "disk" };
        if json.get("level").and_then(Value::as_str) != Some(level)
            || json.get("stream").and_then(Value::as_str) != Some(&spec.name)
        {
            shared.violate(Property::Level, || format!("message {message} is answered by {json}"));
        }
        if !is_duplicate {
            ledger.message_mut(message).answer = Answer::Stored(step, now);
            ledger.bind(shared, message, sequence, "a publisher");
            self.check_first(shared, ledger, message);
            self.check_expected(shared, ledger, message, sequence);
            return;
        }
        ledger.message_mut(message).answer = Answer::Duplicate;
        let sent = ledger.message(message);
        let state = ledger.stream(stream);
        if sent.life != Some(state.life) {
            return;
        }
        let same = |other: &usize| {
            let other = ledger.message(*other);
            once.is_some() && other.once == once
        };
        let is_of = |(number, other): (usize, &super::records::Sent)| {
            let may_be_it = same(&number) && number != message && other.at < step;
            (may_be_it && other.life == sent.life && other.sequence.is_none_or(|own| own == sequence))
                .then_some(number)
        };
        let known = state.at.get(&sequence).copied();
        let mut firsts: Vec<usize> = ledger.messages.iter().enumerate().filter_map(is_of).collect();
        firsts.retain(|first| !matches!(ledger.message(*first).answer, Answer::Refused | Answer::Duplicate));
        let is_right = known.map_or(!firsts.is_empty(), |known| same(&known));
        let has_doubtful = ledger.loose(stream).any(|other| other.life.is_none());
        if !is_right && !has_doubtful {
            shared.violate(Property::Dedup, || {
                format!("message {message} is taken for the one with number {sequence}, which is {known:?}")
            });
        }
        let window = state.spec.window_ms * 1000;
        let is_over = |first: &usize| match ledger.message(*first).answer {
            Answer::Stored(_, at) => at.0 + window < sent.time.0,
            _ => false,
        };
        if !firsts.is_empty() && firsts.iter().all(is_over) && !has_doubtful {
            shared.violate(Property::Dedup, || {
                format!("message {message} is taken for an earlier one after the window")
            });
        }
        if let (None, [first]) = (known, firsts.as_slice()) {
            ledger.bind(shared, *first, sequence, "the publisher of a duplicate");
        }
    }

    /// Checks that a stream which takes a message with an id does not know the id.
    fn check_first(&self, shared: &Shared, ledger: &Ledger, message: usize) {
        let sent = ledger.message(message);
        let state = ledger.stream(sent.stream);
        let window = state.spec.window_ms * 1000;
        let is_known = |other: &&super::records::Sent| {
            other.once.is_some()
                && other.once == sent.once
                && other.life == sent.life
                && sent.life == Some(state.life)
                && other.answer.is_stored_before(sent.at)
                && other.time.0 + window > shared.clock.get().0
        };
        if let Some(other) = ledger.messages.iter().find(is_known) {
            let known = other.sequence;
            shared.violate(Property::Dedup, || {
                format!("message {message} is taken, and the one with its id has number {known:?}")
            });
        }
    }

    /// Checks that a message came behind the one that it expects.
    fn check_expected(&self, shared: &Shared, ledger: &Ledger, message: usize, sequence: u64) {
        let sent = ledger.message(message);
        let state = ledger.stream(sent.stream);
        let Some(expected) = sent.expected.filter(|_| sent.life == Some(state.life)) else { return };
        let between = state.at.range(expected + 1..sequence.max(expected + 1));
        let is_missed = |(number, other): &(&u64, &usize)| {
            ledger.message(**other).key == sent.key
                && !ledger.may_be_gone(sent.stream, **number, shared.clock.get())
        };
        if let Some((number, _)) = between.into_iter().find(is_missed) {
            shared.violate(Property::Sequence, || {
                format!("message {message} expects {expected}, and {number} came before its {sequence}")
            });
        }
    }

    fn take_refused(&self, shared: &Shared, ledger: &mut Ledger, message: usize, error: u64, heard: &Heard) {
        ledger.message_mut(message).answer = Answer::Refused;
        let sent = ledger.message(message);
        let spec = &ledger.stream(sent.stream).spec;
        let has_limit = spec.messages_max.is_some() || spec.bytes_max.is_some();
        let is_right = match error {
            WRONG_LAST_SEQUENCE => {
                let told = text(&heard.payload);
                sent.expected.is_some_and(|expected| !told.contains(&format!("sequence: {expected}\"")))
            }
            STORE_FAILED => spec.refuses && has_limit,
            INSUFFICIENT_RESOURCES => !spec.is_memory,
            _ => false,
        };
        if !is_right {
            self.refuse(shared, Request::Publish(message), heard);
        }
    }

    fn take_acked(&self, shared: &Shared, ledger: &mut Ledger, delivery: Delivery, heard: &Heard) {
        if !heard.payload.is_empty() {
            self.refuse(shared, Request::Ack(delivery), heard);
        }
        let now = shared.step.get();
        let Delivery { stream, consumer, life, sequence, .. } = delivery;
        let state = ledger.stream_mut(stream);
        let Some(own) = state.consumers.get_mut(consumer) else { return };
        let is_certain = state.stage == Stage::There && own.stage == Stage::There && life == Some(own.life);
        if is_certain {
            own.acks.insert(sequence, Some((self.session, now)));
            state.done.insert(sequence, now);
        }
    }

    /// Handles a message that the client asked for, or the answer that there is none.
    fn take_message(&self, shared: &Shared, ledger: &mut Ledger, request: Request, at: u64, heard: &Heard) {
        let block = heard.headers.as_deref().unwrap_or_default();
        let header = |wanted: &str| {
            Headers::new(block)
                .find(|(name, _)| *name == wanted.as_bytes())
                .map(|(_, value)| String::from_utf8_lossy(value).into_owned())
        };
        let sequence = header("Nats-Sequence").and_then(|number| number.parse::<u64>().ok());
        let now = shared.clock.get();
        let (stream, is_asked): (usize, Box<IsAsked>) = match request {
            Request::GetLast { stream, key, .. } => (
                stream,
                Box::new(move |ledger, number| {
                    let message = ledger.stream(stream).at.get(&number);
                    message.is_some_and(|message| ledger.message(*message).key == key)
                }),
            ),
            Request::Get { stream, sequence, .. } => (stream, Box::new(move |_, number| number == sequence)),
            _ => return,
        };
        if let Some(sequence) = sequence {
            let subject = header("Nats-Subject").unwrap_or_default();
            let Some(message) = self.known(shared, ledger, stream, &subject, &heard.payload) else { return };
            ledger.bind(shared, message, sequence, "a reader");
            let is_of_life = ledger.message(message).life == Some(ledger.stream(stream).life);
            if is_of_life && !is_asked(ledger, sequence) {
                self.refuse(shared, request, heard);
            }
            if let Some(why) = ledger.must_be_gone(stream, sequence, at).filter(|_| is_of_life) {
                shared.violate(Property::Purge, || {
                    format!("session {} gets message {sequence}, which {why}", self.session)
                });
            }
        } else if heard.headers.as_deref().and_then(status) != Some(b"404") {
            return self.refuse(shared, request, heard);
        }
        // A newer message that was there when the client asked.
        let state = ledger.stream(stream);
        let is_missed = |(number, message): &(&u64, &usize)| {
            sequence.is_none_or(|sequence| **number > sequence)
                && is_asked(ledger, **number)
                && ledger.message(**message).answer.is_stored_before(at)
                && !ledger.may_be_gone(stream, **number, now)
        };
        if let Some((number, _)) = state.at.iter().find(is_missed) {
            shared.violate(Property::Visibility, || {
                format!("session {} gets {sequence:?} for {request:?}, not {number}", self.session)
            });
        }
    }

    /// The message with this body; it must have been sent to this subject of this stream.
    pub(super) fn known(
        &self,
        shared: &Shared,
        ledger: &Ledger,
        stream: usize,
        subject: &str,
        payload: &[u8],
    ) -> Option<usize> {
        let number = payload.get(..8).and_then(|number| str::from_utf8(number).ok());
        let message = number.and_then(|number| usize::from_str_radix(number, 16).ok());
        let is_it = |message: &usize| {
            ledger.messages.get(*message).is_some_and(|sent| {
                sent.stream == stream
                    && ledger.stream(stream).spec.subject(sent.key) == subject
                    && body(*message, sent.size) == payload
            })
        };
        let message = message.filter(is_it);
        if message.is_none() {
            shared.violate(Property::Framing, || {
                format!("session {} gets `{}` at `{subject}`, which nobody sent", self.session, text(payload))
            });
        }
        message
    }
}
