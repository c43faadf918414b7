//! Encodes the operations of a client, and of a server.
//!
//! Subjects, groups and sids must not contain white space; the caller has checked that.

use serde::Serialize;

use crate::codec::connect::ConnectOptions;
use crate::codec::info::Info;
use crate::codec::number::push_u64;
use crate::codec::operation::{Message, Publish, Subscribe, Unsubscribe};

/// PING, from either end.
pub const PING: &[u8] = b"PING\r\n";
/// PONG, from either end.
pub const PONG: &[u8] = b"PONG\r\n";
/// The answer to an operation of a verbose client.
pub const OK: &[u8] = b"+OK\r\n";

/// Appends a CONNECT.
pub fn push_connect(out: &mut Vec<u8>, options: &ConnectOptions) {
    push_json(out, b"CONNECT ", options);
    out.extend_from_slice(b"\r\n");
}

/// Appends an INFO.
pub fn push_info(out: &mut Vec<u8>, info: &Info) {
    push_json(out, b"INFO ", info);
    // Some clients look for the blank before the line end.
    out.extend_from_slice(b" \r\n");
}

/// Appends a PUB, or an HPUB if there are headers.
#[inline]
pub fn push_publish(out: &mut Vec<u8>, publish: &Publish<'_>) {
    out.extend_from_slice(if publish.headers.is_some() { b"HPUB " } else { b"PUB " });
    push_field(out, publish.subject);
    push_message_end(out, publish.reply, publish.headers, publish.payload);
}

/// Appends a SUB.
pub fn push_subscribe(out: &mut Vec<u8>, subscribe: &Subscribe<'_>) {
    out.extend_from_slice(b"SUB ");
    push_field(out, subscribe.subject);
    if let Some(group) = subscribe.group {
        push_field(out, group);
    }
    out.extend_from_slice(subscribe.sid);
    out.extend_from_slice(b"\r\n");
}

/// Appends an UNSUB.
pub fn push_unsubscribe(out: &mut Vec<u8>, unsubscribe: &Unsubscribe<'_>) {
    out.extend_from_slice(b"UNSUB ");
    out.extend_from_slice(unsubscribe.sid);
    if let Some(max) = unsubscribe.max {
        out.push(b' ');
        push_u64(out, max as u64);
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends a MSG, or an HMSG if there are headers.
#[inline]
pub fn push_message(out: &mut Vec<u8>, message: &Message<'_>) {
    out.extend_from_slice(if message.headers.is_some() { b"HMSG " } else { b"MSG " });
    push_field(out, message.subject);
    push_field(out, message.sid);
    push_message_end(out, message.reply, message.headers, message.payload);
}

/// Appends a -ERR. Control characters become blanks, so `text` cannot end the line.
pub fn push_error(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(b"-ERR '");
    out.extend(text.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte }));
    out.extend_from_slice(b"'\r\n");
}

#[inline]
fn push_field(out: &mut Vec<u8>, field: &[u8]) {
    out.extend_from_slice(field);
    out.push(b' ');
}

#[inline]
fn push_message_end(out: &mut Vec<u8>, reply: Option<&[u8]>, headers: Option<&[u8]>, payload: &[u8]) {
    if let Some(reply) = reply {
        push_field(out, reply);
    }
    let headers_len = headers.map_or(0, <[u8]>::len);
    if headers.is_some() {
        push_u64(out, headers_len as u64);
        out.push(b' ');
    }
    push_u64(out, (headers_len + payload.len()) as u64);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(headers.unwrap_or_default());
    out.extend_from_slice(payload);
    out.extend_from_slice(b"\r\n");
}

fn push_json(out: &mut Vec<u8>, name: &[u8], value: &impl Serialize) {
    out.extend_from_slice(name);
    let text = serde_json::to_vec(value).expect("it has string keys only, and no number that is not one");
    out.extend_from_slice(&text);
}
