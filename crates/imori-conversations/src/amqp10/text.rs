//! Converts frames to and from readable lines.
//!
//! `0 attach name=l handle=0 role=true source=source{address=q}` is a performative on channel 0;
//! ` | a` after it is a message with this body. Values: text, `:symbol`, a uint, a number with a
//! suffix (`b` ubyte, `y` byte, `s` ushort, `l` ulong, `t` timestamp), `true`, `false`, `@hex`
//! bytes, `[:a,:b]`, `(:key=value)` or `name{field=value}`. `sasl` starts a SASL frame, `hello` and
//! `sasl-hello` are protocol headers, `raw` starts any bytes.

use std::fmt::Write;

use imori_amqp10::codec::constructor::{LIST_8, MAP_8};
use imori_amqp10::codec::frame::{FrameKind, ProtocolHeader, Step, decode, push_frame, push_heartbeat};
use imori_amqp10::codec::push::{Compound, push_descriptor, push_symbols, push_value};
use imori_amqp10::codec::value::{Descriptor, Symbol, Timestamp, Value};

/// Described lists by code, with their fields in order.
const LISTS: &[(u64, &str, &str)] = &[
    (
        0x10,
        "open",
        "container-id hostname max-frame-size channel-max idle-time-out outgoing-locales incoming-locales \
         offered-capabilities desired-capabilities properties",
    ),
    (
        0x11,
        "begin",
        "remote-channel next-outgoing-id incoming-window outgoing-window handle-max offered-capabilities \
         desired-capabilities properties",
    ),
    (
        0x12,
        "attach",
        "name handle role snd-settle-mode rcv-settle-mode source target unsettled incomplete-unsettled \
         initial-delivery-count max-message-size offered-capabilities desired-capabilities properties",
    ),
    (
        0x13,
        "flow",
        "next-incoming-id incoming-window next-outgoing-id outgoing-window handle delivery-count link-credit available \
         drain echo properties",
    ),
    (
        0x14,
        "transfer",
        "handle delivery-id delivery-tag message-format settled more rcv-settle-mode state resume aborted batchable",
    ),
    (0x15, "disposition", "role first last settled state batchable"),
    (0x16, "detach", "handle closed error"),
    (0x17, "end", "error"),
    (0x18, "close", "error"),
    (0x1d, "error", "condition description info"),
    (0x23, "received", "section-number section-offset"),
    (0x24, "accepted", ""),
    (0x25, "rejected", "error"),
    (0x26, "released", ""),
    (0x2b, "delete-on-close", ""),
    (0x2c, "delete-on-no-links", ""),
    (0x2d, "delete-on-no-messages", ""),
    (0x2e, "delete-on-no-links-or-messages", ""),
    (0x27, "modified", "delivery-failed undeliverable-here message-annotations"),
    (
        0x28,
        "source",
        "address durable expiry-policy timeout dynamic dynamic-node-properties distribution-mode filter \
         default-outcome outcomes capabilities",
    ),
    (0x29, "target", "address durable expiry-policy timeout dynamic dynamic-node-properties capabilities"),
    (0x30, "coordinator", "capabilities"),
    (0x31, "declare", "global-id"),
    (0x32, "discharge", "txn-id fail"),
    (0x33, "declared", "txn-id"),
    (0x34, "transactional", "txn-id outcome"),
    (0x40, "mechanisms", "sasl-server-mechanisms"),
    (0x41, "init", "mechanism initial-response hostname"),
    (0x42, "challenge", "challenge"),
    (0x43, "response", "response"),
    (0x44, "outcome", "code additional-data"),
    (0x70, "header", "durable priority ttl first-acquirer delivery-count"),
    (0x72, "message-annotations", ""),
    (
        0x73,
        "properties",
        "message-id user-id to subject reply-to correlation-id content-type content-encoding absolute-expiry-time \
         creation-time group-id group-sequence reply-to-group-id",
    ),
    (0x74, "application-properties", ""),
    (0x75, "data", ""),
    (0x77, "amqp-value", ""),
];

/// Encodes a line.
pub fn bytes(line: &str) -> Vec<u8> {
    let (head, payload) =
        line.split_once(" | ").map_or((line, None), |(head, payload)| (head, Some(payload)));
    let words = split(head, ' ');
    let mut out = Vec::new();
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["hello"] => out.extend_from_slice(ProtocolHeader::Amqp.bytes()),
        ["sasl-hello"] => out.extend_from_slice(ProtocolHeader::Sasl.bytes()),
        ["raw", digits] => out.extend(hex(digits)),
        ["empty"] => push_heartbeat(&mut out),
        ["sasl", name, fields @ ..] => {
            push_frame(&mut out, FrameKind::Sasl, 0, |out| list(out, name, fields));
        }
        [channel, name, fields @ ..] => {
            push_frame(&mut out, FrameKind::Amqp, channel.parse().unwrap(), |out| {
                list(out, name, fields);
                match payload {
                    None => {}
                    Some(payload) if payload.starts_with('@') => out.extend(hex(&payload[1..])),
                    Some(payload) => message(out, payload),
                }
            });
        }
        other => panic!("{other:?}"),
    }
    out
}

/// Encodes the sections of a message: `properties{to=q} body`, or just a body. A map becomes
/// message annotations, and `value:` starts an `amqp-value`.
fn message(out: &mut Vec<u8>, payload: &str) {
    let words = split(payload, ' ');
    for word in &words {
        match (word.strip_prefix("value:"), word.split_once('{')) {
            (Some(value), _) => {
                push_descriptor(out, Descriptor::Code(0x77));
                push(out, value);
            }
            (None, Some((name, fields))) => composite(out, name, fields),
            (None, None) if word.starts_with('(') => {
                push_descriptor(out, Descriptor::Code(0x72));
                push(out, word);
            }
            (None, None) => {
                let body = match word.strip_prefix("bytes:") {
                    Some(len) => vec![b'x'; len.parse().unwrap()],
                    None => word.as_bytes().to_vec(),
                };
                push_descriptor(out, Descriptor::Code(0x75));
                push_value(out, Value::Binary(&body));
            }
        }
    }
}

fn composite(out: &mut Vec<u8>, name: &str, fields: &str) {
    let fields = split(fields.strip_suffix('}').unwrap(), ',');
    let fields: Vec<&str> = fields.iter().map(String::as_str).filter(|field| !field.is_empty()).collect();
    list(out, name, &fields);
}

fn list(out: &mut Vec<u8>, name: &str, given: &[&str]) {
    let (code, _, fields) =
        LISTS.iter().find(|(_, known, _)| known == &name).unwrap_or_else(|| panic!("{name}"));
    let fields: Vec<&str> = fields.split_whitespace().collect();
    push_descriptor(out, Descriptor::Code(*code));
    let compound = Compound::begin(out, LIST_8);
    let value = |field: &str| {
        given
            .iter()
            .find_map(|given| given.split_once('=').filter(|(name, _)| *name == field))
            .map(|(_, value)| value)
    };
    for given in given {
        let name = given.split('=').next().unwrap();
        assert!(fields.contains(&name), "`{given}` is no field");
    }
    let count = fields.iter().rposition(|field| value(field).is_some()).map_or(0, |last| last + 1);
    for field in &fields[..count] {
        match value(field) {
            Some(value) => push(out, value),
            None => push_value(out, Value::Null),
        }
    }
    compound.end(out, count as u32);
}

fn push(out: &mut Vec<u8>, text: &str) {
    let number = |text: &str| text.parse::<u64>().ok();
    let typed = text.split_at_checked(text.len().saturating_sub(1));
    match (text, typed) {
        ("true" | "false", _) => push_value(out, Value::Bool(text == "true")),
        ("null", _) => push_value(out, Value::Null),
        _ if text.starts_with(':') => push_value(out, Value::Symbol(Symbol(&text[1..]))),
        _ if text.starts_with('@') => push_value(out, Value::Binary(&hex(&text[1..]))),
        _ if text.starts_with('[') => {
            let parts = split(text.strip_prefix('[').unwrap().strip_suffix(']').unwrap(), ',');
            let symbols: Vec<Symbol<'_>> =
                parts.iter().map(|part| Symbol(part.strip_prefix(':').unwrap())).collect();
            push_symbols(out, &symbols);
        }
        _ if text.starts_with('(') => {
            let pairs = split(text.strip_prefix('(').unwrap().strip_suffix(')').unwrap(), ',');
            let compound = Compound::begin(out, MAP_8);
            for pair in &pairs {
                let (key, value) = pair.split_once('=').unwrap();
                push(out, key);
                push(out, value);
            }
            compound.end(out, 2 * pairs.len() as u32);
        }
        _ if text.contains('{') => {
            let (name, fields) = text.split_once('{').unwrap();
            composite(out, name, fields);
        }
        _ if number(text).is_some() => push_value(out, Value::Uint(number(text).unwrap() as u32)),
        (_, Some((digits, "b"))) if number(digits).is_some() => {
            push_value(out, Value::Ubyte(number(digits).unwrap() as u8));
        }
        (_, Some((digits, "s"))) if number(digits).is_some() => {
            push_value(out, Value::Ushort(number(digits).unwrap() as u16));
        }
        (_, Some((digits, "l"))) if number(digits).is_some() => {
            push_value(out, Value::Ulong(number(digits).unwrap()));
        }
        (_, Some((digits, "y"))) if number(digits).is_some() => {
            push_value(out, Value::Byte(number(digits).unwrap() as i8));
        }
        (_, Some((digits, "t"))) if number(digits).is_some() => {
            push_value(out, Value::Timestamp(Timestamp(number(digits).unwrap() as i64)));
        }
        _ => push_value(out, Value::String(text.trim_matches('"'))),
    }
}

fn hex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// Splits at `at` outside brackets and quotes.
fn split(text: &str, at: char) -> Vec<String> {
    let (mut parts, mut part, mut depth, mut is_quoted) = (Vec::new(), String::new(), 0, false);
    for char in text.chars() {
        match char {
            '"' => is_quoted = !is_quoted,
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth -= 1,
            _ => {}
        }
        if char == at && depth == 0 && !is_quoted {
            parts.push(std::mem::take(&mut part));
        } else {
            part.push(char);
        }
    }
    parts.push(part);
    parts
}

/// Decodes the broker's output into lines.
pub fn lines(mut bytes: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    while !bytes.is_empty() {
        match decode(bytes, usize::MAX) {
            Ok(Step::Header(header)) => {
                lines.push(if header == ProtocolHeader::Amqp { "hello" } else { "sasl-hello" }.to_string());
                bytes = &bytes[8..];
            }
            Ok(Step::Frame(frame)) => {
                bytes = &bytes[frame.len..];
                if frame.body.is_empty() {
                    lines.push("empty".to_string());
                    continue;
                }
                let (value, payload) = Value::decode(frame.body).unwrap();
                let mut line = if frame.kind == FrameKind::Sasl {
                    "sasl ".to_string()
                } else {
                    format!("{} ", frame.channel)
                };
                show(&mut line, value, " ");
                if !payload.is_empty() {
                    line.push_str(" |");
                }
                let mut rest = payload;
                while !rest.is_empty() {
                    let Ok((value, behind)) = Value::decode(rest) else {
                        write!(line, " {} bytes", rest.len()).unwrap();
                        break;
                    };
                    line.push(' ');
                    show(&mut line, value, ",");
                    rest = behind;
                }
                lines.push(line);
            }
            other => panic!("the broker writes frames: {other:?}"),
        }
    }
    lines
}

fn show(out: &mut String, value: Value<'_>, between: &str) {
    match value {
        Value::Described(described) => {
            let Descriptor::Code(code) = described.descriptor else { panic!("{described:?}") };
            let known = LISTS.iter().find(|(known, _, _)| *known == code);
            let (_, name, fields) = known.unwrap_or_else(|| panic!("{code:#x}"));
            match described.value() {
                Value::List(list) => {
                    let fields = fields.split_whitespace().zip(list.iter());
                    let mut shown = Vec::new();
                    for (field, value) in fields.filter(|(_, value)| *value != Value::Null) {
                        let mut text = format!("{field}=");
                        show(&mut text, value, ",");
                        shown.push(text);
                    }
                    match between {
                        " " => out.push_str(format!("{name} {}", shown.join(" ")).trim_end()),
                        _ => write!(out, "{name}{{{}}}", shown.join(",")).unwrap(),
                    }
                }
                Value::Binary(body) if body.len() > 60 => write!(out, "bytes:{}", body.len()).unwrap(),
                Value::Binary(body) => out.push_str(&String::from_utf8_lossy(body)),
                other => show(out, other, ","),
            }
        }
        Value::Bool(value) => write!(out, "{value}").unwrap(),
        Value::Ubyte(number) => write!(out, "{number}b").unwrap(),
        Value::Byte(number) => write!(out, "{number}y").unwrap(),
        Value::Ushort(number) => write!(out, "{number}s").unwrap(),
        Value::Uint(number) => write!(out, "{number}").unwrap(),
        Value::Ulong(number) => write!(out, "{number}l").unwrap(),
        Value::Timestamp(Timestamp(ms)) => write!(out, "{ms}t").unwrap(),
        Value::String(text) if text.contains(' ') => write!(out, "\"{text}\"").unwrap(),
        Value::String(text) => out.push_str(text),
        Value::Symbol(Symbol(text)) => write!(out, ":{text}").unwrap(),
        Value::Binary(bytes) => {
            out.push('@');
            bytes.iter().for_each(|byte| write!(out, "{byte:02x}").unwrap());
        }
        Value::Array(array) => {
            let shown: Vec<String> = array.iter().map(shown).collect();
            write!(out, "[{}]", shown.join(",")).unwrap();
        }
        Value::Map(map) => {
            let pairs: Vec<String> =
                map.iter().map(|(key, value)| format!("{}={}", shown(key), shown(value))).collect();
            write!(out, "({})", pairs.join(",")).unwrap();
        }
        other => write!(out, "{other:?}").unwrap(),
    }
}

fn shown(value: Value<'_>) -> String {
    let mut text = String::new();
    show(&mut text, value, ",");
    text
}
