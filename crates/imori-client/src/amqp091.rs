//! AMQP 0-9-1: frames and contents of one connection.
//!
//! Commands may be pipelined, because the broker answers those of a channel in order.

use std::borrow::Cow;

use imori_amqp091::codec::frame::{
    FRAME_BYTES, Frame, FrameType, HEAD_BYTES, PROTOCOL_HEADER, Step, decode, push_body, push_content_header,
    push_method,
};
use imori_amqp091::codec::methods::{Method, basic, connection, queue};
use imori_amqp091::codec::properties::ContentHeader;
use imori_amqp091::codec::push::{push_field, push_table_field};
use imori_amqp091::codec::table::{FieldValue, Table};

use crate::Malformed;

/// The pseudo-queue whose replies arrive on the connection of the request.
pub const DIRECT_REPLY_TO: &str = "amq.rabbitmq.reply-to";

/// The exchange for topics.
pub const TOPICS: &str = "amq.topic";

/// `delivery-mode` of a message that survives a restart of the broker.
pub const PERSISTENT: u8 = 2;

/// The data with which a client logs in.
#[derive(Debug, Clone, Copy)]
pub struct Login<'a> {
    /// Name of the program.
    pub product: &'a str,
    /// Extensions that the client supports.
    pub capabilities: &'a [&'a str],
    /// User and password; without them, those of RabbitMQ's first user.
    pub user: Option<(&'a str, &'a str)>,
    /// The vhost to open.
    pub vhost: &'a str,
    /// The highest channel number.
    pub channel_max: u16,
    /// Bytes of the largest frame.
    pub frame_max: u32,
}

/// Appends everything from the protocol header to the opening of the vhost. There are no heartbeats.
pub fn push_login(out: &mut Vec<u8>, login: &Login<'_>) {
    let mut properties = Vec::new();
    push_field(&mut properties, b"product", FieldValue::Text(login.product.as_bytes()));
    push_table_field(&mut properties, b"capabilities", |out| {
        for capability in login.capabilities {
            push_field(out, capability.as_bytes(), FieldValue::Bool(true));
        }
    });
    let (user, password) = login.user.unwrap_or(("guest", "guest"));
    let response = format!("\0{user}\0{password}");
    let start_ok = connection::StartOk {
        client_properties: table(&properties),
        mechanism: "PLAIN",
        response: response.as_bytes(),
        locale: "en_US",
    };
    out.extend_from_slice(PROTOCOL_HEADER);
    push_method(out, 0, &start_ok);
    let Login { channel_max, frame_max, vhost, .. } = *login;
    push_method(out, 0, &connection::TuneOk { channel_max, frame_max, heartbeat: 0 });
    push_method(out, 0, &connection::Open { virtual_host: vhost });
}

/// Appends the declaration of a durable queue.
pub fn push_queue(out: &mut Vec<u8>, channel: u16, name: &str, arguments: Table<'_>) {
    let declare = queue::Declare { queue: name, durable: true, arguments, ..queue::Declare::default() };
    push_method(out, channel, &declare);
}

/// Appends an exclusive queue, which the broker names, with a binding. Until the next declaration,
/// the empty name stands for this queue.
pub fn push_own_queue(out: &mut Vec<u8>, channel: u16, exchange: &str, key: &str, arguments: Table<'_>) {
    let own = queue::Declare { exclusive: true, auto_delete: true, arguments, ..queue::Declare::default() };
    push_method(out, channel, &own);
    push_method(out, channel, &queue::Bind { exchange, routing_key: key, ..queue::Bind::default() });
}

/// Appends the limit of unacknowledged deliveries: of each consumer made after it, or of the channel.
pub fn push_qos(out: &mut Vec<u8>, channel: u16, prefetch_count: u16, is_of_channel: bool) {
    push_method(out, channel, &basic::Qos { prefetch_size: 0, prefetch_count, global: is_of_channel });
}

/// Where the parts of a publish stand, counted from where it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishPlaces {
    /// Offset of the first property, after the flags.
    pub properties_at: usize,
    /// Offset of the body.
    pub body_at: usize,
}

/// Appends a message in all its frames; `properties` is the encoded block with its flags.
pub fn push_publish(
    out: &mut Vec<u8>,
    channel: u16,
    publish: &basic::Publish<'_>,
    properties: &[u8],
    body: &[u8],
    frame_max: u32,
) -> PublishPlaces {
    const FLAGS_BYTES: usize = 2;
    let begin = out.len();
    push_method(out, channel, publish);
    push_content_header(out, channel, body.len(), properties);
    let header_ends = out.len() - begin;
    push_body(out, channel, body, frame_max as usize - FRAME_BYTES);
    let properties_at = header_ends - (FRAME_BYTES - HEAD_BYTES) - properties.len() + FLAGS_BYTES;
    PublishPlaces { properties_at, body_at: header_ends + HEAD_BYTES }
}

/// A table of fields that were just written.
pub fn table(fields: &[u8]) -> Table<'_> {
    Table::new(fields).unwrap_or(Table::EMPTY)
}

/// One item that a broker sends.
#[derive(Debug)]
pub enum Item<'a> {
    /// A message.
    Delivery(Delivery<'a>),
    /// Another method, on this channel.
    Method(u16, Method<'a>),
    /// A sign of life.
    Heartbeat,
}

/// A message with all its frames.
#[derive(Debug)]
pub struct Delivery<'a> {
    /// The method that begins it.
    pub deliver: basic::Deliver<'a>,
    /// The encoded properties.
    pub properties: &'a [u8],
    /// The body, borrowed if it came in a single frame.
    pub body: Cow<'a, [u8]>,
}

/// The content of a message, which follows its method.
#[derive(Debug)]
pub struct Content<'a> {
    /// The encoded properties.
    pub properties: &'a [u8],
    /// The body, borrowed if it came in a single frame.
    pub body: Cow<'a, [u8]>,
    /// Where it ends in the input.
    pub end: usize,
}

/// Decodes what a broker sends.
#[derive(Debug, Clone, Copy)]
pub struct Reader {
    /// Bytes of the longest payload of a frame.
    pub payload_bytes_max: usize,
    /// Bytes of the longest body.
    pub body_bytes_max: usize,
}

impl Reader {
    /// Decodes the first item and returns it with its length; `None` until all of it has arrived.
    ///
    /// # Errors
    /// The bytes are not of AMQP 0-9-1.
    pub fn take<'a>(&self, input: &'a [u8]) -> Result<Option<(Item<'a>, usize)>, Malformed> {
        let Some(frame) = self.frame(input, 0)? else { return Ok(None) };
        let item = match frame.kind {
            FrameType::Method => match Method::decode(frame.payload)? {
                Method::BasicDeliver(deliver) => {
                    let Some(Content { properties, body, end }) = self.content(input, frame.len())? else {
                        return Ok(None);
                    };
                    return Ok(Some((Item::Delivery(Delivery { deliver, properties, body }), end)));
                }
                method => Item::Method(frame.channel, method),
            },
            FrameType::Heartbeat => Item::Heartbeat,
            FrameType::Header | FrameType::Body => return Err("a part of a message comes alone".into()),
        };
        Ok(Some((item, frame.len())))
    }

    /// Decodes the frame at this offset; `None` if it is incomplete.
    ///
    /// # Errors
    /// The bytes are not of AMQP 0-9-1.
    #[inline]
    pub fn frame<'a>(&self, input: &'a [u8], at: usize) -> Result<Option<Frame<'a>>, Malformed> {
        match decode(input.get(at..).unwrap_or_default(), self.payload_bytes_max) {
            Ok(Step::Frame(frame)) => Ok(Some(frame)),
            Ok(Step::Incomplete { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Decodes header and body at this offset, where their method ends; `None` until all of them have
    /// arrived.
    ///
    /// # Errors
    /// The bytes are not of AMQP 0-9-1.
    #[inline]
    pub fn content<'a>(&self, input: &'a [u8], at: usize) -> Result<Option<Content<'a>>, Malformed> {
        let Some(header) = self.frame(input, at)? else { return Ok(None) };
        if header.kind != FrameType::Header {
            return Err("another frame comes within a message".into());
        }
        let ContentHeader { body_len, properties } = ContentHeader::decode(header.payload)?;
        let len = usize::try_from(body_len).ok().filter(|len| *len <= self.body_bytes_max);
        let Some(len) = len else { return Err("a message is longer than this client takes".into()) };
        let mut end = at + header.len();
        let (mut first, mut rest, mut arrived) = (&[][..], Vec::new(), 0);
        while arrived < len {
            let Some(part) = self.frame(input, end)? else { return Ok(None) };
            if part.kind != FrameType::Body {
                return Err("another frame comes within a message".into());
            }
            end += part.len();
            match arrived {
                0 => first = part.payload,
                _ => rest.push(part.payload),
            }
            arrived += part.payload.len();
        }
        let body = match rest.is_empty() {
            true => Cow::Borrowed(first),
            false => Cow::Owned([&[first], &*rest].concat().concat()),
        };
        Ok(Some(Content { properties, body, end }))
    }
}

/// The broker's refusal of a request, in its words if it has any; `None` for any other method.
pub fn refusal(method: &Method<'_>) -> Option<String> {
    Some(match method {
        Method::BasicReturn(returned) => {
            format!("no queue gets the message ({} {})", returned.reply_code, returned.reply_text)
        }
        Method::BasicNack(_) => String::from("the queue takes no message now"),
        Method::BasicCancel(_) => String::from("the queue is gone, and its consumers with it"),
        Method::ConnectionClose(close) => String::from(close.reply_text),
        Method::ChannelClose(close) => String::from(close.reply_text),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivered(body: &[u8], frame_max: u32) -> Vec<u8> {
        let (mut publish, mut out) = (Vec::new(), Vec::new());
        push_publish(&mut publish, 1, &basic::Publish::default(), &[0x10, 0, 2], body, frame_max);
        let mut method = Vec::new();
        push_method(&mut method, 1, &basic::Publish::default());
        push_method(&mut out, 1, &basic::Deliver { delivery_tag: 7, ..basic::Deliver::default() });
        out.extend_from_slice(&publish[method.len()..]);
        out
    }

    const READER: Reader = Reader { payload_bytes_max: 4096, body_bytes_max: 10_000 };

    #[test]
    fn a_message_comes_whole_whatever_frames_it_has() {
        for size in [0, 1, 4088, 4089, 10_000] {
            let body = vec![b'x'; size];
            let bytes = delivered(&body, 4096);
            for len in [0, 6, 7, 20, bytes.len() - 1] {
                assert!(READER.take(&bytes[..len]).unwrap().is_none(), "{len} of {size}");
            }
            let Some((Item::Delivery(delivery), used)) = READER.take(&bytes).unwrap() else {
                panic!("{size}")
            };
            assert_eq!((delivery.deliver.delivery_tag, &*delivery.body, used), (7, &*body, bytes.len()));
            assert_eq!(delivery.properties, [0x10, 0, 2]);
        }
        assert!(READER.take(&delivered(&[0; 10_001], 4096)).is_err(), "a body is too long");
    }

    #[test]
    fn a_message_is_not_interrupted() {
        let whole = delivered(b"body", 4096);
        let method_bytes = READER.frame(&whole, 0).unwrap().unwrap().len();
        let header_bytes = READER.frame(&whole, method_bytes).unwrap().unwrap().len();
        for cut_at in [method_bytes, method_bytes + header_bytes] {
            let bytes = [&whole[..cut_at], &whole].concat();
            assert!(READER.take(&bytes).is_err(), "{cut_at}");
        }
        assert!(READER.take(&whole[method_bytes..]).is_err(), "its method is missing");
    }

    #[test]
    fn the_places_of_a_publish_are_found() {
        let mut out = b"before".to_vec();
        let places =
            push_publish(&mut out, 1, &basic::Publish::default(), &[0x10, 0, 2], &[b'x'; 5000], 4096);
        assert_eq!(out[6 + places.properties_at], 2);
        assert_eq!(out[6 + places.body_at - HEAD_BYTES..][..1], [FrameType::Body as u8]);
        assert_eq!(out[6 + places.body_at], b'x');
    }
}
