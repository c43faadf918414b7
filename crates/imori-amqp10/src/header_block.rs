//! Reads the header block of a message from an AMQP 1.0 client: its sections as received, from the
//! message annotations to the start of the body.
//!
//! A block of form [`CONTENT`] ends with constructor and length of the only body section; the
//! core's body is its content. A block of form [`SECTIONS`] ends before the first body section; the
//! core's body is all body sections and the footer. Block and body together are always the bytes
//! received.

use std::borrow::Cow;

use imori_core::message::{
    AddressParts, FILTER_VALUE, HeaderReader, MessageView, NoHeaders, OriginId, Origins, Property, Value,
};

use crate::address::Node;
use crate::codec::composite::Composite;
use crate::codec::composites::Properties;
use crate::codec::input::Input;
use crate::codec::sections::{Section, SectionKind, Sections};
use crate::codec::value::{List, Map, Symbol, Timestamp, Value as Value10};

/// Number of header block forms, and so of the origins that AMQP 1.0 needs.
pub const FORMS: u8 = 2;

/// AMQP 1.0's origins in a broker without other protocols.
pub const SOLE_ORIGINS: Origins = Origins::new(1, FORMS);

/// The form of a message whose body is a single section of data, a string or a binary value.
pub const CONTENT: u8 = 0;

/// The form of every other message.
pub const SECTIONS: u8 = 1;

/// Prefix of a block with the texts of identifiers that were sent as numbers. It is the descriptor
/// of no section.
const TEXTS: &[u8] = &[0x00, 0x53, 0x01, 0xa0];

/// Replaces [`TEXTS`] if the client sent `first-acquirer` false; the texts may be empty then.
const ACQUIRED: &[u8] = &[0x00, 0x53, 0x02, 0xa0];

/// Bytes before the texts: the prefix and the length of the texts.
pub(crate) const TEXTS_HEAD_BYTES: usize = TEXTS.len() + 1;

/// The names of group properties in other protocols, as in JMS.
pub(crate) const GROUP_ID: &str = "JMSXGroupID";
pub(crate) const GROUP_SEQUENCE: &str = "JMSXGroupSeq";
pub(crate) const REPLY_TO_GROUP_ID: &str = "JMS_AMQP_REPLY_TO_GROUP_ID";

/// The application property that holds the sending application for other protocols.
pub(crate) const APP_ID: &str = "app-id";

/// Prepends the texts to the sections, and marks whether another link may have acquired the message
/// before.
pub(crate) fn with_texts(texts: &[u8], was_acquired: bool, sections: &[u8]) -> Vec<u8> {
    let len = u8::try_from(texts.len()).expect("two identifiers that were numbers are short");
    [if was_acquired { ACQUIRED } else { TEXTS }, &[len], texts, sections].concat()
}

/// Whether another link may have acquired the message before it arrived (AMQP 1.0, 3.2.1).
#[inline]
pub(crate) fn was_acquired(block: &[u8]) -> bool {
    block.starts_with(ACQUIRED)
}

/// Returns the sections of a block, without a prefix of texts.
#[inline]
pub(crate) fn sections(block: &[u8]) -> &[u8] {
    match block.strip_prefix(TEXTS).or_else(|| block.strip_prefix(ACQUIRED)) {
        Some([len, rest @ ..]) => rest.get(usize::from(*len)..).unwrap_or_default(),
        _ => block,
    }
}

/// The sections of a block that precede the body.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Parts<'a> {
    pub(crate) annotations: Map<'a>,
    pub(crate) properties: Properties<'a>,
    pub(crate) application: Map<'a>,
    /// Everything after the message annotations.
    pub(crate) bare: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Reads a block that was checked when the message arrived.
    pub(crate) fn of(block: &'a [u8]) -> Parts<'a> {
        let mut sections = Sections::new(sections(block));
        let mut parts = Parts { bare: sections.rest(), ..Parts::default() };
        // The block may end with the constructor of the body, where reading stops with an error.
        while let Ok(Some(section)) = sections.next_section() {
            match section {
                Section::MessageAnnotations(map) => {
                    parts.annotations = map;
                    parts.bare = sections.rest();
                }
                Section::Properties(properties) => parts.properties = properties,
                Section::ApplicationProperties(map) => parts.application = map,
                _ => break,
            }
        }
        parts
    }
}

/// Returns the reader for an origin of [`SOLE_ORIGINS`]; for any other origin it finds no headers.
pub fn header_reader(origin: OriginId) -> &'static dyn HeaderReader {
    SOLE_ORIGINS.form(origin).map_or(&NoHeaders, reader_of_form)
}

/// Returns the reader for a form of header block; for an unknown form it finds no headers.
pub fn reader_of_form(form: u8) -> &'static dyn HeaderReader {
    match form {
        CONTENT => &Headers { has_sections: false },
        SECTIONS => &Headers { has_sections: true },
        _ => &NoHeaders,
    }
}

/// Reads blocks of both forms, which differ in the meaning of the body.
#[derive(Debug)]
struct Headers {
    /// The form is [`SECTIONS`]: the body consists of sections.
    has_sections: bool,
}

impl HeaderReader for Headers {
    fn visit_headers<'t>(&self, text: &'t [u8], visit: &mut dyn FnMut(Cow<'t, [u8]>, Value<'t>)) {
        visit_properties(&Parts::of(text), visit);
    }

    fn header<'t>(&self, text: &'t [u8], name: &[u8]) -> Option<Value<'t>> {
        header(text, name)
    }

    /// RabbitMQ's clients send the value as an annotation.
    fn filter_value<'t>(&self, text: &'t [u8]) -> Option<Value<'t>> {
        let value = Sections::new(sections(text)).find_checked(SectionKind::MessageAnnotations);
        let annotated = value.and_then(|value| match Value10::decode_checked(value) {
            Some(Value10::Map(map)) => map.find("x-stream-filter-value"),
            _ => None,
        });
        annotated.map(core_value).or_else(|| header(text, FILTER_VALUE))
    }

    fn timestamp_ms(&self, message: &MessageView<'_>) -> Option<i64> {
        properties(message.text).and_then(|properties| properties.creation_time).map(|time| time.0)
    }

    fn reply_address<'t>(&self, message: &MessageView<'t>) -> Option<AddressParts<'t>> {
        reply_address(message)
    }

    fn body<'t>(&self, message: &MessageView<'t>) -> Cow<'t, [u8]> {
        match self.has_sections {
            true => Cow::Owned(joined(message.body)),
            false => Cow::Borrowed(message.body),
        }
    }
}

/// Returns the properties of a block that was checked when the message arrived.
fn properties(block: &[u8]) -> Option<Properties<'_>> {
    let value = Sections::new(sections(block)).find_checked(SectionKind::Properties)?;
    Properties::read_list(&mut Input::new(value)).ok()
}

/// Returns one header, without parsing the others if possible.
fn header<'t>(block: &'t [u8], name: &[u8]) -> Option<Value<'t>> {
    let name = std::str::from_utf8(name).ok().filter(|name| *name != APP_ID && !is_of_deaths(name))?;
    let value = Sections::new(sections(block)).find_checked(SectionKind::ApplicationProperties);
    let found = value.and_then(|value| match Value10::decode_checked(value) {
        Some(Value10::Map(map)) => map.find(name),
        _ => None,
    });
    match (found, name) {
        (Some(found), _) => Some(core_value(found)),
        (None, GROUP_ID | GROUP_SEQUENCE | REPLY_TO_GROUP_ID) => {
            let Properties { group_id, group_sequence, reply_to_group_id, .. } = properties(block)?;
            match name {
                GROUP_ID => group_id.map(|text| Value::text(text.as_bytes())),
                GROUP_SEQUENCE => group_sequence.map(sequence_value),
                _ => reply_to_group_id.map(|text| Value::text(text.as_bytes())),
            }
        }
        (None, _) => None,
    }
}

/// Visits the application properties, and the group properties, which other protocols have only as
/// headers. Annotations are for brokers and do not cross to other protocols.
fn visit_properties<'t>(parts: &Parts<'t>, visit: &mut dyn FnMut(Cow<'t, [u8]>, Value<'t>)) {
    for (key, field) in parts.application.iter() {
        // SECURITY AUTH-08: only the broker may report deaths.
        if let Value10::String(name) = key
            && name != APP_ID
            && !is_of_deaths(name)
        {
            visit(Cow::Borrowed(name.as_bytes()), core_value(field));
        }
    }
    let Properties { group_id, group_sequence, reply_to_group_id, .. } = parts.properties;
    let mut visit_group = |name: &'static str, value| visit(Cow::Borrowed(name.as_bytes()), value);
    if let Some(group) = group_id {
        visit_group(GROUP_ID, Value::text(group.as_bytes()));
    }
    if let Some(number) = group_sequence {
        visit_group(GROUP_SEQUENCE, sequence_value(number));
    }
    if let Some(group) = reply_to_group_id {
        visit_group(REPLY_TO_GROUP_ID, Value::text(group.as_bytes()));
    }
}

/// Converts `group-sequence` to the `int` that JMS uses.
fn sequence_value(number: u32) -> Value<'static> {
    Value::Int(number.cast_signed().into())
}

/// Whether `number` marks the last message of a group: -1 in JMS.
pub(crate) fn ends_group(number: u32) -> bool {
    number.cast_signed() == -1
}

/// Whether the broker writes a header or annotation of this name into dead letters.
pub(crate) fn is_of_deaths(name: &str) -> bool {
    name == "x-death"
        || name == "x-opt-deaths"
        || name.starts_with("x-first-death-")
        || name.starts_with("x-last-death-")
}

fn reply_address<'t>(message: &MessageView<'t>) -> Option<AddressParts<'t>> {
    let address = std::str::from_utf8(message.property(Property::ReplyTo)?).ok()?;
    // AMQP JMS Mapping, 3.2.1.8: 1 is a topic and 3 a temporary topic.
    let kind = Parts::of(message.text).annotations.find("x-opt-jms-reply-to");
    let is_topic = matches!(kind, Some(Value10::Byte(1 | 3)));
    let node = Node::parse(address, is_topic).ok()?;
    let (exchange, subject) = node.address();
    Some((Cow::Owned(exchange.to_vec()), Cow::Owned(subject.to_vec())))
}

/// Returns the body for other protocols: joined data sections, plain text or bytes, or else JSON.
fn joined(body: &[u8]) -> Vec<u8> {
    let (mut sections, mut out) = (Sections::new(body), Vec::new());
    let (mut sequences, mut json) = (Vec::new(), String::new());
    while let Ok(Some(section)) = sections.next_section() {
        match section {
            Section::Data(bytes) => out.extend_from_slice(bytes),
            Section::AmqpSequence(list) => sequences.push(list),
            Section::AmqpValue(
                value @ (Value10::List(_) | Value10::Map(_) | Value10::Array(_) | Value10::Described(_)),
            ) => push_json(&mut json, value),
            Section::AmqpValue(flat) => out.extend_from_slice(&core_value(flat).to_text()),
            _ => break,
        }
    }
    if !sequences.is_empty() {
        // AMQP 1.0, 3.2.7: several sequences are the parts of one list.
        json.push('[');
        push_json_values(&mut json, sequences.iter().flat_map(List::iter));
        json.push(']');
    }
    out.extend_from_slice(json.as_bytes());
    out
}

/// Appends a value as JSON on one line, like [`Value::push_json`]. The codec bounds the nesting of
/// `value`.
fn push_json(out: &mut String, value: Value10<'_>) {
    match value {
        Value10::List(list) => {
            out.push('[');
            push_json_values(out, list.iter());
            out.push(']');
        }
        Value10::Array(array) => {
            out.push('[');
            push_json_values(out, array.iter());
            out.push(']');
        }
        Value10::Map(map) => {
            out.push('{');
            for (index, (key, value)) in map.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                Value::Text(name_of(key)).push_json(out);
                out.push(':');
                push_json(out, value);
            }
            out.push('}');
        }
        Value10::Described(described) => push_json(out, described.value()),
        flat => core_value(flat).push_json(out),
    }
}

fn push_json_values<'a>(out: &mut String, values: impl Iterator<Item = Value10<'a>>) {
    for (index, value) in values.enumerate() {
        if index > 0 {
            out.push(',');
        }
        push_json(out, value);
    }
}

/// Returns the key of a map as a name.
fn name_of(key: Value10<'_>) -> Cow<'_, [u8]> {
    match core_value(key) {
        Value::Text(bytes) | Value::Binary(bytes) => bytes,
        other => Cow::Owned(other.to_text().into_owned()),
    }
}

/// Converts a value to the core's type. The codec bounds its nesting.
pub(crate) fn core_value(value: Value10<'_>) -> Value<'_> {
    match value {
        Value10::Null => Value::Null,
        Value10::Bool(value) => Value::Bool(value),
        Value10::Ubyte(number) => Value::Uint(number.into()),
        Value10::Ushort(number) => Value::Uint(number.into()),
        Value10::Uint(number) => Value::Uint(number.into()),
        Value10::Ulong(number) => Value::Uint(number),
        Value10::Byte(number) => Value::Int(number.into()),
        Value10::Short(number) => Value::Int(number.into()),
        Value10::Int(number) => Value::Int(number.into()),
        Value10::Long(number) => Value::Int(number),
        Value10::Float(number) => Value::Float(number.into()),
        Value10::Double(number) => Value::Float(number),
        // The core has no decimals; their bytes are kept.
        Value10::Decimal32(bytes) => Value::Binary(Cow::Owned(bytes.to_vec())),
        Value10::Decimal64(bytes) => Value::Binary(Cow::Owned(bytes.to_vec())),
        Value10::Decimal128(bytes) => Value::Binary(Cow::Owned(bytes.to_vec())),
        Value10::Char(char) => Value::Text(Cow::Owned(char.to_string().into_bytes())),
        Value10::Timestamp(Timestamp(ms)) => Value::Timestamp(ms),
        Value10::Uuid(bytes) => Value::Text(Cow::Owned(uuid_text(bytes).into_bytes())),
        Value10::Binary(bytes) => Value::Binary(Cow::Borrowed(bytes)),
        Value10::String(text) | Value10::Symbol(Symbol(text)) => Value::text(text.as_bytes()),
        Value10::List(list) => Value::List(list.iter().map(core_value).collect()),
        Value10::Array(array) => Value::List(array.iter().map(core_value).collect()),
        Value10::Map(map) => {
            Value::Map(map.iter().map(|(key, value)| (name_of(key), core_value(value))).collect())
        }
        Value10::Described(described) => core_value(described.value()),
    }
}

/// Formats a UUID as in RFC 9562, 4.
pub(crate) fn uuid_text(bytes: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
        text.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
    }
    text
}
