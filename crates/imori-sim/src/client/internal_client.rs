//! An internal client of the broker: its commands are lines, and the core's frames come back.

use std::sync::Arc;

use imori_core::internal::{Frames, Incoming, IncomingMessage};
use imori_core::outbound::INBOX_PREFIX;
use imori_server::protocol_numbers::header_reader;

use super::errors::complaint;
use super::outgoing::{Outgoing, Place, shared_name};
use super::protocol::{
    Abilities, ClientProtocol, Confirmed, Delivered, Disconnect, Event, HeaderUse, NumberHeader, Operate,
    Publish, Settle, Subscribe, Unsubscribe,
};
use crate::machine::Board;
use crate::model::Outcome;

/// The most requests of a client; each keeps an inbox as long as the client exists.
const REQUESTS_MAX: usize = 3;

/// Characters of an inbox address after the prefix.
const ADDRESS_CHARS: usize = 38;

/// An internal client of the broker.
pub(crate) struct InternalClient {
    board: Arc<Board>,
    /// The number of requests that it may still send.
    requests_left: usize,
}

impl InternalClient {
    /// Creates a client. With `may_be_refused` it sends no requests: a request that a full queue
    /// refuses may have reached a subscriber, and that reply would arrive unexpectedly.
    pub(crate) fn new(board: Arc<Board>, may_be_refused: bool) -> InternalClient {
        InternalClient { board, requests_left: if may_be_refused { 0 } else { REQUESTS_MAX } }
    }

    fn delivered(&self, message: IncomingMessage) -> Delivered {
        let header = message.headers.iter().find(|(name, _)| &**name == b"n");
        let reply_to = message
            .reply_to
            .map(|to| format!("{}\u{1}{}", text(to.exchange.as_bytes()), text(to.subject.as_bytes())));
        Delivered {
            subscription: self.board.name_of(message.subscription),
            number: Some(message.number),
            ack: message.number.to_string(),
            body: message.body.to_vec(),
            number_header: NumberHeader::Shown(header.map(|(_, value)| text(value))),
            is_redelivered: message.is_redelivered,
            reply_to,
            ..Delivered::default()
        }
    }
}

impl ClientProtocol for InternalClient {
    fn abilities(&self) -> Abilities {
        Abilities {
            reads_queues: true,
            reads_topics: true,
            operates: true,
            persists: true,
            confirms_settles: true,
            headers: HeaderUse::Sometimes,
            ..Abilities::default()
        }
    }

    fn connect(&mut self, _: &mut Vec<u8>, _: bool) {}

    fn subscribe(&mut self, out: &mut Vec<u8>, subscribe: &Subscribe<'_>) {
        let (id, confirm) = (subscribe.id, subscribe.confirm);
        match subscribe.place {
            Place::Queue(name) | Place::DeclaredQueue(name) => {
                line(out, format_args!("consume {id} {name} {} {confirm}", subscribe.prefetch));
            }
            Place::Topic(pattern) | Place::Reply(pattern) => {
                line(out, format_args!("subscribe {id} {pattern} {confirm}"));
            }
        }
    }

    fn unsubscribe(&mut self, out: &mut Vec<u8>, unsubscribe: &Unsubscribe<'_>) {
        line(out, format_args!("cancel {} {}", unsubscribe.id, unsubscribe.confirm));
    }

    fn publish(&mut self, out: &mut Vec<u8>, publish: &Publish<'_>) -> Option<usize> {
        let Outgoing { place, .. } = publish.outgoing;
        let asks = publish.outgoing.reply_to.is_some() && self.requests_left > 0;
        self.requests_left -= usize::from(asks);
        let (how, exchange, subject) = match place {
            Place::Queue(name) | Place::DeclaredQueue(name) => ("publish", "-", name.as_str()),
            Place::Topic(subject) => ("publish", "amq.topic", subject.as_str()),
            Place::Reply(address) => {
                let (exchange, subject) = address.split_once('\u{1}').unwrap_or(("", address));
                ("answer", if exchange.is_empty() { "-" } else { exchange }, subject)
            }
        };
        let how = if asks { "ask" } else { how };
        let outgoing = publish.outgoing;
        let optional = |value: Option<String>| value.unwrap_or_else(|| String::from("-"));
        line(
            out,
            format_args!(
                "publish {how} {exchange} {subject} {} {} {} {} {} {} {} {}",
                publish.message,
                outgoing.size,
                if outgoing.is_persistent { "p" } else { "t" },
                if outgoing.has_headers { "h" } else { "-" },
                optional(outgoing.priority.map(|priority| priority.to_string())),
                optional(outgoing.expiration_ms.map(|ms| ms.to_string())),
                optional(outgoing.once.map(|first| first.to_string())),
                publish.confirm.unwrap_or("-"),
            ),
        );
        // The size of the core's header block.
        let header = outgoing.has_headers.then(|| 4 + 1 + publish.message.to_string().len());
        let id = outgoing.once.map(|first| shared_name(first).len());
        let inbox = asks.then_some(INBOX_PREFIX.len() + ADDRESS_CHARS);
        let parts = [header, id, inbox];
        let has_block = parts.iter().any(Option::is_some);
        Some(parts.into_iter().flatten().sum::<usize>() + if has_block { 2 } else { 0 })
    }

    fn settle(&mut self, out: &mut Vec<u8>, settle: &Settle<'_>) {
        let outcome = match settle.outcome {
            Outcome::Reject => "reject",
            Outcome::Release => "release",
            Outcome::Open | Outcome::Auto | Outcome::Accept => "accept",
        };
        line(out, format_args!("settle {} {outcome} {}", settle.ack, settle.confirm.unwrap_or("-")));
    }

    fn operate(&mut self, out: &mut Vec<u8>, operate: &Operate<'_>) {
        match *operate {
            Operate::Purge { queue, confirm } => line(out, format_args!("purge {queue} {confirm}")),
            Operate::Get { id, queue, confirm } => line(out, format_args!("get {id} {queue} {confirm}")),
            Operate::Route { queue, subject, by_headers, confirm } => {
                line(out, format_args!("route {queue} {subject} {} {confirm}", kind(by_headers)));
            }
            Operate::Unroute { queue, subject, by_headers, place, confirm } => {
                line(out, format_args!("unroute {queue} {subject} {} {place} {confirm}", kind(by_headers)));
            }
            Operate::LookUp { queue, confirm } => line(out, format_args!("look {queue} {confirm}")),
        }
    }

    fn disconnect(&mut self, out: &mut Vec<u8>, disconnect: &Disconnect<'_>) {
        line(out, format_args!("confirm {}", disconnect.confirm));
    }

    fn read(&mut self, input: &[u8]) -> Result<Option<(usize, Event)>, String> {
        if let Some(fault) = self.board.take_fault() {
            return Err(fault);
        }
        let Some(len) = input.first_chunk().map(|len| 4 + u32::from_le_bytes(*len) as usize) else {
            return Ok(None);
        };
        let Some(bytes) = input.get(..len) else { return Ok(None) };
        let mut frames = Frames::default();
        frames.push(bytes);
        let event = match frames.next_by(header_reader)? {
            None => return Err(String::from("a frame that is none")),
            Some(Incoming::Message(message)) => Event::Delivered(self.delivered(message)),
            Some(Incoming::Confirmed(number)) => Event::Confirmed(Confirmed {
                name: Some(format!("r{number}")),
                level: None,
                count: self.board.take_count(number),
            }),
            Some(Incoming::Cancelled(subscription)) => {
                return Err(format!("subscription {subscription} ends, whose queue stays"));
            }
            Some(Incoming::Cut(reason)) => {
                Event::Refused { message: complaint(&reason), text: reason.into_bytes() }
            }
        };
        Ok(Some((len, event)))
    }
}

/// The type of a route's own exchange.
fn kind(by_headers: bool) -> &'static str {
    if by_headers { "headers" } else { "topic" }
}

fn line(out: &mut Vec<u8>, words: std::fmt::Arguments<'_>) {
    out.extend_from_slice(format!("{words}\n").as_bytes());
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
