//! The interface between scenarios and protocols: log in, subscribe, write and read messages.
//!
//! A driver is one file and is shared by all connections; a [`Reader`] belongs to one of them. A
//! driver knows neither the scenario nor whether a delivery is the right one.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use crate::options::{AckMode, Depth, Level, ReplyKind};
use crate::protocol::template::{Correlation, MessageTemplate, RequestTemplate};
use crate::url::Url;

/// Encodes what a client sends in one protocol.
pub trait Driver: Debug + Sync {
    /// The name in reports: the protocol, or a broker's dialect of it.
    fn name(&self) -> &'static str;

    /// Creates the decoder of one connection.
    fn reader(&self) -> Box<dyn Reader>;

    /// Appends the login; the reader reports [`Heard::Confirmed`] when the broker has accepted it.
    fn log_in(&self, url: &Url, out: &mut Vec<u8>);

    /// Appends a subscription; with [`ConfirmMode::Each`] the reader reports [`Heard::Confirmed`]
    /// once it is active.
    fn subscribe(&self, destination: &Destination, terms: Terms, confirm: ConfirmMode, out: &mut Vec<u8>);

    /// Appends the set-up that publishing to a destination requires: its declaration, and with
    /// [`ConfirmMode::Each`] the request for confirms. Appends nothing if each message carries that
    /// itself; otherwise the reader reports [`Heard::Confirmed`].
    fn prepare(&self, _destination: &Destination, _confirm: ConfirmMode, _out: &mut Vec<u8>) {}

    /// The reply address of a requester.
    fn replies(&self, kind: ReplyKind, name: &str, requester: Correlation) -> Result<Replies>;

    /// The template of a request with a body of `size` bytes.
    fn request(
        &self,
        service: &Destination,
        replies: &Replies,
        size: usize,
        first: Correlation,
    ) -> RequestTemplate;

    /// The template of a message for a destination; the filler follows the stamp. With
    /// [`ConfirmMode::Each`] the reader reports the number of each confirmed message.
    fn message(&self, destination: &Destination, filler: &[u8], manner: Manner) -> MessageTemplate;

    /// Appends a reply with the body of the request; returns the offset of the body.
    fn reply(&self, request: &Delivery<'_>, out: &mut Vec<u8>) -> usize;

    /// Appends the acknowledgement of a delivery, and with [`AckMode::Client`] of all before it.
    fn acknowledge(&self, token: &[u8], mode: AckMode, out: &mut Vec<u8>);

    /// Refuses terms that the protocol lacks, instead of approximating them.
    fn check(&self, terms: Terms) -> Result<()>;

    /// Whether a confirm is numbered by the messages of its connection, rather than repeating a
    /// number that the message carried. Every message of the connection is confirmed then, once
    /// confirms are requested.
    fn confirms_by_count(&self) -> bool {
        false
    }

    /// Refuses confirms if the protocol has none.
    fn check_confirms(&self) -> Result<()> {
        Ok(())
    }

    /// Refuses queues if the protocol stores no messages.
    fn check_queues(&self) -> Result<()> {
        Ok(())
    }

    /// The arguments for declaring queues with this level and number of priorities; broker defaults
    /// are left out.
    fn declaration(&self, _level: Level, _priorities: Option<u8>) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Whether the peer answers requests itself, so that no responders are needed.
    fn answers_itself(&self) -> bool {
        false
    }

    /// Refuses a URL with parts that the protocol cannot use.
    fn check_url(&self, _url: &Url) -> Result<()> {
        Ok(())
    }

    /// Refuses calls that the protocol cannot make like this, instead of approximating them.
    fn check_calls(&self, _calls: CallTerms<'_>) -> Result<()> {
        Ok(())
    }
}

/// Decodes the bytes of one connection.
pub trait Reader: Debug + Send {
    /// Appends the login after [`Driver::log_in`], for a protocol whose encoder belongs to a connection.
    fn log_in(&mut self, _url: &Url, _out: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }

    /// Decodes the first item and returns it with its length; `None` if it is incomplete.
    ///
    /// The next call must then pass the same bytes again, with more appended. A reader that keeps
    /// bytes itself takes all of them at once, and returns later items with the length 0.
    fn take<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Option<(Heard<'a>, usize)>>;

    /// Name and version that the broker reported by the time the login was confirmed.
    fn server(&self) -> &str;

    /// Whether the broker announced that it refuses clients without TLS.
    fn wants_tls(&self) -> bool {
        false
    }

    /// Bytes of the largest body that the broker accepts, if it announced that at the login.
    fn body_bytes_max(&self) -> Option<usize> {
        None
    }

    /// Makes messages of this template wait for the peer's credit.
    fn feed(&mut self, _message: &mut MessageTemplate) {}

    /// The reply address of this connection, if the broker chose it.
    fn reply_address(&self) -> Option<&str> {
        None
    }

    /// Sets the requester that receives its replies here, and makes its requests wait for the peer's credit.
    fn serve(&mut self, _requester: Correlation, _request: &mut RequestTemplate) {}
}

/// One decoded item from the broker.
#[derive(Debug)]
pub enum Heard<'a> {
    /// A message.
    Delivery(Delivery<'a>),
    /// A confirm: of a message, or, with `None`, of another operation.
    Confirmed(Option<Confirmed>),
    /// A frame that the protocol requires an answer to, such as a ping; carries the answer to write.
    Ping(&'a [u8]),
    /// An error, in the broker's words.
    Error(String),
    /// A frame that does not matter to a scenario.
    Nothing,
}

/// A confirm of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confirmed {
    /// Number of the message; if confirms are counted, the number of messages before it on the connection.
    pub number: u32,
    /// The level of safety, if the broker reports one.
    pub level: Option<Level>,
}

/// A message in the read buffer; an absent field is empty.
#[derive(Debug, Default, Clone, Copy)]
pub struct Delivery<'a> {
    /// The correlation of the call.
    pub correlation: &'a [u8],
    /// The reply address.
    pub reply_to: &'a [u8],
    /// The token for its acknowledgement.
    pub ack: &'a [u8],
    /// Whether the broker marked it as redelivered.
    pub is_redelivered: bool,
    /// The message.
    pub body: &'a [u8],
}

/// A destination, independent of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// A queue that stores messages until a consumer has settled them.
    Queue(Queue),
    /// A subject whose subscribers each get each message.
    Topic(String),
    /// A name whose subscribers share the messages: one of them gets each.
    Service(String),
}

/// A queue and the arguments of its declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Name without a protocol's prefix.
    pub name: String,
    /// Names and values, in the form of header values.
    pub arguments: Vec<(String, String)>,
}

impl Queue {
    /// A queue that is declared without arguments.
    pub fn named(name: impl Into<String>) -> Queue {
        Queue { name: name.into(), arguments: Vec::new() }
    }
}

/// Properties common to all messages of a publisher.
#[derive(Debug, Default, Clone, Copy)]
pub struct Manner {
    /// Whether each message is confirmed.
    pub confirm: ConfirmMode,
    /// Whether messages must survive a restart of the broker.
    pub is_persistent: bool,
    /// Number of priorities that messages cycle through, if they have any.
    pub priorities: Option<u8>,
    /// Time to live of each message.
    pub expiration: Option<Duration>,
    /// Number of numeric properties in each message: see [`comparisons`].
    pub comparisons: u8,
}

/// The terms of a subscription.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// The mode of acknowledging deliveries.
    pub ack: AckMode,
    /// The most unacknowledged deliveries.
    pub prefetch: Option<u32>,
    /// Number of comparisons in the subscription's selector: see [`comparisons`].
    pub comparisons: u8,
}

/// Names and values of `count` properties; a selector requires `name >= value AND …`.
pub(crate) fn comparisons(count: u8) -> impl Iterator<Item = (String, i32)> {
    (1..=count).map(|number| (format!("c{number}"), i32::from(number)))
}

/// The way in which calls are made.
#[derive(Debug, Clone, Copy)]
pub struct CallTerms<'a> {
    /// Calls in flight per requester, if requested.
    pub depth: Option<Depth>,
    /// The kind of reply address.
    pub reply: ReplyKind,
    /// Name of the service, unless it is the default one.
    pub service: Option<&'a str>,
    /// Whether broken connections are re-opened.
    pub reconnects: bool,
    /// Calls of one requester, if the run is not bounded by time.
    pub calls: Option<u64>,
}

/// Whether the broker should confirm operations.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum ConfirmMode {
    /// No confirm.
    #[default]
    None,
    /// A confirm of each message.
    Each,
}

/// The reply address of one requester.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replies {
    /// The address carried by a request.
    pub address: String,
    /// The destination to subscribe to, if replies do not arrive by themselves.
    pub source: Option<Destination>,
}

/// Queue arguments in RabbitMQ's words, for this level and number of priorities.
pub(crate) fn declaration(level: Level, priorities: Option<u8>) -> Vec<(String, String)> {
    let mut arguments = Vec::new();
    // A durable queue has level `disk` by default, and RabbitMQ ignores the argument.
    if level == Level::Os {
        arguments.push(("x-level".to_owned(), level.name().to_owned()));
    }
    if let Some(priorities) = priorities {
        let highest = priorities.saturating_sub(1);
        arguments.push(("x-max-priority".to_owned(), highest.to_string()));
    }
    arguments
}

/// Refuses a selector, for protocols without selectors or without numeric properties.
pub(crate) fn check_no_selector(terms: Terms, protocol: &str) -> Result<()> {
    ensure!(
        terms.comparisons == 0,
        "{protocol} has no selectors of numbers; leave `--comparisons` out, or use `amqp10://`"
    );
    Ok(())
}

/// Refuses acknowledgement, credit and selectors, for protocols that lack all three.
pub(crate) fn check_no_terms(terms: Terms, protocol: &str) -> Result<()> {
    check_no_selector(terms, protocol)?;
    ensure!(terms.ack == AckMode::Auto, "{protocol} knows no acknowledgement; leave `--ack` out");
    ensure!(terms.prefetch.is_none(), "{protocol} knows no credit; leave `--prefetch` out");
    Ok(())
}

/// Refuses options that need a broker, for protocols between peers.
pub fn check_no_broker(calls: CallTerms<'_>, protocol: &str) -> Result<()> {
    ensure!(
        calls.reply == ReplyKind::TempQueue,
        "{protocol} answers on the connection that asked; leave `--reply` out"
    );
    ensure!(
        !calls.reconnects,
        "{protocol} numbers its calls by connection here, and a new one would not know them; leave `--reconnect` out"
    );
    if let Some(service) = calls.service {
        bail!("{protocol} has no broker that knows `{service}`; leave `--destination` out");
    }
    Ok(())
}

/// Formats untrusted bytes as one line of at most 500 characters.
pub fn text(bytes: &[u8]) -> String {
    let shown: String = String::from_utf8_lossy(bytes).trim().chars().take(500).collect();
    shown.replace(|c: char| c.is_control(), " ")
}

/// Decodes bytes that hold exactly one item, and passes it to `see`.
#[cfg(test)]
pub(crate) fn taken(driver: &dyn Driver, bytes: &[u8], see: impl FnOnce(&Heard<'_>)) {
    let mut reader = driver.reader();
    let (heard, used) = reader.take(bytes).unwrap().unwrap();
    assert_eq!(used, bytes.len(), "one thing and nothing else");
    see(&heard);
}
