//! The interface of a protocol to scenarios: log in, subscribe, write and read messages.
//!
//! A driver is one file and is shared by all connections; a reader belongs to one of them. Which
//! scenario it is, and whether what came is right, a driver does not know.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use crate::options::{AckMode, Depth, Level, ReplyKind};
use crate::protocol::template::{Correlation, MessageTemplate, RequestTemplate};
use crate::url::Url;

/// How a protocol says things.
pub trait Driver: Debug + Sync {
    /// The name in reports: the protocol, or a broker's dialect of it.
    fn name(&self) -> &'static str;

    /// Takes one connection's bytes apart.
    fn reader(&self) -> Box<dyn Reader>;

    /// Appends what logs in; it is heard as confirmed.
    fn log_in(&self, url: &Url, out: &mut Vec<u8>);

    /// Appends a subscription; with [`ConfirmMode::Each`] it is heard as confirmed once it stands.
    fn subscribe(&self, destination: &Destination, terms: Terms, confirm: ConfirmMode, out: &mut Vec<u8>);

    /// Appends what has to stand before messages go to a destination: its declaration, and with [`ConfirmMode::Each`]
    /// the wish for confirms. Nothing where each message says that itself; else it is heard as confirmed.
    fn prepare(&self, _destination: &Destination, _confirm: ConfirmMode, _out: &mut Vec<u8>) {}

    /// Where the replies to a requester go.
    fn replies(&self, kind: ReplyKind, name: &str, requester: Correlation) -> Result<Replies>;

    /// A request with a body of `size` bytes.
    fn request(
        &self,
        service: &Destination,
        replies: &Replies,
        size: usize,
        first: Correlation,
    ) -> RequestTemplate;

    /// A message for a destination; the filler follows the stamp. With [`ConfirmMode::Each`] it is heard as confirmed by
    /// its number.
    fn message(&self, destination: &Destination, filler: &[u8], manner: Manner) -> MessageTemplate;

    /// Appends a reply that has the body of the request, and says where that begins.
    fn reply(&self, request: &Delivery<'_>, out: &mut Vec<u8>) -> usize;

    /// Appends what acknowledges a delivery, or with [`AckMode::Client`] all until it.
    fn acknowledge(&self, token: &[u8], mode: AckMode, out: &mut Vec<u8>);

    /// Refuses terms that the protocol has not, rather than do something near.
    fn check(&self, terms: Terms) -> Result<()>;

    /// Whether a confirm counts the messages of its connection, rather than to repeat a number that the message had. All
    /// messages are confirmed then, once one asks for it.
    fn confirms_by_count(&self) -> bool {
        false
    }

    /// Refuses to ask for confirms where the protocol has none.
    fn check_confirms(&self) -> Result<()>;

    /// Refuses queues where the protocol keeps no messages.
    fn check_queues(&self) -> Result<()>;

    /// The arguments with which queues are declared that keep messages at this level, of so many
    /// priorities; what is so anyway is not said.
    fn declaration(&self, _level: Level, _priorities: Option<u8>) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Whether the other side answers requests itself, so that responders have nowhere to be.
    fn answers_itself(&self) -> bool {
        false
    }

    /// Refuses a URL that names what the protocol has no place for.
    fn check_url(&self, _url: &Url) -> Result<()> {
        Ok(())
    }

    /// Refuses calls that the protocol cannot make in this way, rather than do something near.
    fn check_calls(&self, _calls: CallTerms<'_>) -> Result<()> {
        Ok(())
    }
}

/// Takes one connection's bytes apart.
pub trait Reader: Debug + Send {
    /// Takes what the bytes begin with and says how many it used; none if it is not complete.
    ///
    /// After that the bytes must begin in the same way, with more of them.
    fn take<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Option<(Heard<'a>, usize)>>;

    /// Name and version of the broker, as it gave them when the login was confirmed.
    fn server(&self) -> &str;

    /// Whether the broker refuses clients without TLS, as it said itself.
    fn wants_tls(&self) -> bool {
        false
    }

    /// Bytes of the largest body that the broker takes, if it said so at the login.
    fn body_bytes_max(&self) -> Option<usize> {
        None
    }

    /// Holds what is published here to what the other side takes.
    fn feed(&mut self, _message: &mut MessageTemplate) {}

    /// Where replies go that come here, if the broker chose that.
    fn reply_address(&self) -> Option<&str> {
        None
    }

    /// Learns whose replies come here; a request of that requester is held to what the other side takes.
    fn serve(&mut self, _requester: Correlation, _request: &mut RequestTemplate) {}
}

/// One thing that a broker said.
#[derive(Debug)]
pub enum Heard<'a> {
    /// A message.
    Delivery(Delivery<'a>),
    /// A confirm; of a message it says which one.
    Confirmed(Option<Confirmed>),
    /// A question that the protocol wants answered, such as a ping, with the answer to write.
    Ping(&'a [u8]),
    /// A refusal, in the broker's words.
    Error(String),
    /// Nothing that matters here.
    Nothing,
}

/// A message that the broker has taken responsibility for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confirmed {
    /// Its number; where confirms count, how many messages its connection had before it.
    pub number: u32,
    /// How safe it is, if the broker says so.
    pub level: Option<Level>,
}

/// A message in the buffer it was read into; what is absent is empty.
#[derive(Debug, Default, Clone, Copy)]
pub struct Delivery<'a> {
    /// Which call it belongs to.
    pub correlation: &'a [u8],
    /// Where replies to it go.
    pub reply_to: &'a [u8],
    /// The token that acknowledges it.
    pub ack: &'a [u8],
    /// Whether the broker says that it may have been delivered before.
    pub is_redelivered: bool,
    /// The message.
    pub body: &'a [u8],
}

/// Where messages go, before a protocol gives it a name of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// Keeps messages until a consumer has settled them.
    Queue(Queue),
    /// Each subscriber gets each message.
    Topic(String),
    /// One of the subscribers gets each message.
    Service(String),
}

/// A queue, and how it is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Its name, without the prefix of a protocol.
    pub name: String,
    /// Names and values, each such as a header takes.
    pub arguments: Vec<(String, String)>,
}

impl Queue {
    /// A queue as it is declared when nothing is said.
    pub fn named(name: impl Into<String>) -> Queue {
        Queue { name: name.into(), arguments: Vec::new() }
    }
}

/// The properties that all messages of a publisher share.
#[derive(Debug, Default, Clone, Copy)]
pub struct Manner {
    /// Whether each is to be confirmed.
    pub confirm: ConfirmMode,
    /// Whether it is to outlive the broker.
    pub is_persistent: bool,
    /// How many priorities they have in turns, if they have any.
    pub priorities: Option<u8>,
    /// How long each may live.
    pub expiration: Option<Duration>,
    /// Numeric properties of each: see [`comparisons`].
    pub comparisons: u8,
}

/// How a subscription is served.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// How deliveries are acknowledged.
    pub ack: AckMode,
    /// How many may be unacknowledged.
    pub prefetch: Option<u32>,
    /// Comparisons of the subscription's selector: see [`comparisons`].
    pub comparisons: u8,
}

/// Names and values of so many properties, of which a selector says `name >= value AND …`.
pub(crate) fn comparisons(count: u8) -> impl Iterator<Item = (String, i32)> {
    (1..=count).map(|number| (format!("c{number}"), i32::from(number)))
}

/// How calls are made.
#[derive(Debug, Clone, Copy)]
pub struct CallTerms<'a> {
    /// Calls in flight for each requester, if that was asked for.
    pub depth: Option<Depth>,
    /// Where replies go.
    pub reply: ReplyKind,
    /// The name of the service, if it is not the one that is taken by default.
    pub service: Option<&'a str>,
    /// Whether broken connections are opened again.
    pub reconnects: bool,
    /// Calls of one requester, if the run is not bounded by time.
    pub calls: Option<u64>,
}

/// Whether the broker is to say when it is done.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum ConfirmMode {
    /// No confirm.
    #[default]
    None,
    /// A confirm of each message.
    Each,
}

/// Where the replies to one requester go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replies {
    /// The address that a request carries.
    pub address: String,
    /// The destination to subscribe to for it.
    pub source: Option<Destination>,
}

/// The arguments of queues as RabbitMQ names them, for queues at a level that have so many priorities.
pub(crate) fn declaration(level: Level, priorities: Option<u8>) -> Vec<(String, String)> {
    let mut arguments = Vec::new();
    // A durable queue is at `disk` unless it is said, and RabbitMQ passes over the word.
    if level == Level::Os {
        arguments.push(("x-level".to_owned(), level.name().to_owned()));
    }
    if let Some(priorities) = priorities {
        let highest = priorities.saturating_sub(1);
        arguments.push(("x-max-priority".to_owned(), highest.to_string()));
    }
    arguments
}

/// Refuses a selector, for protocols that have none, or whose properties are no numbers.
pub(crate) fn check_no_selector(terms: Terms, protocol: &str) -> Result<()> {
    ensure!(
        terms.comparisons == 0,
        "{protocol} has no selectors of numbers; leave `--comparisons` out, or use `amqp10://`"
    );
    Ok(())
}

/// Refuses acknowledgement, credit and selectors, for protocols that have none of them.
pub(crate) fn check_no_terms(terms: Terms, protocol: &str) -> Result<()> {
    check_no_selector(terms, protocol)?;
    ensure!(terms.ack == AckMode::Auto, "{protocol} knows no acknowledgement; leave `--ack` out");
    ensure!(terms.prefetch.is_none(), "{protocol} knows no credit; leave `--prefetch` out");
    Ok(())
}

/// Refuses what only a broker has, for protocols that go from peer to peer.
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

/// Bytes from outside on one line.
pub fn text(bytes: &[u8]) -> String {
    let shown: String = String::from_utf8_lossy(bytes).trim().chars().take(500).collect();
    shown.replace(|c: char| c.is_control(), " ")
}

/// Shows the one thing that these bytes say.
#[cfg(test)]
pub(crate) fn taken(driver: &dyn Driver, bytes: &[u8], see: impl FnOnce(&Heard<'_>)) {
    let mut reader = driver.reader();
    let (heard, used) = reader.take(bytes).unwrap().unwrap();
    assert_eq!(used, bytes.len(), "one thing and nothing else");
    see(&heard);
}
