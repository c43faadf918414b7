//! Converts frames to and from readable lines.
//!
//! `1 queue.declare queue=q durable arguments={x-max-length:I:5}` is a method on channel 1,
//! `1 header 5 priority=3` the content header of a five-byte body, `1 body hello` that body.
//! `hello` is the protocol header, `raw` starts any bytes.

use std::fmt::Write;

use imori_amqp091::codec::fields::Fields;
use imori_amqp091::codec::frame::{
    FrameType, PROTOCOL_HEADER, Step, decode, push_content_header, push_frame, push_heartbeat,
};
use imori_amqp091::codec::method::MethodId;
use imori_amqp091::codec::properties::{BasicProperties, ContentHeader, TextProperty};
use imori_amqp091::codec::push::{
    push_array_value, push_fields, push_long_str, push_short_str, push_table_value, push_value,
};
use imori_amqp091::codec::table::{FieldValue, Table};

use super::named_fields::named_fields;

/// Encodes a line.
pub fn bytes(line: &str) -> Vec<u8> {
    let words = words(line);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut out = Vec::new();
    match words[..] {
        ["hello"] => out.extend_from_slice(PROTOCOL_HEADER),
        ["raw", hex] => out.extend(
            hex.as_bytes()
                .chunks(2)
                .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()),
        ),
        [_, "heartbeat"] => push_heartbeat(&mut out),
        [channel, "body", text] => {
            let text = match text.strip_prefix("bytes:") {
                Some(len) => vec![b'x'; len.parse().unwrap()],
                None => text.as_bytes().to_vec(),
            };
            push_frame(&mut out, FrameType::Body, channel.parse().unwrap(), |out| out.extend(text));
        }
        [channel, "header", len, ref properties @ ..] => {
            let block = properties_of(properties);
            push_content_header(&mut out, channel.parse().unwrap(), len.parse().unwrap(), &block);
        }
        [channel, name, ref fields @ ..] => {
            let payload = method(name, fields);
            push_frame(&mut out, FrameType::Method, channel.parse().unwrap(), |out| out.extend(payload));
        }
        _ => panic!("{line}"),
    }
    out
}

/// Splits at spaces outside quotes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    for char in line.chars() {
        match char {
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(std::mem::take(&mut word)),
            char => word.push(char),
        }
    }
    words.push(word);
    words
}

fn value_of<'a>(fields: &[&'a str], name: &str) -> Option<&'a str> {
    let is_it = |field: &&'a str| field.split('=').next() == Some(name);
    fields.iter().copied().find(is_it).map(|field| field.split_once('=').map_or("", |(_, value)| value))
}

fn method(name: &str, given: &[&str]) -> Vec<u8> {
    let methods = named_fields();
    let found = methods.iter().find(|(_, known, _)| known == name);
    let (MethodId { class, method }, _, fields) = found.unwrap_or_else(|| panic!("no method {name}"));
    let known = |field: &&str| {
        fields.iter().any(|known| known.ends_with(&format!(":{}", field.split('=').next().unwrap())))
    };
    assert!(given.iter().all(known), "{name} has no such field: {given:?}");
    let mut out = [class.to_be_bytes(), method.to_be_bytes()].concat();
    let mut bits: Vec<bool> = Vec::new();
    for field in fields.iter().copied().chain(["end:"]) {
        let (kind, name) = field.split_once(':').unwrap();
        if kind != "bit" && !bits.is_empty() {
            out.push(bits.drain(..).rev().fold(0, |octet, bit| octet * 2 + u8::from(bit)));
        }
        let value = value_of(given, name);
        let number = || value.map_or(0, |value| value.parse::<u64>().unwrap());
        match kind {
            "end" => {}
            "bit" => bits.push(value.is_some()),
            "octet" => out.push(number() as u8),
            "short" => out.extend((number() as u16).to_be_bytes()),
            "long" => out.extend((number() as u32).to_be_bytes()),
            "longlong" => out.extend(number().to_be_bytes()),
            "shortstr" => push_short_str(&mut out, value.unwrap_or("")),
            "longstr" => {
                let value = value.unwrap_or("");
                let is_table = value.starts_with('{');
                let text = || value.replace('^', "\0").into_bytes();
                push_long_str(&mut out, &if is_table { table(value) } else { text() });
            }
            "table" => push_fields(&mut out, |out| out.extend(table(value.unwrap_or("{}")))),
            other => panic!("{other}"),
        }
    }
    out
}

fn properties_of(given: &[&str]) -> Vec<u8> {
    let text = |name| value_of(given, name).map(|value| TextProperty::new(value.as_bytes()));
    let octet = |name| value_of(given, name).map(|value| value.parse().unwrap());
    let headers = value_of(given, "headers").map(table);
    let properties = BasicProperties {
        content_type: text("content-type"),
        content_encoding: text("content-encoding"),
        headers: headers.as_ref().map(|headers| Table::new(headers).unwrap()),
        delivery_mode: octet("delivery-mode"),
        priority: octet("priority"),
        correlation_id: text("correlation-id"),
        reply_to: text("reply-to"),
        expiration: text("expiration"),
        message_id: text("message-id"),
        timestamp: value_of(given, "timestamp").map(|value| value.parse().unwrap()),
        kind: text("type"),
        user_id: text("user-id"),
        app_id: text("app-id"),
        cluster_id: None,
    };
    let mut out = Vec::new();
    properties.push(&mut out);
    out
}

/// Encodes the fields of a table: `{name:T:value,...}` with type `t`, `I`, `l`, `S`, `F` or `A`.
fn table(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for field in parts(text.strip_prefix('{').unwrap().strip_suffix('}').unwrap()) {
        let (name, value) = field.split_once(':').unwrap();
        push_short_str(&mut out, name);
        value_to(&mut out, value);
    }
    out
}

fn value_to(out: &mut Vec<u8>, text: &str) {
    let (kind, value) = text.split_once(':').unwrap();
    match kind {
        "F" => push_table_value(out, |out| out.extend(table(value))),
        "A" => push_array_value(out, |out| {
            parts(value.strip_prefix('[').unwrap().strip_suffix(']').unwrap())
                .iter()
                .for_each(|part| value_to(out, part));
        }),
        "t" => push_value(out, FieldValue::Bool(value == "true")),
        "I" => push_value(out, FieldValue::I32(value.parse().unwrap())),
        "l" => push_value(out, FieldValue::I64(value.parse().unwrap())),
        "S" => push_value(out, FieldValue::Text(value.as_bytes())),
        other => panic!("{other}"),
    }
}

/// Splits at commas outside brackets.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, char) in text.char_indices() {
        match char {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.extend((start < text.len()).then(|| &text[start..]));
    parts
}

/// Decodes the broker's output into lines.
pub fn lines(mut bytes: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    while !bytes.is_empty() {
        if let Some(rest) = bytes.strip_prefix(PROTOCOL_HEADER) {
            lines.push("hello".to_string());
            bytes = rest;
            continue;
        }
        let Ok(Step::Frame(frame)) = decode(bytes, usize::MAX) else {
            panic!("the broker writes frames: {bytes:?}")
        };
        bytes = &bytes[frame.len()..];
        let rest = match frame.kind {
            FrameType::Heartbeat => "heartbeat".to_string(),
            FrameType::Body if frame.payload.len() > 60 => format!("body bytes:{}", frame.payload.len()),
            FrameType::Body => format!("body {}", quoted(frame.payload)),
            FrameType::Header => header(frame.payload),
            FrameType::Method => shown(frame.payload),
        };
        lines.push(format!("{} {rest}", frame.channel));
    }
    lines
}

fn quoted(text: &[u8]) -> String {
    let text = text.escape_ascii().to_string().replace("\\'", "'");
    if text.is_empty() || text.contains(' ') { format!("\"{text}\"") } else { text }
}

fn shown(payload: &[u8]) -> String {
    let mut read = Fields::new(payload);
    let id = MethodId::read(&mut read).unwrap();
    let methods = named_fields();
    let (_, name, fields) = methods.iter().find(|(known, ..)| *known == id).expect("a method");
    let mut line = name.clone();
    let (mut bits, mut bit) = (0, 8);
    for field in fields {
        let (kind, name) = field.split_once(':').unwrap();
        if kind == "bit" {
            if bit == 8 {
                (bits, bit) = (read.octet().unwrap(), 0);
            }
            if bits >> bit & 1 == 1 {
                write!(line, " {name}").unwrap();
            }
            bit += 1;
            continue;
        }
        bit = 8;
        let value = match kind {
            "octet" => read.octet().unwrap().to_string(),
            "short" => read.short().unwrap().to_string(),
            "long" => read.long().unwrap().to_string(),
            "longlong" => read.longlong().unwrap().to_string(),
            "shortstr" => quoted(read.short_bytes().unwrap()),
            "longstr" => quoted(read.long_str().unwrap()),
            // Equal for all clients; a unit test checks the contents.
            "table" if name == "server-properties" => {
                format!("{{{} fields}}", Table::read(&mut read).unwrap().iter().count())
            }
            "table" => shown_table(Table::read(&mut read).unwrap()),
            other => panic!("{other}"),
        };
        if name != "-" {
            write!(line, " {name}={value}").unwrap();
        }
    }
    read.end().unwrap();
    line
}

fn header(payload: &[u8]) -> String {
    let header = ContentHeader::decode(payload).unwrap();
    let properties = BasicProperties::read(header.properties).unwrap();
    let mut line = format!("header {}", header.body_len);
    let mut text = |name: &str, text: Option<TextProperty<'_>>| {
        text.into_iter().for_each(|text| write!(line, " {name}={}", quoted(text.bytes)).unwrap());
    };
    text("content-type", properties.content_type);
    text("content-encoding", properties.content_encoding);
    text("correlation-id", properties.correlation_id);
    text("reply-to", properties.reply_to);
    text("expiration", properties.expiration);
    text("message-id", properties.message_id);
    text("type", properties.kind);
    text("user-id", properties.user_id);
    text("app-id", properties.app_id);
    let numbers = [
        ("delivery-mode", properties.delivery_mode.map(u64::from)),
        ("priority", properties.priority.map(u64::from)),
        ("timestamp", properties.timestamp),
    ];
    for (name, number) in numbers {
        number.into_iter().for_each(|number| write!(line, " {name}={number}").unwrap());
    }
    if let Some(headers) = properties.headers {
        write!(line, " headers={}", shown_table(headers)).unwrap();
    }
    line
}

fn shown_table(table: Table<'_>) -> String {
    let field = |(name, value): (&[u8], FieldValue<'_>)| format!("{}:{}", quoted(name), shown_value(value));
    format!("{{{}}}", table.iter().map(field).collect::<Vec<_>>().join(","))
}

fn shown_value(value: FieldValue<'_>) -> String {
    let text = match value {
        FieldValue::Text(text) => quoted(text),
        FieldValue::Table(table) => shown_table(table),
        FieldValue::Array(array) => {
            format!("[{}]", array.iter().map(shown_value).collect::<Vec<_>>().join(","))
        }
        FieldValue::Bool(value) => value.to_string(),
        FieldValue::I32(number) => number.to_string(),
        FieldValue::I64(number) => number.to_string(),
        FieldValue::Timestamp(seconds) => seconds.to_string(),
        other => format!("{other:?}"),
    };
    format!("{}:{text}", char::from(value.octet()))
}
