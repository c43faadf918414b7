//! A client of the test kit's toy protocol, for one channel of a connection.

use std::collections::VecDeque;

use imori_core::outbound::SessionId;
use imori_testkit::toy::{Fields, Frame, Kind, PAYLOAD_BYTES_MAX, decode, push};

use super::errors::complaint;
use super::outgoing::Destination;
use super::protocol::{
    Abilities, ClientEvent, ClientProtocol, Confirmed, Delivered, Disconnect, Open, Publish, Published,
    Settle, Subscribe, Unsubscribe,
};
use crate::model::Outcome;

/// A client of one channel.
pub(crate) struct ToyClient {
    channel: SessionId,
    /// Kinds of the expected answers, with the names of their confirms.
    asked: VecDeque<(Kind, String)>,
    /// A delivery with an incomplete body, and the number of bytes missing.
    unfinished: Option<(Delivered, usize)>,
    /// Whether the client closes the channel at once, so that answers may be missing.
    drops: bool,
    /// Whether the broker has closed the channel.
    is_closed: bool,
}

impl ToyClient {
    pub(crate) fn new(channel: u16) -> ToyClient {
        ToyClient {
            channel: SessionId(channel),
            asked: VecDeque::new(),
            unfinished: None,
            drops: false,
            is_closed: false,
        }
    }

    fn frame(&self, out: &mut Vec<u8>, kind: Kind, fields: &[&[u8]]) {
        push(out, self.channel, kind, |out| fields.iter().for_each(|field| out.extend_from_slice(field)));
    }

    /// Writes a frame that is answered by one of the same kind.
    fn ask(&mut self, out: &mut Vec<u8>, kind: Kind, fields: &[&[u8]], confirm: &str) {
        self.asked.push_back((kind, String::from(confirm)));
        self.frame(out, kind, fields);
    }

    fn event(&mut self, frame: &Frame<'_>) -> Result<ClientEvent, String> {
        if frame.channel == SessionId::FIRST {
            return match frame.kind {
                Kind::Login => Ok(ClientEvent::Nothing),
                Kind::Refuse if self.is_closed => Ok(ClientEvent::Nothing),
                Kind::Refuse => Ok(refused(frame)),
                other => Err(format!("{other:?} is not for the connection")),
            };
        }
        if self.is_closed {
            return Err(format!("{:?} comes after the end of its channel", frame.kind));
        }
        let is_body = frame.kind == Kind::Body;
        if is_body != self.unfinished.is_some() {
            return Err(format!("{:?}, and {:?} is not whole", frame.kind, self.unfinished));
        }
        let mut fields = Fields(frame.payload);
        match frame.kind {
            Kind::Deliver => delivered(&mut fields).map_or_else(
                || Err(String::from("a delivery is too short")),
                |(delivered, missing)| Ok(self.add(delivered, missing, b"")),
            ),
            Kind::Body => match self.unfinished.take() {
                Some((delivered, missing)) if frame.payload.len() <= missing => {
                    Ok(self.add(delivered, missing, frame.payload))
                }
                unfinished => Err(format!("a body is longer than announced: {unfinished:?}")),
            },
            Kind::Confirm => {
                let (number, is_multiple) =
                    fields.number(8).zip(fields.number(1)).ok_or("a short confirm")?;
                let is_refused = fields.number(1) == Some(1);
                Ok(ClientEvent::Published(Published { number, is_multiple: is_multiple == 1, is_refused }))
            }
            Kind::Refuse => {
                self.is_closed = true;
                Ok(refused(frame))
            }
            kind => {
                self.is_closed = kind == Kind::Close;
                if self.is_closed && self.drops {
                    self.asked.drain(..self.asked.len().saturating_sub(1));
                }
                let name = match self.asked.pop_front() {
                    Some((asked, name)) if asked == kind => name,
                    other => format!("{kind:?} for {other:?}"),
                };
                Ok(ClientEvent::Confirmed(Confirmed { name: Some(name), level: None, count: None }))
            }
        }
    }

    /// Appends bytes to the body of a delivery that lacks `missing` bytes.
    fn add(&mut self, mut delivered: Delivered, missing: usize, bytes: &[u8]) -> ClientEvent {
        delivered.body.extend_from_slice(bytes);
        match missing - bytes.len() {
            0 => ClientEvent::Delivered(delivered),
            missing => {
                self.unfinished = Some((delivered, missing));
                ClientEvent::Nothing
            }
        }
    }
}

impl ClientProtocol for ToyClient {
    fn abilities(&self) -> Abilities {
        Abilities {
            reads_queues: true,
            reads_topics: true,
            persists: true,
            confirms_apart: true,
            confirms_settles: true,
            has_windows: true,
            closes_at_once: true,
            ..Abilities::default()
        }
    }

    fn connect(&mut self, out: &mut Vec<u8>, is_intruder: bool) {
        let password = if is_intruder { "wrong" } else { "guest" };
        push(out, SessionId::FIRST, Kind::Login, |out| {
            out.extend([name("guest"), name(password)].concat());
        });
    }

    fn open(&mut self, out: &mut Vec<u8>, open: &Open<'_>) {
        let window = open.window.map_or(0, |window| window as u32);
        self.ask(out, Kind::Open, &[&window.to_be_bytes()], open.confirm);
    }

    fn subscribe(&mut self, out: &mut Vec<u8>, subscribe: &Subscribe<'_>) {
        let tag = [tag(subscribe.id)];
        let confirm = subscribe.confirm;
        match subscribe.place {
            Destination::Queue(queue) | Destination::DeclaredQueue(queue) => {
                let credit = (subscribe.prefetch as u32).to_be_bytes();
                self.ask(out, Kind::Consume, &[&tag, &credit, &name(queue)], confirm);
            }
            Destination::Topic(pattern) | Destination::Reply(pattern) => {
                self.ask(out, Kind::Subscribe, &[&tag, &name(pattern)], confirm);
            }
        }
    }

    fn unsubscribe(&mut self, out: &mut Vec<u8>, unsubscribe: &Unsubscribe<'_>) {
        self.ask(out, Kind::Cancel, &[&[tag(unsubscribe.id)]], unsubscribe.confirm);
    }

    fn publish(&mut self, out: &mut Vec<u8>, publish: &Publish<'_>) -> Option<usize> {
        let (exchange, subject) = match &publish.outgoing.place {
            Destination::Queue(queue) | Destination::DeclaredQueue(queue) => ("", queue),
            Destination::Topic(subject) | Destination::Reply(subject) => ("amq.topic", subject),
        };
        let is_persistent = [u8::from(publish.outgoing.is_persistent)];
        let len = (publish.body.len() as u32).to_be_bytes();
        self.frame(out, Kind::Publish, &[&is_persistent, &len, &name(exchange), &name(subject)]);
        for part in publish.body.chunks(PAYLOAD_BYTES_MAX) {
            self.frame(out, Kind::Body, &[part]);
        }
        // Its messages have no headers.
        Some(0)
    }

    fn settle(&mut self, out: &mut Vec<u8>, settle: &Settle<'_>) {
        let number: u64 = settle.ack.parse().unwrap_or_default();
        let outcome = match settle.outcome {
            Outcome::Release => 1,
            Outcome::Reject => 2,
            Outcome::Open | Outcome::Auto | Outcome::Accept => 0,
        };
        let confirm = settle.confirm.unwrap_or_default();
        self.ask(out, Kind::Settle, &[&number.to_be_bytes(), &[0, outcome]], confirm);
    }

    fn disconnect(&mut self, out: &mut Vec<u8>, disconnect: &Disconnect<'_>) {
        self.drops = disconnect.is_at_once;
        self.ask(out, Kind::Close, &[&[u8::from(self.drops)]], disconnect.confirm);
    }

    fn channel(&self) -> Option<u16> {
        Some(self.channel.0)
    }

    fn part(&self, input: &[u8]) -> Option<(usize, Option<u16>)> {
        match decode(input) {
            Ok(Some((frame, len))) => {
                Some((len, Some(frame.channel.0).filter(|channel| *channel != SessionId::FIRST.0)))
            }
            Ok(None) => None,
            // The reader of these bytes reports the error.
            Err(_) => Some((input.len(), None)),
        }
    }

    fn text_of(&self, mut bytes: &[u8]) -> String {
        let mut text = String::new();
        while let Ok(Some((frame, len))) = decode(bytes) {
            let payload = frame.payload.escape_ascii().to_string().replace("\\x00", "");
            text.push_str(&format!("{} {:?} {payload} | ", frame.channel.0, frame.kind));
            bytes = bytes.get(len..).unwrap_or_default();
        }
        text
    }

    fn read(&mut self, input: &[u8]) -> Result<Option<(usize, ClientEvent)>, String> {
        match decode(input)? {
            Some((frame, len)) => Ok(Some((len, self.event(&frame)?))),
            None => Ok(None),
        }
    }
}

/// Decodes the head of a delivery; returns the length of its body, too.
fn delivered(fields: &mut Fields<'_>) -> Option<(Delivered, usize)> {
    let (tag, number, is_redelivered) = (fields.number(1)?, fields.number(8)?, fields.number(1)?);
    let delivered = Delivered {
        subscription: format!("s{tag}"),
        number: Some(number),
        ack: number.to_string(),
        is_redelivered: is_redelivered == 1,
        ..Delivered::default()
    };
    Some((delivered, fields.number(4)? as usize))
}

fn refused(frame: &Frame<'_>) -> ClientEvent {
    let text = String::from_utf8_lossy(frame.payload);
    ClientEvent::Refused { message: complaint(&text), text: frame.payload.to_vec() }
}

/// The tag for a subscription's name, which is `s` and a number.
fn tag(id: &str) -> u8 {
    id.trim_start_matches('s').parse().unwrap_or(u8::MAX)
}

/// Encodes a name as a field.
fn name(text: &str) -> Vec<u8> {
    [&(text.len() as u16).to_be_bytes(), text.as_bytes()].concat()
}
