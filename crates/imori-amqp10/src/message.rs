//! Messages: their sections as they come, and as they are written for a receiver.
//!
//! The bare message is kept byte for byte. Its header block is all in front of the content of its body, so that both
//! behind each other are what the sender wrote.

use std::borrow::Cow;

use imori_core::delivery::Delivery;
use imori_core::message::{
    HeaderReader, HeaderReaders, MessageView, NoHeaders, OriginId, Origins, Properties, Property, Span,
    Value as CoreValue,
};

use crate::codec::composite::Composite;
use crate::codec::composites::{Header, Properties as PropertiesSection};
use crate::codec::condition;
use crate::codec::constructor::MAP_8;
use crate::codec::field::Field;
use crate::codec::push::{Compound, push_descriptor, push_value};
use crate::codec::restricted::MessageId;
use crate::codec::value::{Descriptor, Map, Symbol, Timestamp, Value};
use crate::limits::SECTIONS_BYTES_MAX;
use crate::protocol_error::ProtocolError;

/// How many forms a message can have: the origins that AMQP 1.0 needs.
pub const FORMS: u8 = 2;

/// AMQP 1.0's origins in a broker that speaks nothing else.
pub const SOLE_ORIGINS: Origins = Origins::new(1, FORMS);

/// The body is the content of the only body section.
const CONTENT: u8 = 0;

/// The body is all encoded sections from the first body section on.
const ENCODED: u8 = 1;

const HEADER: u64 = 0x70;
const DELIVERY_ANNOTATIONS: u64 = 0x71;
const MESSAGE_ANNOTATIONS: u64 = 0x72;
const PROPERTIES: u64 = 0x73;
const APPLICATION_PROPERTIES: u64 = 0x74;
const DATA: u64 = 0x75;
const SEQUENCE: u64 = 0x76;
const VALUE: u64 = 0x77;
const FOOTER: u64 = 0x78;

/// A message as it came.
#[derive(Debug)]
pub(crate) struct Incoming<'a> {
    /// The properties that the broker itself reads in `text`.
    pub(crate) properties: Properties,
    /// The header block.
    pub(crate) text: &'a [u8],
    /// The body.
    pub(crate) body: &'a [u8],
    /// The address that the message itself names.
    pub(crate) to: Option<&'a str>,
    /// The subject of the message.
    pub(crate) subject: Option<&'a str>,
    /// The kind of address, as JMS clients tell it: a topic, if it is odd.
    pub(crate) jms_destination: Option<i8>,
    /// Milliseconds since the UNIX epoch after which it is of no more use.
    pub(crate) expires_at_ms: Option<i64>,
    /// Milliseconds for which nobody is given it.
    pub(crate) delay_ms: Option<u64>,
    /// Milliseconds since the UNIX epoch before which nobody is given it.
    pub(crate) deliver_at_ms: Option<i64>,
}

/// A section: its descriptor, its value, and the bytes of both.
type Section<'a> = (u64, Value<'a>, &'a [u8]);

/// Sections of a message in order.
struct Sections<'a> {
    rest: &'a [u8],
}

impl<'a> Sections<'a> {
    fn next(&mut self) -> Result<Option<Section<'a>>, ProtocolError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let not_a_section =
            || ProtocolError::new(condition::DECODE_ERROR, "the message has something that is no section");
        let (value, behind) = Value::decode(self.rest).map_err(|error| {
            ProtocolError::new(condition::DECODE_ERROR, format_args!("the message is none: {error}"))
        })?;
        let Value::Described(described) = value else { return Err(not_a_section()) };
        let code = match described.descriptor {
            Descriptor::Code(code) => code,
            Descriptor::Name(Symbol(name)) => {
                NAMES.iter().find(|(_, known)| *known == name).map_or(0, |(code, _)| *code)
            }
        };
        if !(HEADER..=FOOTER).contains(&code) {
            return Err(not_a_section());
        }
        let bytes = self.rest.get(..self.rest.len() - behind.len()).unwrap_or_default();
        self.rest = behind;
        Ok(Some((code, described.value(), bytes)))
    }
}

const NAMES: [(u64, &str); 9] = [
    (HEADER, "amqp:header:list"),
    (DELIVERY_ANNOTATIONS, "amqp:delivery-annotations:map"),
    (MESSAGE_ANNOTATIONS, "amqp:message-annotations:map"),
    (PROPERTIES, "amqp:properties:list"),
    (APPLICATION_PROPERTIES, "amqp:application-properties:map"),
    (DATA, "amqp:data:binary"),
    (SEQUENCE, "amqp:amqp-sequence:list"),
    (VALUE, "amqp:amqp-value:*"),
    (FOOTER, "amqp:footer:map"),
];

/// Reads a message; `user` is the client's.
///
/// # Errors
/// `amqp:decode-error` where it is none, `amqp:not-allowed` where it says that another user sent it, and
/// `amqp:resource-limit-exceeded` where the sections in front of its body are too long.
pub(crate) fn read<'a>(
    payload: &'a [u8],
    origins: Origins,
    user: &[u8],
) -> Result<Incoming<'a>, ProtocolError> {
    let mut incoming = Incoming {
        properties: Properties::new(origins.origin(ENCODED)),
        text: b"",
        body: b"",
        to: None,
        subject: None,
        jms_destination: None,
        expires_at_ms: None,
        delay_ms: None,
        deliver_at_ms: None,
    };
    let mut sections = Sections { rest: payload };
    // The section of header and those of annotations for one hop alone are the broker's to write.
    let mut begin = 0;
    let (mut last, mut body) = (0, None);
    loop {
        let at = payload.len() - sections.rest.len();
        let Some((code, value, bytes)) = sections.next()? else { break };
        let is_repeated = code == last && !matches!(code, DATA | SEQUENCE);
        let is_other_body = body.is_some() && (DATA..=VALUE).contains(&code) && code != last;
        if code < last || is_repeated || is_other_body {
            let text = "the sections of the message are not in their order, or one comes twice";
            return Err(ProtocolError::new(condition::DECODE_ERROR, text));
        }
        last = code;
        match code {
            HEADER => {
                incoming.read_header(bytes)?;
                begin = at + bytes.len();
            }
            DELIVERY_ANNOTATIONS => begin = at + bytes.len(),
            MESSAGE_ANNOTATIONS => incoming.read_annotations(value),
            PROPERTIES => incoming.read_properties(bytes, begin, payload, user)?,
            APPLICATION_PROPERTIES => {}
            _ => {
                body.get_or_insert((at, code, value, at + bytes.len()));
            }
        }
    }
    let (at, _, content, end) = body.unwrap_or((payload.len(), FOOTER, Value::Null, payload.len()));
    let content = match content {
        Value::Binary(content) => Some(content.len()),
        Value::String(content) => Some(content.len()),
        _ => None,
    };
    // The content stands at the end of the only body section.
    let at = match content.filter(|_| end == payload.len()) {
        Some(len) => {
            incoming.properties.origin = origins.origin(CONTENT);
            end - len
        }
        None => at,
    };
    (incoming.text, incoming.body) = payload.get(begin..).unwrap_or_default().split_at(at - begin);
    if incoming.text.len() > SECTIONS_BYTES_MAX {
        let text = format_args!(
            "the sections in front of the body have {} bytes; send at most {SECTIONS_BYTES_MAX}",
            incoming.text.len()
        );
        return Err(ProtocolError::new(condition::RESOURCE_LIMIT_EXCEEDED, text));
    }
    Ok(incoming)
}

impl<'a> Incoming<'a> {
    fn read_header(&mut self, bytes: &'a [u8]) -> Result<(), ProtocolError> {
        let header: Header = section(bytes)?;
        self.properties.is_persistent = header.durable;
        self.properties.priority = Some(header.priority);
        self.properties.expiration_ms = header.ttl;
        Ok(())
    }

    fn read_annotations(&mut self, value: Value<'a>) {
        let Value::Map(annotations) = value else { return };
        for (key, value) in annotations.iter() {
            let Value::Symbol(Symbol(key)) = key else { continue };
            match (key, value) {
                ("x-opt-jms-dest", Value::Byte(kind)) => self.jms_destination = Some(kind),
                ("x-opt-delivery-delay", value) => {
                    self.delay_ms = number(value).and_then(|ms| u64::try_from(ms).ok());
                }
                ("x-opt-delivery-time", value) => self.deliver_at_ms = number(value),
                _ => {}
            }
        }
    }

    fn read_properties(
        &mut self,
        bytes: &'a [u8],
        begin: usize,
        payload: &'a [u8],
        user: &[u8],
    ) -> Result<(), ProtocolError> {
        let section: PropertiesSection<'a> = section(bytes)?;
        let place = |text: &[u8]| {
            let start = (text.as_ptr() as usize).checked_sub(payload.as_ptr() as usize)?;
            Span::new(start.checked_sub(begin)?, text.len())
        };
        let id = |id: Option<MessageId<'a>>| match id {
            Some(MessageId::String(text)) => Some(text.as_bytes()),
            Some(MessageId::Binary(bytes)) => Some(bytes),
            _ => None,
        };
        for (property, text) in [
            (Property::MessageId, id(section.message_id)),
            (Property::CorrelationId, id(section.correlation_id)),
            (Property::ContentType, section.content_type.map(|symbol| symbol.0.as_bytes())),
            (Property::ContentEncoding, section.content_encoding.map(|symbol| symbol.0.as_bytes())),
            (Property::ReplyTo, section.reply_to.map(str::as_bytes)),
            (Property::UserId, section.user_id),
        ] {
            if let Some(span) = text.and_then(place) {
                self.properties.set(property, span);
            }
        }
        // SECURITY AUTH-08: nobody speaks in another's name.
        if let Some(claimed) = section.user_id.filter(|claimed| !claimed.is_empty() && *claimed != user) {
            let text = format_args!(
                "the message says that user `{}` sent it, and it was user `{}`; leave `user-id` out",
                claimed.escape_ascii(),
                user.escape_ascii()
            );
            return Err(ProtocolError::new(condition::UNAUTHORIZED_ACCESS, text));
        }
        self.to = section.to;
        self.subject = section.subject;
        self.expires_at_ms = section.absolute_expiry_time.map(|time| time.0);
        self.properties.timestamp = section.creation_time.and_then(|time| u64::try_from(time.0 / 1000).ok());
        Ok(())
    }
}

/// Reads a section that is a described list.
fn section<'a, S: Composite<'a> + Field<'a>>(bytes: &'a [u8]) -> Result<S, ProtocolError> {
    let mut input = crate::codec::input::Input::new(bytes);
    let read = input.octet().map_err(Into::into).and_then(|octet| S::read(octet, &mut input));
    read.map_err(|error| ProtocolError::new(condition::DECODE_ERROR, error))
}

fn number(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Ubyte(number) => Some(number.into()),
        Value::Ushort(number) => Some(number.into()),
        Value::Uint(number) => Some(number.into()),
        Value::Ulong(number) => i64::try_from(number).ok(),
        Value::Byte(number) => Some(number.into()),
        Value::Short(number) => Some(number.into()),
        Value::Int(number) => Some(number.into()),
        Value::Long(number) => Some(number),
        Value::Timestamp(Timestamp(number)) => Some(number),
        _ => None,
    }
}

/// Appends a message as a receiver gets it: the header section of the broker, and the bare message.
pub(crate) fn push(out: &mut Vec<u8>, delivery: &Delivery<'_>, origins: Origins, readers: HeaderReaders) {
    let message = &delivery.message;
    let properties = message.properties;
    let header = Header {
        durable: properties.is_persistent,
        priority: properties.priority.unwrap_or(Header::default().priority),
        ttl: properties.expiration_ms,
        first_acquirer: !delivery.is_redelivered,
        delivery_count: delivery.failures,
    };
    header.encode(out);
    if origins.form(properties.origin).is_some() {
        out.extend_from_slice(message.text);
        out.extend_from_slice(message.body);
        return;
    }
    push_foreign(out, delivery, readers(properties.origin));
}

/// Appends the sections of another protocol's message.
#[cold]
fn push_foreign(out: &mut Vec<u8>, delivery: &Delivery<'_>, reader: &dyn HeaderReader) {
    let message = &delivery.message;
    let text = |property| message.property(property).and_then(|bytes| std::str::from_utf8(bytes).ok());
    let symbol = |property| text(property).filter(|text| text.is_ascii()).map(Symbol);
    let subject = std::str::from_utf8(delivery.address.subject()).ok();
    let reply_to = reader.reply_address(message).map(|(exchange, subject)| match &*exchange {
        b"" => String::from_utf8_lossy(&subject).into_owned(),
        _ => format!("/exchanges/{}/{}", encoded(&exchange), encoded(&subject)),
    });
    let millis = |seconds: u64| Timestamp(i64::try_from(seconds).unwrap_or_default().saturating_mul(1000));
    PropertiesSection {
        message_id: text(Property::MessageId).map(MessageId::String),
        user_id: message.property(Property::UserId),
        subject: text(Property::Type).or(subject),
        reply_to: reply_to.as_deref(),
        correlation_id: text(Property::CorrelationId).map(MessageId::String),
        content_type: symbol(Property::ContentType),
        content_encoding: symbol(Property::ContentEncoding),
        creation_time: message.properties.timestamp.map(millis),
        ..PropertiesSection::default()
    }
    .encode(out);
    push_descriptor(out, Descriptor::Code(APPLICATION_PROPERTIES));
    let map = Compound::begin(out, MAP_8);
    let mut count = 0;
    reader.visit_headers(message.text, &mut |name, value| {
        let Ok(name) = std::str::from_utf8(&name) else { return };
        push_value(out, Value::String(name));
        push_core(out, &value);
        count += 2;
    });
    map.end(out, count);
    push_descriptor(out, Descriptor::Code(DATA));
    push_value(out, Value::Binary(message.body));
}

/// A part of an address, in which all but letters, digits and a few others are percent-encoded.
fn encoded(part: &[u8]) -> String {
    let mut text = String::new();
    for byte in part {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(char::from(*byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// Appends a value of another protocol. Application properties have simple values alone: a list or map is its text.
fn push_core(out: &mut Vec<u8>, value: &CoreValue<'_>) {
    let text;
    push_value(
        out,
        match value {
            CoreValue::Null => Value::Null,
            CoreValue::Bool(value) => Value::Bool(*value),
            CoreValue::Int(number) => Value::Long(*number),
            CoreValue::Uint(number) => Value::Ulong(*number),
            CoreValue::Float(number) => Value::Double(*number),
            CoreValue::Timestamp(ms) => Value::Timestamp(Timestamp(*ms)),
            CoreValue::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Value::String(text),
                Err(_) => Value::Binary(bytes),
            },
            CoreValue::Binary(bytes) => Value::Binary(bytes),
            CoreValue::List(_) | CoreValue::Map(_) => {
                text = String::from_utf8_lossy(&value.to_text()).into_owned();
                Value::String(&text)
            }
        },
    );
}

/// The reader of header blocks of [`SOLE_ORIGINS`]. In a block of another origin it finds nothing.
pub fn header_reader(origin: OriginId) -> &'static dyn HeaderReader {
    SOLE_ORIGINS.form(origin).map_or(&NoHeaders, reader_of_form)
}

/// The reader of header blocks of this form. In a block of a form that AMQP 1.0 does not have it finds nothing.
pub fn reader_of_form(form: u8) -> &'static dyn HeaderReader {
    if form < FORMS { &SectionHeaders } else { &NoHeaders }
}

/// Reads the application properties of a message.
#[derive(Debug)]
struct SectionHeaders;

impl HeaderReader for SectionHeaders {
    fn visit_headers<'t>(&self, text: &'t [u8], visit: &mut dyn FnMut(Cow<'t, [u8]>, CoreValue<'t>)) {
        for (key, value) in application_properties(text).into_iter().flat_map(|map| map.iter()) {
            if let Value::String(key) = key {
                visit(Cow::Borrowed(key.as_bytes()), core(value));
            }
        }
    }

    fn reply_address<'t>(&self, message: &MessageView<'t>) -> Option<imori_core::message::AddressParts<'t>> {
        let text = std::str::from_utf8(message.property(Property::ReplyTo)?).ok()?;
        let node = crate::address::Node::parse(text, false).ok()?;
        let (exchange, subject) = node.address();
        Some((Cow::Owned(exchange.to_vec()), Cow::Owned(subject.to_vec())))
    }
}

fn application_properties(text: &[u8]) -> Option<Map<'_>> {
    let mut sections = Sections { rest: text };
    while let Ok(Some((code, value, _))) = sections.next() {
        if let (APPLICATION_PROPERTIES, Value::Map(map)) = (code, value) {
            return Some(map);
        }
    }
    None
}

/// A value as all protocols see it.
pub(crate) fn core(value: Value<'_>) -> CoreValue<'_> {
    match value {
        Value::Bool(value) => CoreValue::Bool(value),
        Value::Ubyte(number) => CoreValue::Uint(number.into()),
        Value::Ushort(number) => CoreValue::Uint(number.into()),
        Value::Uint(number) => CoreValue::Uint(number.into()),
        Value::Ulong(number) => CoreValue::Uint(number),
        Value::Byte(number) => CoreValue::Int(number.into()),
        Value::Short(number) => CoreValue::Int(number.into()),
        Value::Int(number) => CoreValue::Int(number.into()),
        Value::Long(number) => CoreValue::Int(number),
        Value::Float(number) => CoreValue::Float(number.into()),
        Value::Double(number) => CoreValue::Float(number),
        Value::Timestamp(Timestamp(ms)) => CoreValue::Timestamp(ms),
        Value::String(text) => CoreValue::text(text.as_bytes()),
        Value::Symbol(Symbol(text)) => CoreValue::text(text.as_bytes()),
        Value::Binary(bytes) => CoreValue::Binary(Cow::Borrowed(bytes)),
        _ => CoreValue::Null,
    }
}
