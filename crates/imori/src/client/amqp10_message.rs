//! AMQP 1.0 messages for the command line: addresses, and properties shown and given as headers.

use imori_amqp10::codec::composites::{Header as HeaderSection, Properties};
use imori_amqp10::codec::error::DecodeError;
use imori_amqp10::codec::field::Field as _;
use imori_amqp10::codec::map::MapBuf;
use imori_amqp10::codec::push::{push_map_of, push_value};
use imori_amqp10::codec::restricted::MessageId;
use imori_amqp10::codec::sections::{Section, SectionKind, Sections};
use imori_amqp10::codec::value::{Map, Symbol, Timestamp, Value};

use super::address::Address;
use super::conversation::{Header, Received, number};
use super::error::ClientError;

/// The header that holds the delivery id, which acknowledging needs.
pub const DELIVERY_ID: &str = "delivery-id";

/// A node to send to or receive from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    /// The address of the node.
    pub address: String,
    /// `queue` or `topic`, if the address alone does not tell.
    pub capability: Option<&'static str>,
}

impl Node {
    /// Reads an [`Address`].
    pub fn parse(text: &str) -> Result<Node, ClientError> {
        Ok(match Address::parse(text)? {
            Address::Queue(name) => Node { address: String::from(name), capability: Some("queue") },
            Address::Topic(key) => Node { address: String::from(key), capability: Some("topic") },
            Address::Exchange(name, key) => {
                Node { address: format!("/exchanges/{}/{}", escaped(name), escaped(key)), capability: None }
            }
        })
    }
}

/// Percent-encodes all but letters, digits and `-._~`.
fn escaped(part: &str) -> String {
    let mut escaped = String::new();
    for byte in part.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                escaped.push(char::from(byte));
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

/// Encodes a message. Headers with the name of a property become that property; the others become
/// application properties.
pub fn message(
    headers: &[Header],
    to: Option<&str>,
    correlation: Option<&str>,
    reply_to: Option<&str>,
    body: &[u8],
) -> Result<Vec<u8>, ClientError> {
    let mut section = HeaderSection::default();
    let mut annotations = MapBuf::new();
    let mut application = MapBuf::new();
    let mut properties = Properties {
        to,
        reply_to,
        correlation_id: correlation.map(MessageId::String),
        ..Properties::default()
    };
    for Header { name, value } in headers {
        let text = Some(value.as_str());
        match name.as_str() {
            "persistent" => section.durable = value.eq_ignore_ascii_case("true"),
            "priority" => section.priority = number(name, value)?,
            "expiration" | "ttl" => section.ttl = Some(number(name, value)?),
            "content-type" => properties.content_type = text.map(Symbol),
            "content-encoding" => properties.content_encoding = text.map(Symbol),
            "correlation-id" => properties.correlation_id = text.map(MessageId::String),
            "message-id" => properties.message_id = text.map(MessageId::String),
            "reply-to" => properties.reply_to = text,
            "subject" | "type" => properties.subject = text,
            "user-id" => properties.user_id = Some(value.as_bytes()),
            "group-id" => properties.group_id = text,
            "group-sequence" => properties.group_sequence = Some(number(name, value)?),
            "absolute-expiry-time" => properties.absolute_expiry_time = Some(Timestamp(number(name, value)?)),
            "creation-time" => properties.creation_time = Some(Timestamp(number(name, value)?)),
            "x-delay" | "x-opt-delivery-delay" => {
                annotations
                    .push(Value::Symbol(Symbol("x-opt-delivery-delay")), Value::Ulong(number(name, value)?));
            }
            _ => application.push(Value::String(name), Value::String(value)),
        }
    }
    let mut out = Vec::new();
    section.push(&mut out);
    for (kind, map) in
        [(SectionKind::MessageAnnotations, &annotations), (SectionKind::ApplicationProperties, &application)]
    {
        if kind == SectionKind::ApplicationProperties {
            properties.push(&mut out);
        }
        if !map.is_empty() {
            kind.push(&mut out);
            push_map_of(&mut out, map.map());
        }
    }
    SectionKind::Data.push(&mut out);
    push_value(&mut out, Value::Binary(body));
    Ok(out)
}

/// Decodes a delivery, with its properties as headers.
pub fn received(delivery_id: u32, payload: &[u8]) -> Result<Received, DecodeError> {
    let mut headers: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut add = |name: &str, value: String| headers.push((name.as_bytes().to_vec(), value.into_bytes()));
    add(DELIVERY_ID, delivery_id.to_string());
    let (mut reply_to, mut body) = (None, Vec::new());
    let mut sections = Sections::new(payload);
    while let Some(section) = sections.next_section()? {
        match section {
            Section::Header(header) => {
                add("redelivered", (header.delivery_count > 0).to_string());
                add("persistent", header.durable.to_string());
                add("priority", header.priority.to_string());
                header.ttl.into_iter().for_each(|ttl| add("ttl", ttl.to_string()));
            }
            Section::MessageAnnotations(map) | Section::ApplicationProperties(map) => add_map(map, &mut add),
            Section::Properties(properties) => {
                reply_to = properties.reply_to.map(|address| address.as_bytes().to_vec());
                add_properties(&properties, &mut add);
            }
            Section::Data(bytes) => body.extend_from_slice(bytes),
            Section::AmqpValue(value) => body.extend_from_slice(text(value).as_bytes()),
            Section::AmqpSequence(list) => body.extend_from_slice(text(Value::List(list)).as_bytes()),
            Section::DeliveryAnnotations(_) | Section::Footer(_) => {}
        }
    }
    Ok(Received { headers, reply_to, body })
}

fn add_map(map: Map<'_>, add: &mut impl FnMut(&str, String)) {
    map.iter().for_each(|(name, value)| add(&text(name), text(value)));
}

fn add_properties(properties: &Properties<'_>, add: &mut impl FnMut(&str, String)) {
    let id = |id: MessageId<'_>| match id {
        MessageId::Ulong(number) => number.to_string(),
        MessageId::Uuid(bytes) => text(Value::Uuid(bytes)),
        MessageId::Binary(bytes) => text(Value::Binary(bytes)),
        MessageId::String(text) => String::from(text),
    };
    let symbol = |symbol: Symbol<'_>| String::from(symbol.0);
    for (name, value) in [
        ("message-id", properties.message_id.map(id)),
        ("user-id", properties.user_id.map(|user| text(Value::Binary(user)))),
        ("to", properties.to.map(String::from)),
        ("subject", properties.subject.map(String::from)),
        ("reply-to", properties.reply_to.map(String::from)),
        ("correlation-id", properties.correlation_id.map(id)),
        ("content-type", properties.content_type.map(symbol)),
        ("content-encoding", properties.content_encoding.map(symbol)),
        ("absolute-expiry-time", properties.absolute_expiry_time.map(|time| time.0.to_string())),
        ("creation-time", properties.creation_time.map(|time| time.0.to_string())),
        ("group-id", properties.group_id.map(String::from)),
        ("group-sequence", properties.group_sequence.map(|number| number.to_string())),
        ("reply-to-group-id", properties.reply_to_group_id.map(String::from)),
    ] {
        value.into_iter().for_each(|value| add(name, value));
    }
}

/// Formats a value for people.
fn text(value: Value<'_>) -> String {
    let joined = |values: Vec<String>| values.join(", ");
    match value {
        Value::Null => String::new(),
        Value::Bool(value) => value.to_string(),
        Value::Ubyte(number) => number.to_string(),
        Value::Ushort(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Ulong(number) => number.to_string(),
        Value::Byte(number) => number.to_string(),
        Value::Short(number) => number.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Long(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Char(char) => char.to_string(),
        Value::Timestamp(time) => time.0.to_string(),
        Value::Uuid(bytes) => hexadecimal(&bytes),
        Value::Decimal32(bytes) => hexadecimal(&bytes),
        Value::Decimal64(bytes) => hexadecimal(&bytes),
        Value::Decimal128(bytes) => hexadecimal(&bytes),
        Value::Binary(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::String(text) => String::from(text),
        Value::Symbol(symbol) => String::from(symbol.0),
        Value::List(list) => format!("[{}]", joined(list.iter().map(text).collect())),
        Value::Array(array) => format!("[{}]", joined(array.iter().map(text).collect())),
        Value::Map(map) => {
            let pairs = map.iter().map(|(name, value)| format!("{}: {}", text(name), text(value)));
            format!("{{{}}}", joined(pairs.collect()))
        }
        Value::Described(described) => text(described.value()),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
