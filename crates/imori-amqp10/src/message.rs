//! Reads messages from AMQP 1.0 clients, and writes messages of any origin.
//!
//! Between AMQP 1.0 clients, the bare message from the properties to the footer is forwarded byte
//! for byte (AMQP 1.0, 3.2). Delivery annotations are addressed to the broker and not forwarded.

use std::borrow::Cow;

use imori_core::delivery::Delivery;
use imori_core::message::{
    DEFAULT_EXCHANGE, Deaths, HeaderReaders, MessageView, OFFSET, Origins, Properties, Property, Span, Value,
};

use crate::codec::composite::Composite;
use crate::codec::composites::{self, Header};
use crate::codec::condition;
use crate::codec::error::DecodeError;
use crate::codec::map::MapBuf;
use crate::codec::push::{push_binary_head, push_map_of, push_maps, push_strings};
use crate::codec::restricted::MessageId;
use crate::codec::sections::{Section, SectionKind, Sections};
use crate::codec::value::{self, Map, Symbol, Timestamp};
use crate::header_block::{
    APP_ID, CONTENT, GROUP_ID, GROUP_SEQUENCE, Parts, REPLY_TO_GROUP_ID, SECTIONS, TEXTS_HEAD_BYTES,
    ends_group, is_of_deaths, sections, uuid_text, was_acquired, with_texts,
};
use crate::limits::{ADDED_ANNOTATIONS_BYTES_MAX, APPLICATION_PROPERTIES_MAX, SECTIONS_BYTES_MAX};
use crate::protocol_error::ProtocolError;

/// Prefix of a UUID as text (RFC 9562, 4), so that it becomes a UUID again after a detour through
/// other protocols.
const UUID_PREFIX: &str = "urn:uuid:";

/// A received message, and its instructions to the broker.
#[derive(Debug)]
pub struct Incoming<'a> {
    /// The properties that the broker reads.
    pub properties: Properties,
    /// The header block.
    pub text: Cow<'a, [u8]>,
    /// The body; the origin determines its form.
    pub body: &'a [u8],
    /// The address that the message names.
    pub to: Option<&'a str>,
    /// The JMS type of that address; odd for a topic.
    pub jms_destination: Option<i8>,
    /// Expiry time in milliseconds since the UNIX epoch.
    pub expires_at_ms: Option<i64>,
    /// Delivery delay in milliseconds.
    pub delay_ms: Option<u64>,
    /// Earliest delivery time in milliseconds since the UNIX epoch.
    pub deliver_at_ms: Option<i64>,
}

/// Reads a message from the joined payload of its transfers; `user` is the client's user.
///
/// # Errors
/// `amqp:decode-error`, `amqp:resource-limit-exceeded`, or `amqp:unauthorized-access` if the
/// message names another user.
pub fn read<'a>(payload: &'a [u8], origins: Origins, user: &[u8]) -> Result<Incoming<'a>, ProtocolError> {
    let mut sections = Sections::new(payload);
    let (mut kept, mut body) = (payload, payload);
    let mut header = Header::default();
    let (mut annotations, mut application) = (Map::EMPTY, Map::EMPTY);
    let mut own = composites::Properties::default();
    while let Some(section) = sections.next_section()? {
        match section {
            Section::Header(found) => header = found,
            Section::DeliveryAnnotations(_) => {}
            Section::MessageAnnotations(map) => annotations = map,
            Section::Properties(found) => own = found,
            Section::ApplicationProperties(map) => application = map,
            // The body starts here; it and the footer are only checked.
            _ => {
                while sections.next_section()?.is_some() {}
                break;
            }
        }
        if matches!(section, Section::Header(_) | Section::DeliveryAnnotations(_)) {
            kept = sections.rest();
        }
        body = sections.rest();
    }
    let mut form = SECTIONS;
    if let Some(content) = Sections::new(body).sole_content() {
        (form, body) = (CONTENT, content);
    }
    let text = kept.get(..kept.len() - body.len()).unwrap_or_default();
    check_len(text)?;
    let mut properties = Properties::new(origins.origin(form));
    properties.is_persistent = header.durable;
    // AMQP 1.0, 3.2.1: a message without a priority has 4.
    properties.priority = Some(header.priority);
    properties.expiration_ms = header.ttl;
    properties.timestamp = own.creation_time.and_then(|time| u64::try_from(time.0 / 1000).ok());
    if let Some(claimed) = own.user_id
        && claimed != user
    {
        return Err(other_user(claimed, user));
    }
    let made = [own.message_id, own.correlation_id].map(number_text);
    let block = Block::new(text, &made, header.first_acquirer == Some(false));
    let mut set = |property, part: Option<&[u8]>| {
        if let Some(span) = part.and_then(|part| block.span(part)) {
            properties.set(property, span);
        }
    };
    set(Property::MessageId, own.message_id.and_then(text_of_id));
    set(Property::CorrelationId, own.correlation_id.and_then(text_of_id));
    set(Property::UserId, own.user_id);
    set(Property::Type, own.subject.map(str::as_bytes));
    set(Property::ReplyTo, own.reply_to.map(str::as_bytes));
    set(Property::ContentType, own.content_type.map(|symbol| symbol.0.as_bytes()));
    set(Property::ContentEncoding, own.content_encoding.map(|symbol| symbol.0.as_bytes()));
    set(Property::AppId, app_id(application)?.map(str::as_bytes));
    set(Property::GroupId, own.group_id.map(str::as_bytes));
    if own.group_sequence.is_some_and(ends_group) {
        properties.end_group();
    }
    let mut start = TEXTS_HEAD_BYTES;
    for (property, text) in [Property::MessageId, Property::CorrelationId].into_iter().zip(&made) {
        let len = text.as_ref().map_or(0, String::len);
        if let Some(span) = Span::new(start, len).filter(|_| len > 0) {
            properties.set(property, span);
        }
        start += len;
    }
    Ok(Incoming {
        properties,
        text: block.whole,
        body,
        to: own.to,
        jms_destination: annotations.find("x-opt-jms-dest").and_then(byte),
        expires_at_ms: own.absolute_expiry_time.map(|time| time.0),
        delay_ms: annotations.find("x-opt-delivery-delay").and_then(milliseconds),
        deliver_at_ms: annotations.find("x-opt-delivery-time").and_then(time_ms),
    })
}

fn check_len(text: &[u8]) -> Result<(), ProtocolError> {
    if text.len() <= SECTIONS_BYTES_MAX {
        return Ok(());
    }
    let text = format_args!(
        "the sections in front of the body have {} bytes and may have {SECTIONS_BYTES_MAX}; send long texts in the body",
        text.len()
    );
    Err(ProtocolError::new(condition::RESOURCE_LIMIT_EXCEEDED, text))
}

/// SECURITY AUTH-08: a client may name only its own user.
#[cold]
fn other_user(claimed: &[u8], user: &[u8]) -> ProtocolError {
    let text = format_args!(
        "the user-id of the message is `{}` and the user `{}`; send your own name or none",
        claimed.escape_ascii(),
        user.escape_ascii()
    );
    ProtocolError::new(condition::UNAUTHORIZED_ACCESS, text)
}

/// Checks the names of application properties, and returns the one that names the application.
fn app_id(application: Map<'_>) -> Result<Option<&str>, ProtocolError> {
    if application.len() > APPLICATION_PROPERTIES_MAX {
        let text = format_args!(
            "{} application properties are more than the {APPLICATION_PROPERTIES_MAX} that a message may have",
            application.len()
        );
        return Err(ProtocolError::new(condition::RESOURCE_LIMIT_EXCEEDED, text));
    }
    let mut app_id = None;
    for (key, value) in application.iter() {
        match (key, value) {
            (value::Value::String(APP_ID), value::Value::String(text)) => app_id = Some(text),
            (value::Value::String(_), _) => {}
            // AMQP 1.0, 3.2.5: the keys are restricted to be of type string.
            _ => return Err(DecodeError::SectionValue { needed: "map of strings" }.into()),
        }
    }
    Ok(app_id)
}

fn milliseconds(value: value::Value<'_>) -> Option<u64> {
    match value {
        value::Value::Ulong(number) => Some(number),
        value::Value::Uint(number) => Some(number.into()),
        value::Value::Long(number) => u64::try_from(number).ok(),
        value::Value::Int(number) => u64::try_from(number).ok(),
        _ => None,
    }
}

fn byte(value: value::Value<'_>) -> Option<i8> {
    match value {
        value::Value::Byte(number) => Some(number),
        _ => None,
    }
}

fn time_ms(value: value::Value<'_>) -> Option<i64> {
    match value {
        value::Value::Timestamp(time) => Some(time.0),
        other => milliseconds(other).and_then(|ms| i64::try_from(ms).ok()),
    }
}

/// Returns the text of an identifier that is a number or a UUID.
fn number_text(id: Option<MessageId<'_>>) -> Option<String> {
    match id? {
        MessageId::Ulong(number) => Some(number.to_string()),
        MessageId::Uuid(bytes) => Some(format!("{UUID_PREFIX}{}", uuid_text(bytes))),
        MessageId::String(_) | MessageId::Binary(_) => None,
    }
}

/// Returns the bytes of an identifier that is text or binary.
fn text_of_id(id: MessageId<'_>) -> Option<&[u8]> {
    match id {
        MessageId::String(text) => Some(text.as_bytes()),
        MessageId::Binary(bytes) => Some(bytes),
        MessageId::Ulong(_) | MessageId::Uuid(_) => None,
    }
}

/// A header block under construction, and the received sections within it.
struct Block<'a> {
    whole: Cow<'a, [u8]>,
    sections: &'a [u8],
    /// Length of the block before the sections.
    before: usize,
}

impl<'a> Block<'a> {
    fn new(sections: &'a [u8], made: &[Option<String>; 2], was_acquired: bool) -> Block<'a> {
        if !was_acquired && made.iter().all(Option::is_none) {
            return Block { whole: Cow::Borrowed(sections), sections, before: 0 };
        }
        let texts: String = made.iter().flatten().map(String::as_str).collect();
        let whole = Cow::Owned(with_texts(texts.as_bytes(), was_acquired, sections));
        Block { whole, sections, before: TEXTS_HEAD_BYTES + texts.len() }
    }

    /// Returns the position of a part of the sections.
    fn span(&self, part: &[u8]) -> Option<Span> {
        let start = part.as_ptr().addr().checked_sub(self.sections.as_ptr().addr())?;
        Span::new(self.before + start, part.len())
    }
}

/// Returns the part of a delivery's payload after the head that [`push_head`] writes.
#[inline]
pub fn body<'a>(delivery: &Delivery<'a>, origins: Origins, readers: HeaderReaders) -> Cow<'a, [u8]> {
    let message = &delivery.message;
    match origins.form(message.properties.origin) {
        Some(_) => Cow::Borrowed(message.body),
        None => readers(message.properties.origin).body(message),
    }
}

/// Appends the part of a delivery's payload before its [`body`] of `body_len` bytes.
#[inline]
pub fn push_head(
    out: &mut Vec<u8>,
    delivery: &Delivery<'_>,
    body_len: usize,
    origins: Origins,
    readers: HeaderReaders,
) {
    let message = &delivery.message;
    let is_acquired = origins.form(message.properties.origin).is_some() && was_acquired(message.text);
    let header = Header {
        durable: message.properties.is_persistent,
        priority: message.properties.priority.unwrap_or(Header::default().priority),
        // A dead letter does not expire again.
        ttl: message.properties.expiration_ms.filter(|_| delivery.died().is_none()),
        first_acquirer: match is_acquired {
            true => Some(false),
            // A dead letter may return to the link that rejected it.
            false => (!delivery.is_redelivered && delivery.died().is_none()).then_some(true),
        },
        delivery_count: delivery.failures,
    };
    header.encode(out);
    match (origins.form(message.properties.origin), delivery.deaths) {
        (Some(_), None) if !delivery.is_of_stream => out.extend_from_slice(sections(message.text)),
        (Some(_), _) => {
            let parts = Parts::of(message.text);
            let mut annotations = merged(parts.annotations, added(delivery.annotations()));
            if let Some(deaths) = delivery.died() {
                annotations = without(annotations.map(), is_of_deaths);
                push_deaths(&mut annotations, deaths);
            }
            let annotations = with_offset(annotations, delivery);
            push_annotations(out, &annotations);
            out.extend_from_slice(parts.bare);
        }
        (None, _) => {
            let mut annotations = MapBuf::new();
            push_address(&mut annotations, delivery);
            let mut annotations = merged(annotations.map(), added(delivery.annotations()));
            delivery.died().into_iter().for_each(|deaths| push_deaths(&mut annotations, deaths));
            let annotations = with_offset(annotations, delivery);
            push_annotations(out, &annotations);
            push_foreign(out, message, body_len, readers);
        }
    }
}

/// Adds the offset of a message of a stream.
fn with_offset(annotations: MapBuf, delivery: &Delivery<'_>) -> MapBuf {
    let Some(offset) = delivery.offset() else { return annotations };
    let mut with = without(annotations.map(), |name| name == OFFSET);
    with.push(value::Value::Symbol(Symbol(OFFSET)), value::Value::Long(offset));
    with
}

/// Merges annotations; those `added` by a receiver replace equal keys (AMQP 1.0, 3.4.5).
fn merged(annotations: Map<'_>, added: Map<'_>) -> MapBuf {
    let mut merged = MapBuf::new();
    for (key, value) in annotations.iter() {
        if !added.iter().any(|(replaced, _)| replaced == key) {
            merged.push(key, value);
        }
    }
    added.iter().for_each(|(key, value)| merged.push(key, value));
    merged
}

/// Copies a map without the symbols for which `is_left_out` is true.
fn without(map: Map<'_>, is_left_out: fn(&str) -> bool) -> MapBuf {
    let mut rest = MapBuf::new();
    for (key, value) in map.iter() {
        if !matches!(key, value::Value::Symbol(Symbol(name)) if is_left_out(name)) {
            rest.push(key, value);
        }
    }
    rest
}

/// Reads the annotations that [`annotated`] wrote.
fn added(annotations: Option<&[u8]>) -> Map<'_> {
    match annotations.and_then(value::Value::decode_checked) {
        Some(value::Value::Map(map)) => map,
        _ => Map::EMPTY,
    }
}

/// Merges the annotations `before` with those a receiver adds now. `None` if they exceed the limit.
pub fn annotated(before: Option<&[u8]>, more: Map<'_>) -> Option<Box<[u8]>> {
    // SECURITY AUTH-08: only the broker may report deaths.
    let more = without(more, is_of_deaths);
    let mut out = Vec::new();
    push_map_of(&mut out, merged(added(before), more.map()).map());
    // SECURITY LIM-10: each receiver may add annotations.
    (out.len() <= ADDED_ANNOTATIONS_BYTES_MAX).then(|| out.into_boxed_slice())
}

/// As [`annotated`], with `more` in the form that it returns.
pub(crate) fn annotated_again(before: Option<&[u8]>, more: &[u8]) -> Option<Box<[u8]>> {
    annotated(before, added(Some(more)))
}

fn push_annotations(out: &mut Vec<u8>, annotations: &MapBuf) {
    if !annotations.is_empty() {
        SectionKind::MessageAnnotations.push(out);
        push_map_of(out, annotations.map());
    }
}

/// Adds the address of a message from another protocol, by RabbitMQ's names. Omits names that are
/// not UTF-8.
fn push_address(annotations: &mut MapBuf, delivery: &Delivery<'_>) {
    let names = [("x-exchange", delivery.address.exchange()), ("x-routing-key", delivery.address.subject())];
    for (key, name) in names {
        if let Ok(name) = std::str::from_utf8(name) {
            annotations.push(value::Value::Symbol(Symbol(key)), value::Value::String(name));
        }
    }
}

/// Adds the history of a dead letter in RabbitMQ 4's form: `x-opt-deaths`, and the first and last
/// death separately.
fn push_deaths(annotations: &mut MapBuf, deaths: &Deaths) {
    let maps: Vec<MapBuf> = deaths
        .iter()
        .map(|death| {
            let exchange = String::from_utf8_lossy(death.address.exchange.as_bytes());
            let subject = String::from_utf8_lossy(death.address.subject.as_bytes());
            // The core's time is in microseconds.
            let time = Timestamp(i64::try_from(death.time.0 / 1000).unwrap_or(i64::MAX));
            let mut map = MapBuf::new()
                .with("queue", value::Value::String(&String::from_utf8_lossy(death.queue.as_bytes())))
                .with("reason", value::Value::Symbol(Symbol(death.reason.as_str())))
                .with("count", value::Value::Ulong(death.count))
                .with("first-time", value::Value::Timestamp(time))
                .with("exchange", value::Value::String(&exchange));
            map.push_with(value::Value::Symbol(Symbol("routing-keys")), |out| {
                push_strings(out, std::iter::once(&*subject));
            });
            map
        })
        .collect();
    annotations.push_with(value::Value::Symbol(Symbol("x-opt-deaths")), |out| {
        push_maps(out, maps.iter().map(MapBuf::map));
    });
    let ends = [("first", deaths.first()), ("last", deaths.iter().next())];
    for (which, death) in ends.into_iter().filter_map(|(which, death)| Some((which, death?))) {
        let facts = [
            ("reason", death.reason.as_str().as_bytes()),
            ("queue", death.queue.as_bytes()),
            ("exchange", death.address.exchange.as_bytes()),
        ];
        for (what, text) in facts {
            let key = format!("x-{which}-death-{what}");
            annotations.push(
                value::Value::Symbol(Symbol(&key)),
                value::Value::String(&String::from_utf8_lossy(text)),
            );
        }
    }
}

/// Appends the bare message of another protocol, up to the content of its body, which becomes a
/// data section.
#[cold]
fn push_foreign(out: &mut Vec<u8>, message: &MessageView<'_>, body_len: usize, readers: HeaderReaders) {
    let reader = readers(message.properties.origin);
    let mut application = MapBuf::new();
    let (mut group_id, mut group_sequence, mut reply_to_group_id) = (None, None, None);
    let mut names: Vec<Cow<'_, [u8]>> = Vec::new();
    reader.visit_headers(message.text, &mut |name, value| {
        // A map must not repeat a key; the first of repeated headers counts.
        let Some(key) = std::str::from_utf8(&name).ok().filter(|_| !names.contains(&name)) else { return };
        match (key, &value) {
            (GROUP_ID, Value::Text(text)) if group_id.is_none() => group_id = owned_text(text),
            (GROUP_SEQUENCE, value) if group_sequence.is_none() => group_sequence = sequence(value),
            (REPLY_TO_GROUP_ID, Value::Text(text)) => reply_to_group_id = owned_text(text),
            _ => push_application(&mut application, key, &value),
        }
        names.push(name);
    });
    let text = |property| std::str::from_utf8(message.property(property)?).ok();
    if let Some(app_id) = text(Property::AppId) {
        application.push(value::Value::String(APP_ID), value::Value::String(app_id));
    }
    let symbol = |property| text(property).filter(|text| text.is_ascii()).map(Symbol);
    let reply_to =
        reader.reply_address(message).and_then(|(exchange, subject)| node_address(&exchange, &subject));
    let properties = composites::Properties {
        message_id: message.property(Property::MessageId).map(message_id),
        user_id: message.property(Property::UserId),
        subject: text(Property::Type),
        reply_to: reply_to.as_deref(),
        correlation_id: message.property(Property::CorrelationId).map(message_id),
        content_type: symbol(Property::ContentType),
        content_encoding: symbol(Property::ContentEncoding),
        creation_time: message
            .properties
            .timestamp
            .map(|seconds| Timestamp(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000))),
        group_id: group_id.as_deref(),
        group_sequence,
        reply_to_group_id: reply_to_group_id.as_deref(),
        ..composites::Properties::default()
    };
    if properties != composites::Properties::default() {
        properties.encode(out);
    }
    if !application.is_empty() {
        SectionKind::ApplicationProperties.push(out);
        push_map_of(out, application.map());
    }
    SectionKind::Data.push(out);
    push_binary_head(out, body_len);
}

fn owned_text(text: &[u8]) -> Option<String> {
    String::from_utf8(text.to_vec()).ok()
}

/// Reads the number of a message in its group, which is text in protocols without types.
pub fn sequence(value: &Value<'_>) -> Option<u32> {
    match value {
        Value::Int(number) => sequence_of(*number),
        Value::Uint(number) => u32::try_from(*number).ok(),
        Value::Text(text) => sequence_of(std::str::from_utf8(text).ok()?.parse().ok()?),
        _ => None,
    }
}

/// Converts a JMS group number, which is signed, to AMQP's unsigned one.
fn sequence_of(number: i64) -> Option<u32> {
    u32::try_from(number).ok().or_else(|| i32::try_from(number).ok().map(i32::cast_unsigned))
}

/// Converts an identifier of another protocol to a UUID, text or binary.
pub fn message_id(bytes: &[u8]) -> MessageId<'_> {
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            text.strip_prefix(UUID_PREFIX).and_then(uuid).map_or(MessageId::String(text), MessageId::Uuid)
        }
        Err(_) => MessageId::Binary(bytes),
    }
}

/// Parses a UUID in the form of RFC 9562, 4.
fn uuid(text: &str) -> Option<[u8; 16]> {
    let hyphens = [8, 13, 18, 23];
    if text.len() != 36 || hyphens.iter().any(|at| text.as_bytes().get(*at) != Some(&b'-')) {
        return None;
    }
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| *byte != b'-')
        .map(|byte| char::from(byte).to_digit(16).map(|digit| digit as u8))
        .collect::<Option<_>>()?;
    let bytes: Vec<u8> =
        digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
    bytes.try_into().ok()
}

/// Returns the address of a node in RabbitMQ 4's form. `None` for an empty name or one that is not
/// UTF-8.
pub fn node_address(exchange: &[u8], subject: &[u8]) -> Option<String> {
    let mut address = String::new();
    if *exchange == *DEFAULT_EXCHANGE {
        address.push_str("/queues/");
    } else {
        address.push_str("/exchanges/");
        push_encoded(&mut address, exchange);
        address.push('/');
    }
    push_encoded(&mut address, subject);
    Some(address).filter(|_| !subject.is_empty() || *exchange != *DEFAULT_EXCHANGE)
}

/// RFC 3986, 2.3: encodes all bytes but letters, digits and four marks.
fn push_encoded(out: &mut String, name: &[u8]) {
    for byte in name {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(*byte));
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
}

/// Adds a header of another protocol, keeping its type. A list or map becomes JSON (AMQP 1.0,
/// 3.2.5: simple types only).
fn push_application(application: &mut MapBuf, key: &str, header: &Value<'_>) {
    let json;
    let field = match header {
        Value::Null => value::Value::Null,
        Value::Bool(value) => value::Value::Bool(*value),
        Value::Int(number) => value::Value::Long(*number),
        // JMS has no unsigned numbers, so a long is preferred if the value fits.
        Value::Uint(number) => {
            i64::try_from(*number).map_or(value::Value::Ulong(*number), value::Value::Long)
        }
        Value::Float(number) => value::Value::Double(*number),
        Value::Timestamp(ms) => value::Value::Timestamp(Timestamp(*ms)),
        Value::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => value::Value::String(text),
            Err(_) => value::Value::Binary(bytes),
        },
        Value::Binary(bytes) => value::Value::Binary(bytes),
        Value::List(_) | Value::Map(_) => {
            json = header.to_text();
            value::Value::String(std::str::from_utf8(&json).unwrap_or_default())
        }
    };
    application.push(value::Value::String(key), field);
}
