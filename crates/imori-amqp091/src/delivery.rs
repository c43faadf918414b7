//! Encodes deliveries as `basic.deliver` or `basic.get-ok` with their content.
//!
//! The properties of a message from an AMQP 0-9-1 client are forwarded byte for byte. Properties
//! from another protocol, or of a dead letter, are encoded anew.

use std::borrow::Cow;

use imori_core::delivery::Delivery;
use imori_core::message::{
    DEFAULT_EXCHANGE, Deaths, HeaderReaders, MessageView, OFFSET, Origins, Property, Value, address_key,
};
use imori_core::name::Name;
use imori_core::outbound::{
    AfterCancel, Confirmed, CutReason, Encoder, EncoderKind, Recipient, SharedHeaders,
};

use crate::codec::frame::{
    FRAME_BYTES, FRAME_END, FrameType, HEAD_BYTES, push_body, push_content_header, push_frame, push_head,
    push_method,
};
use crate::codec::method::MethodFields;
use crate::codec::methods::{basic, connection};
use crate::codec::properties::{BasicProperties, TextProperty};
use crate::codec::push::{
    SHORT_STR_BYTES_MAX, push_array_field, push_array_value, push_field, push_short_bytes, push_table_value,
    push_value,
};
use crate::codec::table::{FieldValue, Table};
use crate::header_block::{BASIC, PERSISTENT, is_of_deaths};
use crate::limits::FRAME_BYTES_MIN;
use crate::protocol_error::{Code, ProtocolError};
use crate::settings::Settings;

/// Encodes the deliveries of a connection.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryEncoder {
    payload_bytes_max: usize,
    /// The client understands the broker's `basic.cancel`.
    is_told_of_cancels: bool,
    kind: EncoderKind,
    origins: Origins,
    header_readers: HeaderReaders,
}

/// Largest payload that every client accepts, in bytes.
const SMALLEST_PAYLOAD: usize = FRAME_BYTES_MIN as usize - FRAME_BYTES;

/// First octet of a label: a consumer, or the answer to a `basic.get`.
const CONSUMER: u8 = 0;
const GET: u8 = 1;

/// Returns the label of a consumer: its channel, and its tag as a short string.
pub fn consumer_label(channel: u16, tag: &str) -> Box<[u8]> {
    let mut label = vec![CONSUMER];
    label.extend_from_slice(&channel.to_be_bytes());
    push_short_bytes(&mut label, tag.as_bytes());
    label.into_boxed_slice()
}

/// Returns the label for the answer to a `basic.get`, with the number of messages left in the
/// queue.
pub(crate) fn get_label(left: usize) -> Box<[u8]> {
    let left = u32::try_from(left).unwrap_or(u32::MAX).to_be_bytes();
    [&[GET][..], &left].concat().into_boxed_slice()
}

impl DeliveryEncoder {
    /// Creates an encoder for this frame size; `is_told_of_cancels` if the client understands
    /// `basic.cancel`.
    pub fn new(frame_bytes_max: u32, is_told_of_cancels: bool, settings: &Settings) -> DeliveryEncoder {
        let Settings { origins, encoder_kinds, header_readers, .. } = *settings;
        DeliveryEncoder {
            payload_bytes_max: (frame_bytes_max as usize).saturating_sub(FRAME_BYTES),
            is_told_of_cancels,
            kind: encoder_kinds.kind(0),
            origins,
            header_readers,
        }
    }

    #[inline]
    fn push_message(
        &self,
        out: &mut Vec<u8>,
        recipient: &Recipient<'_>,
        delivery: &Delivery<'_>,
        shared: &mut SharedHeaders,
    ) {
        match recipient.label.first() {
            Some(&GET) => self.push_get_ok(out, recipient, delivery),
            _ => self.push_deliver(out, recipient, delivery, shared),
        }
    }

    /// Writes the header and body frames of a delivery.
    fn push_content(&self, out: &mut Vec<u8>, channel: u16, delivery: &Delivery<'_>) {
        self.push_header(out, channel, delivery);
        push_body(out, channel, delivery.message.body, self.payload_bytes_max);
    }

    fn push_header(&self, out: &mut Vec<u8>, channel: u16, delivery: &Delivery<'_>) {
        let message = &delivery.message;
        let is_native = self.origins.form(message.properties.origin) == Some(BASIC);
        if is_native && delivery.died().is_none() && !delivery.is_of_stream {
            push_content_header(out, channel, message.body.len(), message.text);
        } else {
            push_content_header(out, channel, message.body.len(), &self.rendered(delivery, is_native));
        }
    }

    #[inline]
    fn push_deliver(
        &self,
        out: &mut Vec<u8>,
        recipient: &Recipient<'_>,
        delivery: &Delivery<'_>,
        shared: &mut SharedHeaders,
    ) {
        // The label starts with its kind and the channel.
        let tag = recipient.label.get(3..).unwrap_or_default();
        let (exchange, subject) = (short(delivery.address.exchange()), short(delivery.address.subject()));
        let names_len = 1 + exchange.len() + 1 + subject.len();
        let body = delivery.message.body;
        let [channel1, channel2] = recipient.session.0.to_be_bytes();
        let [len1, len2, len3, len4] = ((4 + tag.len() + 8 + 1 + names_len) as u32).to_be_bytes();
        let [class1, class2] = basic::Deliver::ID.class.to_be_bytes();
        let [method1, method2] = basic::Deliver::ID.method.to_be_bytes();
        out.extend_from_slice(&[
            FrameType::Method as u8,
            channel1,
            channel2,
            len1,
            len2,
            len3,
            len4,
            class1,
            class2,
            method1,
            method2,
        ]);
        out.extend_from_slice(tag);
        let [tag1, tag2, tag3, tag4, tag5, tag6, tag7, tag8] = recipient.number.to_be_bytes();
        let redelivered = u8::from(delivery.is_redelivered);
        out.extend_from_slice(&[tag1, tag2, tag3, tag4, tag5, tag6, tag7, tag8, redelivered]);
        // A body that fits into the smallest frame is a single frame for every receiver, so its
        // head can be shared.
        let is_one = (1..=SMALLEST_PAYLOAD).contains(&body.len());
        let begin = out.len();
        shared.append(self.kind, out, |out| {
            push_short_bytes(out, exchange);
            push_short_bytes(out, subject);
            out.push(FRAME_END);
            self.push_header(out, 0, delivery);
            if is_one {
                push_head(out, FrameType::Body, 0, body.len() as u32);
            }
        });
        // Fills the channel into the shared part, after the types of its frames.
        put(out, begin + names_len + 2, [channel1, channel2]);
        if is_one {
            let body_head = out.len() - HEAD_BYTES;
            put(out, body_head + 1, [channel1, channel2]);
            out.reserve(body.len() + 1);
            out.extend_from_slice(body);
            out.push(FRAME_END);
        } else {
            push_body(out, recipient.session.0, body, self.payload_bytes_max);
        }
    }

    #[cold]
    fn push_get_ok(&self, out: &mut Vec<u8>, recipient: &Recipient<'_>, delivery: &Delivery<'_>) {
        let left = recipient.label.get(1..).unwrap_or_default();
        push_frame(out, FrameType::Method, recipient.session.0, |out| {
            push_id::<basic::GetOk<'_>>(out);
            out.extend_from_slice(&recipient.number.to_be_bytes());
            out.push(u8::from(delivery.is_redelivered));
            push_short_bytes(out, delivery.address.exchange());
            push_short_bytes(out, delivery.address.subject());
            out.extend_from_slice(left);
        });
        self.push_content(out, recipient.session.0, delivery);
    }

    /// Encodes the properties of a message from another protocol, of a dead letter, or of a message of a stream.
    #[cold]
    fn rendered(&self, delivery: &Delivery<'_>, is_native: bool) -> Vec<u8> {
        let message = &delivery.message;
        let (mut headers, mut out) = (Vec::new(), Vec::new());
        let mut basic = if is_native {
            BasicProperties::read(message.text).unwrap_or_default()
        } else {
            foreign(message, &mut headers)
        };
        let (reply_to, expiration);
        if is_native {
            let own = basic.headers.unwrap_or_default();
            own.iter()
                .filter(|(name, _)| delivery.died().is_none() || !is_of_deaths(name))
                .filter(|(name, _)| !delivery.is_of_stream || *name != OFFSET.as_bytes())
                .for_each(|(name, value)| push_field(&mut headers, name, value));
        } else {
            let reader = (self.header_readers)(message.properties.origin);
            reply_to =
                reader.reply_address(message).and_then(|(exchange, subject)| reply_key(&exchange, subject));
            let key = reply_to.as_deref();
            expiration = message.properties.expiration_ms.map(|ms| ms.to_string());
            basic.expiration = expiration.as_ref().map(|text| TextProperty::new(text.as_bytes()));
            basic.reply_to = key.filter(|key| key.len() <= SHORT_STR_BYTES_MAX).map(TextProperty::new);
            reader.visit_headers(message.text, &mut |name, value| {
                if !delivery.is_of_stream || *name != *OFFSET.as_bytes() {
                    push_header(&mut headers, &name, &value);
                }
            });
        }
        if let Some(offset) = delivery.offset() {
            push_field(&mut headers, OFFSET.as_bytes(), FieldValue::I64(offset));
        }
        if let Some(deaths) = delivery.died() {
            // A dead letter does not expire again.
            basic.expiration = None;
            push_deaths(&mut headers, deaths);
        }
        if delivery.address.subject().len() > SHORT_STR_BYTES_MAX {
            push_field(&mut headers, b"x-imori-subject", FieldValue::Text(delivery.address.subject()));
        }
        basic.headers = Table::new(&headers).ok().filter(|headers| !headers.is_empty());
        basic.push(&mut out);
        out
    }
}

impl Encoder for DeliveryEncoder {
    #[inline]
    fn deliver(
        &mut self,
        out: &mut Vec<u8>,
        recipient: &Recipient<'_>,
        delivery: &Delivery<'_>,
        shared: &mut SharedHeaders,
    ) {
        match delivery.decoded_body(self.origins, self.header_readers) {
            None => self.push_message(out, recipient, delivery, shared),
            Some(body) => self.push_message(out, recipient, &delivery.with_body(&body), shared),
        }
    }

    /// A body in a single frame ends with the frame end; an empty body has no frame.
    #[inline]
    fn run_end(&self, body_len: usize) -> Option<&'static [u8]> {
        (1..=self.payload_bytes_max).contains(&body_len).then_some(&[FRAME_END])
    }

    #[inline]
    fn renumber(&mut self, headers: &mut [u8], recipient: &Recipient<'_>) -> bool {
        let [CONSUMER, _, _, tag @ ..] = recipient.label else { return false };
        let begin = HEAD_BYTES + 2 + 2 + tag.len();
        let place = headers.get_mut(begin..).and_then(<[u8]>::first_chunk_mut);
        place.map(|place| *place = recipient.number.to_be_bytes()).is_some()
    }

    fn confirmed(&mut self, out: &mut Vec<u8>, confirmed: Confirmed) {
        let Confirmed { session, first, last, is_in_order, is_refused } = confirmed;
        let multiple = is_in_order && first < last;
        let tags = if is_in_order { last..=last } else { first..=last };
        for delivery_tag in tags {
            if is_refused {
                push_method(out, session.0, &basic::Nack { delivery_tag, multiple, requeue: false });
            } else {
                push_method(out, session.0, &basic::Ack { delivery_tag, multiple });
            }
        }
    }

    fn cancelled(&mut self, out: &mut Vec<u8>, label: &[u8], _queue: &Name) -> AfterCancel {
        if let [CONSUMER, channel1, channel2, _len, tag @ ..] = label
            && self.is_told_of_cancels
        {
            let consumer_tag = std::str::from_utf8(tag).unwrap_or_default();
            let cancel = basic::Cancel { consumer_tag, no_wait: true };
            push_method(out, u16::from_be_bytes([*channel1, *channel2]), &cancel);
        }
        AfterCancel::GoOn
    }

    fn cut(&mut self, out: &mut Vec<u8>, reason: &CutReason) {
        let code = match reason {
            CutReason::TooSlow { .. } | CutReason::Stalled { .. } | CutReason::Unfinished { .. } => {
                Code::ResourceError
            }
            CutReason::QueueDeleted { .. }
            | CutReason::ClosedByOperator { .. }
            | CutReason::Revoked { .. }
            | CutReason::TokenExpired { .. }
            | CutReason::ShuttingDown => Code::ConnectionForced,
            CutReason::Fault => Code::InternalError,
        };
        let text = ProtocolError::new(code, reason).text();
        let close =
            connection::Close { reply_code: code.number(), reply_text: &text, class_id: 0, method_id: 0 };
        push_method(out, 0, &close);
    }
}

/// Appends a `basic.return` with the returned message.
pub(crate) fn push_return(
    out: &mut Vec<u8>,
    channel: u16,
    publish: &basic::Publish<'_>,
    properties: &[u8],
    body: &[u8],
    payload_bytes_max: usize,
) {
    // AMQP 0-9-1, 1.2: 312, no route.
    let (exchange, routing_key) = (publish.exchange, publish.routing_key);
    let returned = basic::Return { reply_code: 312, reply_text: "NO_ROUTE", exchange, routing_key };
    push_method(out, channel, &returned);
    push_content_header(out, channel, body.len(), properties);
    push_body(out, channel, body, payload_bytes_max);
}

/// Overwrites the channel at a position in encoded frames.
#[inline]
fn put(out: &mut [u8], at: usize, channel: [u8; 2]) {
    if let Some(place) = out.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *place = channel;
    }
}

fn push_id<'a, M: MethodFields<'a>>(out: &mut Vec<u8>) {
    out.extend_from_slice(&M::ID.class.to_be_bytes());
    out.extend_from_slice(&M::ID.method.to_be_bytes());
}

/// Truncates a name to a short string. Names of other protocols may be longer; the full name is
/// sent as a header.
fn short(name: &[u8]) -> &[u8] {
    name.get(..SHORT_STR_BYTES_MAX).unwrap_or(name)
}

/// Returns the routing key in the default exchange with which a reply reaches an address.
fn reply_key<'a>(exchange: &[u8], subject: Cow<'a, [u8]>) -> Option<Cow<'a, [u8]>> {
    if *exchange == *DEFAULT_EXCHANGE {
        return Some(subject);
    }
    address_key(exchange, &subject).map(Cow::Owned)
}

/// Returns the properties of a message from another protocol. A text too long for a property
/// becomes a header.
fn foreign<'a>(message: &MessageView<'a>, headers: &mut Vec<u8>) -> BasicProperties<'a> {
    let mut text = |property, name: &str| {
        let value = message.property(property)?;
        if value.len() > SHORT_STR_BYTES_MAX {
            push_field(headers, name.as_bytes(), FieldValue::Text(value));
            return None;
        }
        Some(TextProperty::new(value))
    };
    BasicProperties {
        content_type: text(Property::ContentType, "content-type"),
        content_encoding: text(Property::ContentEncoding, "content-encoding"),
        correlation_id: text(Property::CorrelationId, "correlation-id"),
        message_id: text(Property::MessageId, "message-id"),
        kind: text(Property::Type, "type"),
        user_id: text(Property::UserId, "user-id"),
        app_id: text(Property::AppId, "app-id"),
        delivery_mode: message.properties.is_persistent.then_some(PERSISTENT),
        priority: message.properties.priority,
        timestamp: message.properties.timestamp,
        ..BasicProperties::default()
    }
}

/// Writes a header of another protocol; omits one whose name is too long.
fn push_header(out: &mut Vec<u8>, name: &[u8], value: &Value<'_>) {
    if name.len() <= SHORT_STR_BYTES_MAX {
        push_short_bytes(out, name);
        push_any(out, value);
    }
}

fn push_any(out: &mut Vec<u8>, value: &Value<'_>) {
    let field = match value {
        Value::Null => FieldValue::Void,
        Value::Bool(value) => FieldValue::Bool(*value),
        Value::Int(number) => FieldValue::I64(*number),
        // Tables have no unsigned 64-bit numbers.
        Value::Uint(number) => match i64::try_from(*number) {
            Ok(number) => FieldValue::I64(number),
            Err(_) => FieldValue::F64(*number as f64),
        },
        Value::Float(number) => FieldValue::F64(*number),
        Value::Timestamp(ms) => FieldValue::Timestamp(u64::try_from(*ms / 1000).unwrap_or_default()),
        Value::Text(bytes) => FieldValue::Text(bytes),
        Value::Binary(bytes) => FieldValue::Bytes(bytes),
        Value::List(values) => {
            return push_array_value(out, |out| values.iter().for_each(|value| push_any(out, value)));
        }
        Value::Map(entries) => {
            return push_table_value(out, |out| {
                entries.iter().for_each(|(name, value)| push_header(out, name, value));
            });
        }
    };
    push_value(out, field);
}

/// Writes the history of a dead letter in RabbitMQ's form: `x-death`, and the first and last death
/// separately.
fn push_deaths(out: &mut Vec<u8>, deaths: &Deaths) {
    push_array_field(out, b"x-death", |out| {
        for death in deaths.iter() {
            push_table_value(out, |out| {
                push_field(out, b"count", FieldValue::I64(i64::try_from(death.count).unwrap_or(i64::MAX)));
                push_field(out, b"reason", FieldValue::Text(death.reason.as_str().as_bytes()));
                push_field(out, b"queue", FieldValue::Text(death.queue.as_bytes()));
                // The core's time is in microseconds.
                push_field(out, b"time", FieldValue::Timestamp(death.time.0 / 1_000_000));
                push_field(out, b"exchange", FieldValue::Text(death.address.exchange.as_bytes()));
                push_array_field(out, b"routing-keys", |out| {
                    push_value(out, FieldValue::Text(death.address.subject.as_bytes()));
                });
            });
        }
    });
    let ends = [("first", deaths.first()), ("last", deaths.iter().next())];
    for (which, death) in ends.into_iter().filter_map(|(which, death)| Some((which, death?))) {
        let mut push = |what: &str, text: &[u8]| {
            push_field(out, format!("x-{which}-death-{what}").as_bytes(), FieldValue::Text(text));
        };
        push("reason", death.reason.as_str().as_bytes());
        push("queue", death.queue.as_bytes());
        push("exchange", death.address.exchange.as_bytes());
    }
}
