//! Decodes the frames of an AMQP 0-9-1 broker, and numbers its confirms.

use std::borrow::Cow;
use std::collections::BTreeSet;

use anyhow::{Result, anyhow, bail, ensure};
use imori_amqp091::codec::frame::FrameType;
use imori_amqp091::codec::methods::Method;
use imori_amqp091::codec::properties::{BasicProperties, TextProperty};
use imori_amqp091::codec::table::{FieldValue, Table};
use imori_amqp091::limits::FRAME_BYTES_MAX;
use imori_client::Malformed;
use imori_client::amqp091::{self, refusal};

use crate::limits::FRAME_BYTES_MAX as BODY_BYTES_MAX;
use crate::protocol::driver::{Confirmed, Delivery, Heard, Reader, text};

/// The error for bytes that no AMQP 0-9-1 broker would send.
const NOT_AMQP: &str = "what the broker sends is not AMQP 0-9-1; correct scheme or port of `--url`";

/// Frames and bodies of any size that this tool takes.
const FRAMES: amqp091::Reader =
    amqp091::Reader { payload_bytes_max: FRAME_BYTES_MAX as usize, body_bytes_max: BODY_BYTES_MAX };

/// Decodes the bytes of one connection.
#[derive(Debug, Default)]
pub(super) struct AmqpReader {
    server: String,
    /// The body of a delivery that came in several frames.
    body: Vec<u8>,
    /// The tag of the last delivery, as the token for its acknowledgement.
    tag: [u8; 8],
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
        let not_amqp = |_: Malformed| anyhow!("{NOT_AMQP}");
        let Some(frame) = FRAMES.frame(bytes, 0).map_err(not_amqp)? else { return Ok(None) };
        if frame.kind != FrameType::Method {
            ensure!(frame.kind == FrameType::Heartbeat, "{NOT_AMQP}");
            return Ok(Some((Heard::Nothing, frame.len())));
        }
        let len = frame.len();
        let heard = match Method::decode(frame.payload).map_err(|_| anyhow!("{NOT_AMQP}"))? {
            Method::BasicDeliver(deliver) => {
                let Some(content) = FRAMES.content(bytes, len).map_err(not_amqp)? else { return Ok(None) };
                let properties =
                    BasicProperties::read(content.properties).map_err(|_| anyhow!("{NOT_AMQP}"))?;
                let value = |property: Option<TextProperty<'a>>| property.map_or(&[][..], |text| text.bytes);
                self.tag = deliver.delivery_tag.to_be_bytes();
                let delivery = Delivery {
                    correlation: value(properties.correlation_id),
                    reply_to: value(properties.reply_to),
                    ack: &self.tag,
                    is_redelivered: deliver.redelivered,
                    body: match content.body {
                        Cow::Borrowed(body) => body,
                        Cow::Owned(body) => {
                            self.body = body;
                            &self.body
                        }
                    },
                };
                return Ok(Some((Heard::Delivery(delivery), content.end)));
            }
            Method::BasicAck(ack) => match self.confirms.next(ack.delivery_tag, ack.multiple) {
                Some((number, has_more)) => {
                    let confirmed = Confirmed { number: number as u32, level: None };
                    let used = if has_more { 0 } else { len };
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
            method => {
                refusal(&method).map_or(Heard::Nothing, |refusal| Heard::Error(text(refusal.as_bytes())))
            }
        };
        Ok(Some((heard, len)))
    }

    fn server(&self) -> &str {
        &self.server
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
