//! The interface of all clients, whatever their protocol.

use std::str::FromStr;
use std::time::{Duration, Instant};

use clap::ValueEnum;

use super::error::ClientError;

/// A logged-in connection.
///
/// Requests may be buffered; they are sent at the latest when the client waits for an answer.
pub(crate) trait Client {
    /// Sends a message.
    fn publish(&mut self, message: &Message<'_>) -> Result<(), ClientError>;

    /// Sends a message and waits for the broker's confirm.
    fn publish_confirmed(&mut self, message: &Message<'_>) -> Result<(), ClientError>;

    /// Starts a subscription.
    fn subscribe(&mut self, subscription: &Subscription<'_>) -> Result<(), ClientError>;

    /// Sends a message with a reply address on this connection. In a queue the request expires
    /// after `patience`, when nothing waits for the reply any more, unless `headers` set an
    /// expiration.
    fn request(&mut self, message: &Message<'_>, patience: Duration) -> Result<(), ClientError>;

    /// Replies to a request, with an error if `answer` is one; does nothing if the request wants no
    /// reply.
    fn reply(&mut self, request: &Received, answer: &Result<Vec<u8>, String>) -> Result<(), ClientError>;

    /// Acknowledges a message, and under `Ack::Client` all before it.
    fn accept(&mut self, message: &Received) -> Result<(), ClientError>;

    /// Waits for the next message, until `deadline` if there is one.
    fn receive(&mut self, deadline: Option<Instant>) -> Result<Received, ClientError>;

    /// Logs off and waits until the broker has processed everything sent.
    fn disconnect(self: Box<Self>) -> Result<(), ClientError>;
}

/// A message to send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message<'a> {
    /// A destination in STOMP and AMQP, a subject in NATS.
    pub(crate) destination: &'a str,
    pub(crate) headers: &'a [Header],
    pub(crate) body: &'a [u8],
}

/// A subscription to start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subscription<'a> {
    /// A destination in STOMP and AMQP, a subject in NATS, with or without wildcards.
    pub(crate) source: &'a str,
    /// Whether each message goes to only one of the subscribers that share the source, if the
    /// source does not decide that by itself.
    pub(crate) is_shared: bool,
    pub(crate) ack: Ack,
    /// Further headers of the subscription.
    pub(crate) headers: &'a [Header],
}

/// A header given on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
}

/// The header that makes a message expire in its queue after `patience`; `None` if the headers
/// already have one.
pub(super) fn expiration(headers: &[Header], patience: Duration) -> Option<Header> {
    const NAME: &str = "expiration";
    let is_said = headers.iter().any(|header| header.name == NAME);
    // Brokers read 32 bits of milliseconds, 49 days. At least 1, as 0 would expire the message at
    // once.
    let milliseconds = patience.as_millis().clamp(1, u128::from(u32::MAX));
    (!is_said).then(|| Header { name: String::from(NAME), value: milliseconds.to_string() })
}

/// The value of a header that becomes a numeric property.
pub(super) fn number<N: FromStr>(name: &str, value: &str) -> Result<N, ClientError> {
    value.parse().map_err(|_| {
        ClientError::Unspeakable(format!(
            "`{value}` is no number for the property `{name}`; correct `--header`"
        ))
    })
}

/// The acknowledgement mode of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ack {
    Auto,
    Client,
    ClientIndividual,
}

/// A received message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Names and values, in the order of arrival.
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
    /// The address for a reply, if the sender waits for one.
    pub reply_to: Option<Vec<u8>>,
    /// The body.
    pub body: Vec<u8>,
}

impl Received {
    /// The value of a header; the first one counts if it is repeated.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        let header = self.headers.iter().find(|(other, _)| other == name.as_bytes());
        header.map(|(_, value)| value.as_slice())
    }

    /// The value of a header that is a number.
    pub(super) fn number<N: FromStr>(&self, name: &str) -> Option<N> {
        str::from_utf8(self.header(name)?).ok()?.parse().ok()
    }
}
