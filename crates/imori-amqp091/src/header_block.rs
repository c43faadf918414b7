//! Reads the header block of a message from an AMQP client: flags and values of its properties, as
//! received.

use std::borrow::Cow;
use std::str;

use imori_core::message::{HeaderReader, NoHeaders, OriginId, Origins, Properties, Property, Span, Value};

use crate::codec::properties::{BasicProperties, TextProperty};
use crate::codec::table::{FieldValue, Table};
use crate::limits::{HEADERS_MAX, PROPERTIES_BYTES_MAX};
use crate::protocol_error::{Code, ProtocolError};

/// Number of header block forms, and so of the origins that AMQP 0-9-1 needs.
pub const FORMS: u8 = 1;

/// AMQP's origins in a broker without other protocols.
pub const SOLE_ORIGINS: Origins = Origins::new(1, FORMS);

/// The only form of a header block.
pub const BASIC: u8 = 0;

/// The `delivery-mode` of a persistent message.
pub(crate) const PERSISTENT: u8 = 2;

/// Returns the text properties shared by all protocols, in AMQP's order.
pub(crate) fn texts<'a>(properties: &BasicProperties<'a>) -> [(Property, Option<TextProperty<'a>>); 8] {
    [
        (Property::ContentType, properties.content_type),
        (Property::ContentEncoding, properties.content_encoding),
        (Property::CorrelationId, properties.correlation_id),
        (Property::ReplyTo, properties.reply_to),
        (Property::MessageId, properties.message_id),
        (Property::Type, properties.kind),
        (Property::UserId, properties.user_id),
        (Property::AppId, properties.app_id),
    ]
}

/// Headers of a publish with instructions to the broker.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Requests<'a> {
    /// `CC`: further routing keys.
    pub cc: Option<FieldValue<'a>>,
    /// `BCC`: further routing keys that receivers do not see.
    pub bcc: Option<FieldValue<'a>>,
    /// `x-delay`.
    pub delay: Option<FieldValue<'a>>,
}

/// The headers with a message's group and its number in the group, as in JMS.
const GROUP_ID: &[u8] = b"JMSXGroupID";
const GROUP_SEQUENCE: &[u8] = b"JMSXGroupSeq";

/// The group headers of a message.
#[derive(Debug, Default, Clone, Copy)]
struct Group<'a> {
    id: Option<FieldValue<'a>>,
    sequence: Option<FieldValue<'a>>,
}

/// Reads the properties that the broker needs, and the instructions in headers; `user` is the
/// client's user.
///
/// # Errors
/// [`ProtocolError`] for properties that no message may have.
pub fn read<'a>(
    block: &'a [u8],
    origin: OriginId,
    user: &[u8],
) -> Result<(Properties, Requests<'a>), ProtocolError> {
    if block.len() > PROPERTIES_BYTES_MAX {
        let text =
            format_args!("properties size {} is larger than max size {PROPERTIES_BYTES_MAX}", block.len());
        return Err(ProtocolError::new(Code::PreconditionFailed, text));
    }
    let basic = BasicProperties::read(block)?;
    let mut properties = Properties::new(origin);
    properties.is_persistent = basic.delivery_mode == Some(PERSISTENT);
    properties.priority = basic.priority;
    properties.timestamp = basic.timestamp;
    if let Some(expiration) = basic.expiration {
        properties.expiration_ms = Some(milliseconds(expiration.bytes)?);
    }
    for (property, text) in texts(&basic) {
        if let Some(span) = text.and_then(|text| Span::new(text.start, text.bytes.len())) {
            properties.set(property, span);
        }
    }
    if let Some(claimed) = basic.user_id
        && claimed.bytes != user
    {
        return Err(other_user(claimed.bytes, user));
    }
    let (requests, group) = basic.headers.map(requests).transpose()?.unwrap_or_default();
    if let Some(FieldValue::Text(id)) = group.id {
        let start = id.as_ptr().addr().checked_sub(block.as_ptr().addr());
        if let Some(span) = start.and_then(|start| Span::new(start, id.len())) {
            properties.set(Property::GroupId, span);
        }
        if group.sequence.map(value).is_some_and(|sequence| *sequence.to_text() == *b"-1") {
            properties.end_group();
        }
    }
    Ok((properties, requests))
}

/// SECURITY AUTH-08: a client may name only its own user.
#[cold]
fn other_user(claimed: &[u8], user: &[u8]) -> ProtocolError {
    let text = format_args!(
        "user_id property set to '{}' but authenticated user was '{}'",
        claimed.escape_ascii(),
        user.escape_ascii()
    );
    ProtocolError::new(Code::PreconditionFailed, text)
}

/// Reads the instructions and the group from the headers, and checks the limit on headers. The
/// first of repeated headers counts.
fn requests(headers: Table<'_>) -> Result<(Requests<'_>, Group<'_>), ProtocolError> {
    let (mut count, mut requests, mut group) = (0, Requests::default(), Group::default());
    for (name, value) in headers.iter() {
        count += 1;
        let known = match name {
            b"CC" => &mut requests.cc,
            b"BCC" => &mut requests.bcc,
            b"x-delay" => &mut requests.delay,
            GROUP_ID => &mut group.id,
            GROUP_SEQUENCE => &mut group.sequence,
            _ => continue,
        };
        known.get_or_insert(value);
    }
    if count > HEADERS_MAX {
        let text = format_args!("{count} headers are more than the {HEADERS_MAX} that a message may have");
        return Err(ProtocolError::new(Code::PreconditionFailed, text));
    }
    Ok((requests, group))
}

/// Parses an expiration: whole milliseconds as text.
fn milliseconds(text: &[u8]) -> Result<u32, ProtocolError> {
    let digits = str::from_utf8(text.strip_prefix(b"+").unwrap_or(text)).ok();
    let digits = digits.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| bad_expiration(text))
}

/// RabbitMQ's text for an invalid expiration.
#[cold]
fn bad_expiration(text: &[u8]) -> ProtocolError {
    let (shown, sign) = (text.escape_ascii(), usize::from(matches!(text, [b'-' | b'+', ..])));
    let digits = text.iter().skip(sign).take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = text.split_at_checked(sign + digits).unwrap_or_default();
    let number = number.escape_ascii();
    let why = match (digits, rest) {
        (0, _) => "no_integer".to_string(),
        (_, []) if text.starts_with(b"-") => format!("{{value_negative,{number}}}"),
        (_, []) => format!("{{value_too_large,{number}}}"),
        (_, rest) => format!("{{leftover_string,\"{}\"}}", rest.escape_ascii()),
    };
    ProtocolError::new(Code::PreconditionFailed, format_args!("invalid expiration '{shown}': {why}"))
}

/// Returns the reader for an origin of [`SOLE_ORIGINS`]; for any other origin it finds no headers.
pub fn header_reader(origin: OriginId) -> &'static dyn HeaderReader {
    SOLE_ORIGINS.form(origin).map_or(&NoHeaders, reader_of_form)
}

/// Returns the reader for a form of header block; for an unknown form it finds no headers.
pub fn reader_of_form(form: u8) -> &'static dyn HeaderReader {
    if form == BASIC { &BasicHeaders } else { &NoHeaders }
}

/// Reads the headers of an AMQP message, with their types.
#[derive(Debug)]
struct BasicHeaders;

impl HeaderReader for BasicHeaders {
    fn visit_headers<'t>(&self, text: &'t [u8], visit: &mut dyn FnMut(Cow<'t, [u8]>, Value<'t>)) {
        // The block was checked when the message arrived.
        let Ok(BasicProperties { headers: Some(headers), .. }) = BasicProperties::read(text) else { return };
        // SECURITY AUTH-08: only the broker may report deaths.
        let own = headers.iter().filter(|(name, _)| !is_of_deaths(name));
        own.for_each(|(name, field)| visit(Cow::Borrowed(name), value(field)));
    }

    fn header<'t>(&self, text: &'t [u8], name: &[u8]) -> Option<Value<'t>> {
        let headers = BasicProperties::read_headers(text)?;
        if is_of_deaths(name) {
            return None;
        }
        headers.iter().find(|(known, _)| *known == name).map(|(_, field)| value(field))
    }
}

/// Whether the broker writes this header into dead letters.
pub(crate) fn is_of_deaths(name: &[u8]) -> bool {
    name == b"x-death" || name.starts_with(b"x-first-death-") || name.starts_with(b"x-last-death-")
}

/// Converts a field to the core's type. The codec bounds its nesting.
pub fn value(field: FieldValue<'_>) -> Value<'_> {
    match field {
        FieldValue::Bool(value) => Value::Bool(value),
        FieldValue::I8(number) => Value::Int(number.into()),
        FieldValue::I16(number) => Value::Int(number.into()),
        FieldValue::I32(number) => Value::Int(number.into()),
        FieldValue::I64(number) => Value::Int(number),
        FieldValue::U8(number) => Value::Uint(number.into()),
        FieldValue::U16(number) => Value::Uint(number.into()),
        FieldValue::U32(number) => Value::Uint(number.into()),
        FieldValue::F32(number) => Value::Float(number.into()),
        FieldValue::F64(number) => Value::Float(number),
        FieldValue::Decimal { scale, number } => {
            Value::Float(f64::from(number) / 10_f64.powi(i32::from(scale)))
        }
        FieldValue::Timestamp(seconds) => {
            Value::Timestamp(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000))
        }
        FieldValue::Text(bytes) => Value::text(bytes),
        FieldValue::Bytes(bytes) => Value::Binary(Cow::Borrowed(bytes)),
        FieldValue::Array(array) => Value::List(array.iter().map(value).collect()),
        FieldValue::Table(table) => {
            Value::Map(table.iter().map(|(name, field)| (Cow::Borrowed(name), value(field))).collect())
        }
        FieldValue::Void => Value::Null,
    }
}
