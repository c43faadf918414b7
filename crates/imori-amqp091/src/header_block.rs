//! The header block of a message that an AMQP client sent: flags and values of its properties, as they came.

use std::borrow::Cow;
use std::str;

use imori_core::message::{HeaderReader, NoHeaders, OriginId, Origins, Properties, Property, Span, Value};

use crate::codec::properties::{BasicProperties, TextProperty};
use crate::codec::table::{FieldValue, Table};
use crate::limits::{HEADERS_MAX, PROPERTIES_BYTES_MAX};
use crate::protocol_error::{Code, ProtocolError};

/// How many forms a header block can have: the origins that AMQP 0-9-1 needs.
pub const FORMS: u8 = 1;

/// AMQP's origins in a broker that speaks nothing else.
pub const SOLE_ORIGINS: Origins = Origins::new(1, FORMS);

/// The only form of a header block.
pub(crate) const BASIC: u8 = 0;

/// The `delivery-mode` of a message that outlives the broker.
pub(crate) const PERSISTENT: u8 = 2;

/// The text properties that all protocols share, in AMQP's order.
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

/// Headers of a publish that ask something of the broker, as they came.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Requests<'a> {
    /// `CC`: further routing keys.
    pub(crate) cc: Option<FieldValue<'a>>,
    /// `BCC`: further routing keys of which no receiver hears.
    pub(crate) bcc: Option<FieldValue<'a>>,
    /// `x-delay`.
    pub(crate) delay: Option<FieldValue<'a>>,
}

/// The headers that say to which group a message belongs and which of its messages it is, as in JMS.
const GROUP_ID: &[u8] = b"JMSXGroupID";
const GROUP_SEQUENCE: &[u8] = b"JMSXGroupSeq";

/// The group of a message, as its headers came.
#[derive(Debug, Default, Clone, Copy)]
struct Group<'a> {
    id: Option<FieldValue<'a>>,
    sequence: Option<FieldValue<'a>>,
}

/// Reads the properties that the broker itself needs, and what headers ask of it; `user` is the client's.
pub(crate) fn read<'a>(
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

/// SECURITY AUTH-08: nobody speaks in another's name.
#[cold]
fn other_user(claimed: &[u8], user: &[u8]) -> ProtocolError {
    let text = format_args!(
        "user_id property set to '{}' but authenticated user was '{}'",
        claimed.escape_ascii(),
        user.escape_ascii()
    );
    ProtocolError::new(Code::PreconditionFailed, text)
}

/// Looks through the headers, of which there may not be too many, for requests and the group. Of a name that comes twice
/// the first counts.
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

/// Reads an expiration: whole milliseconds as text.
fn milliseconds(text: &[u8]) -> Result<u32, ProtocolError> {
    let digits = str::from_utf8(text.strip_prefix(b"+").unwrap_or(text)).ok();
    let digits = digits.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| bad_expiration(text))
}

/// RabbitMQ's words for an expiration that is none.
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

/// The reader of header blocks of [`SOLE_ORIGINS`]. In a block of another origin it finds nothing.
pub fn header_reader(origin: OriginId) -> &'static dyn HeaderReader {
    SOLE_ORIGINS.form(origin).map_or(&NoHeaders, reader_of_form)
}

/// The reader of header blocks of this form. In a block of a form that AMQP does not have it finds nothing.
pub fn reader_of_form(form: u8) -> &'static dyn HeaderReader {
    if form == BASIC { &BasicHeaders } else { &NoHeaders }
}

/// Reads the headers that an AMQP client sent, each with its type.
#[derive(Debug)]
struct BasicHeaders;

impl HeaderReader for BasicHeaders {
    fn visit_headers<'t>(&self, text: &'t [u8], visit: &mut dyn FnMut(Cow<'t, [u8]>, Value<'t>)) {
        // It was read when it came.
        let Ok(BasicProperties { headers: Some(headers), .. }) = BasicProperties::read(text) else { return };
        // SECURITY AUTH-08: the history of a dead letter is the broker's to tell.
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

/// Tells whether the broker writes this header of a dead letter itself.
pub(crate) fn is_of_deaths(name: &[u8]) -> bool {
    name == b"x-death" || name.starts_with(b"x-first-death-") || name.starts_with(b"x-last-death-")
}

/// The value of a field as all protocols see it. Tables in each other are as deep as the codec lets them be.
pub(crate) fn value(field: FieldValue<'_>) -> Value<'_> {
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

#[cfg(test)]
mod tests;
