//! Parses addresses of sources and targets into nodes.
//!
//! RabbitMQ 4's forms start with a slash and are percent-encoded; all other addresses are plain
//! names.

use std::borrow::Cow;

use imori_core::message::{DEFAULT_EXCHANGE, TOPIC_EXCHANGE};
use imori_core::name::Name;

use crate::codec::condition;
use crate::limits::NAME_BYTES_MAX;
use crate::protocol_error::ProtocolError;

/// The node that an address stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// `/queues/NAME`, `queue://NAME` or just `NAME`.
    Queue(Name),
    /// `topic://PATTERN`, or `PATTERN` if the terminus declares itself a topic.
    Topic(Name),
    /// `/exchanges/NAME/KEY` or `/exchanges/NAME`.
    Exchange {
        /// The exchange.
        exchange: Name,
        /// The key; empty if there is none.
        key: Name,
    },
}

impl Node {
    /// Parses an address. `is_topic` decides whether a plain name is a topic or a queue.
    ///
    /// # Errors
    /// `amqp:invalid-field`.
    pub fn parse(address: &str, is_topic: bool) -> Result<Node, ProtocolError> {
        if let Some(rest) = address.strip_prefix("/queues/") {
            return Ok(Node::Queue(decoded(address, rest)?));
        }
        if let Some(rest) = address.strip_prefix("/exchanges/") {
            let (exchange, key) = rest.split_once('/').unwrap_or((rest, ""));
            let key = if key.is_empty() { Name::new(b"") } else { decoded(address, key)? };
            return Ok(Node::Exchange { exchange: decoded(address, exchange)?, key });
        }
        if let Some(name) = address.strip_prefix("topic://").or_else(|| address.strip_prefix("temp-topic://"))
        {
            return Ok(Node::Topic(plain(address, name)?));
        }
        if let Some(name) = address.strip_prefix("queue://").or_else(|| address.strip_prefix("temp-queue://"))
        {
            return Ok(Node::Queue(plain(address, name)?));
        }
        let name = plain(address, address)?;
        Ok(if is_topic { Node::Topic(name) } else { Node::Queue(name) })
    }

    /// Returns the exchange and the subject that messages to the node are published with.
    pub fn address(&self) -> (&[u8], &[u8]) {
        match self {
            Node::Queue(name) => (DEFAULT_EXCHANGE, name.as_bytes()),
            Node::Topic(subject) => (TOPIC_EXCHANGE, subject.as_bytes()),
            Node::Exchange { exchange, key } => (exchange.as_bytes(), key.as_bytes()),
        }
    }
}

fn plain(address: &str, name: &str) -> Result<Name, ProtocolError> {
    check(address, name.as_bytes())
}

/// Decodes one part of an address, where `%2F` and `%25` stand for a slash and a percent sign.
fn decoded(address: &str, part: &str) -> Result<Name, ProtocolError> {
    let mut name = Cow::Borrowed(part.as_bytes());
    if part.contains('%') {
        let mut bytes = Vec::with_capacity(part.len());
        let mut rest = part.as_bytes();
        while let [first, behind @ ..] = rest {
            let (byte, next) = match (first, behind) {
                (b'%', [high, low, next @ ..]) => {
                    let digit = |byte: &u8| (*byte as char).to_digit(16);
                    let byte = digit(high).zip(digit(low)).map(|(high, low)| (high * 16 + low) as u8);
                    (byte.ok_or_else(|| bad_escape(address))?, next)
                }
                (b'%', _) => return Err(bad_escape(address)),
                (byte, next) => (*byte, next),
            };
            bytes.push(byte);
            rest = next;
        }
        name = Cow::Owned(bytes);
    } else if part.contains('/') {
        let text =
            format_args!("address `{}` has a slash in a name; write it as `%2F`", address.escape_debug());
        return Err(ProtocolError::new(condition::INVALID_FIELD, text));
    }
    check(address, &name)
}

#[cold]
fn bad_escape(address: &str) -> ProtocolError {
    let text = format_args!(
        "address `{}` has a percent sign without two hexadecimal digits; write it as `%25`",
        address.escape_debug()
    );
    ProtocolError::new(condition::INVALID_FIELD, text)
}

fn check(address: &str, name: &[u8]) -> Result<Name, ProtocolError> {
    match name.len() {
        0 => {
            let text = format_args!(
                "address `{}` has no name; write one such as `/queues/orders`",
                address.escape_debug()
            );
            Err(ProtocolError::new(condition::INVALID_FIELD, text))
        }
        1..=NAME_BYTES_MAX => Ok(Name::new(name)),
        len => {
            let text =
                format_args!("the name in an address has {len} bytes; use one of at most {NAME_BYTES_MAX}");
            Err(ProtocolError::new(condition::INVALID_FIELD, text))
        }
    }
}
