//! Decodes the frames of an AMQP 0-9-1 broker, and numbers its confirms.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow, bail, ensure};
use imori_amqp091::codec::frame::{Frame, FrameType, Step, decode};
use imori_amqp091::codec::methods::{Method, basic};
use imori_amqp091::codec::properties::{BasicProperties, ContentHeader};
use imori_amqp091::codec::table::{FieldValue, Table};
use imori_amqp091::limits::FRAME_BYTES_MAX;

use crate::limits::FRAME_BYTES_MAX as BODY_BYTES_MAX;
use crate::protocol::driver::{Confirmed, Delivery, Heard, Reader, text};

/// The error for bytes that no AMQP 0-9-1 broker would send.
const NOT_AMQP: &str = "what the broker sends is not AMQP 0-9-1; correct scheme or port of `--url`";

/// Bytes of a delivery tag.
const TAG_BYTES: usize = 8;

/// Decodes the bytes of one connection.
#[derive(Debug, Default)]
pub(super) struct AmqpReader {
    server: String,
    /// The body of a delivery that spans several frames.
    body: Vec<u8>,
    confirms: Confirms,
}

/// The confirmed publishes of a channel, numbered from 1.
#[derive(Debug, Default)]
struct Confirms {
    /// All publishes up to this one are confirmed.
    until: u64,
    /// Confirmed publishes after `until`.
    out_of_turn: BTreeSet<u64>,
}

impl Reader for AmqpReader {
    fn take<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Option<(Heard<'a>, usize)>> {
        let Some(frame) = frame(bytes)? else {
            return Ok(None);
        };
        if frame.kind != FrameType::Method {
            ensure!(frame.kind == FrameType::Heartbeat, "{NOT_AMQP}");
            return Ok(Some((Heard::Nothing, frame.len())));
        }
        let heard = match Method::decode(frame.payload).map_err(|_| anyhow!("{NOT_AMQP}"))? {
            Method::BasicDeliver(deliver) => return self.delivery(&deliver, frame, bytes),
            Method::BasicAck(ack) => match self.confirms.next(ack.delivery_tag, ack.multiple) {
                Some((number, has_more)) => {
                    let confirmed = Confirmed { number: number as u32, level: None };
                    let used = if has_more { 0 } else { frame.len() };
                    return Ok(Some((Heard::Confirmed(Some(confirmed)), used)));
                }
                None => Heard::Nothing,
            },
            Method::ConnectionStart(start) => {
                self.server = server(start.server_properties);
                Heard::Nothing
            }
            Method::ConnectionTune(tune) => {
                let max = tune.frame_max;
                if max != 0 && max < FRAME_BYTES_MAX {
                    bail!("the broker takes frames of `{max}` bytes; let it take `{FRAME_BYTES_MAX}`");
                }
                Heard::Nothing
            }
            Method::ChannelOpenOk(_) | Method::ChannelFlowOk(_) => Heard::Confirmed(None),
            Method::ConnectionClose(close) => Heard::Error(text(close.reply_text.as_bytes())),
            Method::ChannelClose(close) => Heard::Error(text(close.reply_text.as_bytes())),
            Method::BasicNack(_) => Heard::Error("it does not take a message".to_owned()),
            Method::BasicCancel(_) => Heard::Error("it cancels a consumer, whose queue is gone".to_owned()),
            _ => Heard::Nothing,
        };
        Ok(Some((heard, frame.len())))
    }

    fn server(&self) -> &str {
        &self.server
    }
}

impl AmqpReader {
    /// Decodes a delivery; `None` until its header and whole body have arrived.
    fn delivery<'a>(
        &'a mut self,
        deliver: &basic::Deliver<'_>,
        first: Frame<'a>,
        bytes: &'a [u8],
    ) -> Result<Option<(Heard<'a>, usize)>> {
        let mut used = first.len();
        let Some(header) = frame(bytes.get(used..).unwrap_or_default())? else {
            return Ok(None);
        };
        used += header.len();
        let content = ContentHeader::decode(header.payload).map_err(|_| anyhow!("{NOT_AMQP}"))?;
        let properties = BasicProperties::read(content.properties).map_err(|_| anyhow!("{NOT_AMQP}"))?;
        let len = usize::try_from(content.body_len).ok().filter(|len| *len <= BODY_BYTES_MAX);
        let Some(len) = len else { bail!("{NOT_AMQP}") };
        let mut body: &'a [u8] = &[];
        self.body.clear();
        while body.len().max(self.body.len()) < len {
            let Some(part) = frame(bytes.get(used..).unwrap_or_default())? else {
                return Ok(None);
            };
            used += part.len();
            // A body in a single frame is borrowed from the buffer.
            match part.payload.len() == len {
                true => body = part.payload,
                false => self.body.extend_from_slice(part.payload),
            }
        }
        let value = |property: Option<imori_amqp091::codec::properties::TextProperty<'a>>| {
            property.map_or(&[][..], |text| text.bytes)
        };
        let delivery = Delivery {
            correlation: value(properties.correlation_id),
            reply_to: value(properties.reply_to),
            ack: tag_bytes(first.payload, deliver.consumer_tag),
            is_redelivered: deliver.redelivered,
            body: if body.is_empty() { &self.body } else { body },
        };
        Ok(Some((Heard::Delivery(delivery), used)))
    }
}

impl Confirms {
    /// The next publish that an ack confirms, counted from 0, and whether the ack confirms more.
    fn next(&mut self, tag: u64, is_multiple: bool) -> Option<(u64, bool)> {
        self.pass_those_out_of_turn();
        if self.until >= tag {
            return None;
        }
        if !is_multiple && tag > self.until + 1 {
            return self.out_of_turn.insert(tag).then_some((tag - 1, false));
        }
        self.until += 1;
        let confirmed = self.until;
        self.pass_those_out_of_turn();
        Some((confirmed - 1, self.until < tag))
    }

    fn pass_those_out_of_turn(&mut self) {
        while self.out_of_turn.remove(&(self.until + 1)) {
            self.until += 1;
        }
    }
}

/// The frame at the start of the bytes; `None` if it is incomplete.
fn frame(bytes: &[u8]) -> Result<Option<Frame<'_>>> {
    match decode(bytes, FRAME_BYTES_MAX as usize) {
        Ok(Step::Frame(frame)) => Ok(Some(frame)),
        Ok(Step::Incomplete { .. }) => Ok(None),
        Err(_) => bail!("{NOT_AMQP}"),
    }
}

/// The bytes of the delivery tag in `basic.deliver`, after class, method and consumer tag.
fn tag_bytes<'a>(payload: &'a [u8], consumer_tag: &str) -> &'a [u8] {
    let from = 2 + 2 + 1 + consumer_tag.len();
    payload.get(from..from + TAG_BYTES).unwrap_or_default()
}

/// Product, version and platform of the broker.
fn server(properties: Table<'_>) -> String {
    let value = |name: &str| match properties.find(name) {
        Some(FieldValue::Text(bytes)) => text(bytes),
        _ => String::new(),
    };
    format!("{} {} on {}", value("product"), value("version"), value("platform"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_publish_is_confirmed_once_in_whatever_order() {
        let mut confirms = Confirms::default();
        let mut given = Vec::new();
        for (tag, is_multiple) in
            [(1, false), (4, false), (3, true), (4, true), (7, false), (9, true), (9, true)]
        {
            while let Some((number, has_more)) = confirms.next(tag, is_multiple) {
                given.push(number);
                if !has_more {
                    break;
                }
            }
        }
        assert_eq!(given, [0, 3, 1, 2, 6, 4, 5, 7, 8]);
        assert!(confirms.out_of_turn.is_empty());
    }
}
