//! The requests to a broker and its answers, in any protocol.

use std::time::{Duration, Instant};

use clap::ValueEnum;

use super::error::ClientError;

/// A connection that is logged in.
///
/// Requests may be gathered, and are sent at the latest when an answer is awaited.
pub(crate) trait Client {
    /// Sends a message.
    fn publish(&mut self, message: &Message<'_>) -> Result<(), ClientError>;

    /// Sends a message and waits until the broker has taken it.
    fn publish_confirmed(&mut self, message: &Message<'_>) -> Result<(), ClientError>;

    /// Asks for messages.
    fn subscribe(&mut self, subscription: &Subscription<'_>) -> Result<(), ClientError>;

    /// Sends a message whose reply comes to this connection. Where it waits in a queue it expires when nobody waits
    /// for the reply any more, unless its headers say when.
    fn request(&mut self, message: &Message<'_>, patience: Duration) -> Result<(), ClientError>;

    /// Answers a request, or says why there is no answer; one that wants none gets none.
    fn reply(&mut self, request: &Received, answer: &Result<Vec<u8>, String>) -> Result<(), ClientError>;

    /// Acknowledges a message.
    fn accept(&mut self, message: &Received) -> Result<(), ClientError>;

    /// Waits for the next message.
    fn receive(&mut self, deadline: Option<Instant>) -> Result<Received, ClientError>;

    /// Says good-bye and waits until the broker has seen everything.
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

/// A wish for messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subscription<'a> {
    /// A destination in STOMP and AMQP, a subject in NATS, with or without wildcards.
    pub(crate) source: &'a str,
    /// Whether each message goes to one only of those that share it, where the source does not say.
    pub(crate) is_shared: bool,
    pub(crate) ack: Ack,
    /// Further headers of the subscription.
    pub(crate) headers: &'a [Header],
}

/// A header as people write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// The header by which a message expires in a queue, in milliseconds; nothing where the headers say when.
pub(super) fn expiration(headers: &[Header], patience: Duration) -> Option<Header> {
    const NAME: &str = "expiration";
    let is_said = headers.iter().any(|header| header.name == NAME);
    // Brokers read 32 bits, which is 49 days. None expires at once: that is what 0 asks for.
    let milliseconds = patience.as_millis().clamp(1, u128::from(u32::MAX));
    (!is_said).then(|| Header { name: String::from(NAME), value: milliseconds.to_string() })
}

/// How messages are settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ack {
    Auto,
    Client,
    ClientIndividual,
}

/// A message that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Received {
    /// Names and values in the order in which they came.
    pub(crate) headers: Vec<(Vec<u8>, Vec<u8>)>,
    /// Where a reply to it goes, if one is waited for.
    pub(crate) reply_to: Option<Vec<u8>>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    /// The value of a header; of several the first, which is the one that counts.
    pub(crate) fn header(&self, name: &str) -> Option<&[u8]> {
        let header = self.headers.iter().find(|(other, _)| other == name.as_bytes());
        header.map(|(_, value)| value.as_slice())
    }
}
