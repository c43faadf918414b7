//! The frames with which an AMQP 1.0 client logs in and attaches its links, all in one session.
//!
//! They are pipelined. A link's name encodes its purpose: the broker's attach repeats the name,
//! which tells the reader how to use the link and whether the attach is awaited.

use std::fmt;
use std::process;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

use imori_amqp10::codec::composites::Target;
use imori_amqp10::codec::symbols::Symbols;
use imori_amqp10::codec::value::Symbol;
use imori_client::amqp10::{self, Credit, Login, Receiver, WINDOW};

use crate::options::AckMode;
use crate::protocol::driver::{Destination, Terms, comparisons};
use crate::url::Url;

/// The only channel used.
pub(super) const CHANNEL: u16 = 0;

/// The largest frame in bytes, in either direction.
pub(super) const FRAME_BYTES: u32 = 64 * 1024;

/// The most bytes of a message in one frame, which leaves room for the largest transfer.
pub(super) const PART_BYTES: usize = FRAME_BYTES as usize - 1024;

/// Default link credit, if no prefetch count is given.
const CREDIT: u32 = 2_000;

/// Stands for the address of a dynamic node, which the broker chooses.
pub(super) const DYNAMIC: &str = "";

/// Idle time-out announced to the broker, in milliseconds. It sends an empty frame in time, and our
/// answer to that keeps the connection alive in the other direction.
const IDLE_MS: u32 = 30_000;

/// Connections opened so far, because each needs a container id of its own.
static CONNECTIONS: AtomicU32 = AtomicU32::new(0);

/// The purpose of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Sends messages to a destination.
    Publish,
    /// Receives messages; the credit is replenished up to this.
    Consume {
        credit: u32,
        /// Whether the attach is awaited.
        is_awaited: bool,
    },
    /// Receives requests, as many as there is credit for replies.
    Serve,
    /// Sends replies, each to its own address.
    Reply,
}

impl Purpose {
    /// The handle of the link in our frames.
    pub(super) fn handle(self) -> u32 {
        match self {
            Purpose::Publish => 0,
            Purpose::Consume { .. } | Purpose::Serve => 1,
            Purpose::Reply => 2,
        }
    }
}

/// Formats the purpose as a link name.
impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Purpose::Publish => f.write_str("publish"),
            Purpose::Consume { credit, is_awaited: true } => write!(f, "consume-{credit}"),
            Purpose::Consume { credit, is_awaited: false } => write!(f, "later-{credit}"),
            Purpose::Serve => f.write_str("serve"),
            Purpose::Reply => f.write_str("reply"),
        }
    }
}

impl FromStr for Purpose {
    type Err = ();

    fn from_str(name: &str) -> Result<Purpose, ()> {
        let (word, number) = name.split_once('-').unwrap_or((name, "0"));
        let credit = number.parse().map_err(|_| ())?;
        match word {
            "publish" => Ok(Purpose::Publish),
            "consume" => Ok(Purpose::Consume { credit, is_awaited: true }),
            "later" => Ok(Purpose::Consume { credit, is_awaited: false }),
            "serve" => Ok(Purpose::Serve),
            "reply" => Ok(Purpose::Reply),
            _ => Err(()),
        }
    }
}

/// Appends everything from the first header to the beginning of the session.
pub(super) fn push_login(out: &mut Vec<u8>, url: &Url) {
    let container = format!("imori-bench-{}-{}", process::id(), CONNECTIONS.fetch_add(1, Ordering::Relaxed));
    let login = Login {
        container: &container,
        user: url.user(),
        host: None,
        vhost: &url.vhost,
        frame_max: FRAME_BYTES,
        channel_max: u16::MAX,
        silence_ms: Some(IDLE_MS),
    };
    amqp10::push_login(out, &login);
    amqp10::push_begin(out, CHANNEL);
}

/// Appends a sending link; without a destination it is anonymous, and each message has an address.
pub(super) fn push_sender(out: &mut Vec<u8>, purpose: Purpose, destination: Option<&Destination>) {
    let target = Target {
        address: destination.map(address),
        capabilities: destination.map(|destination| Symbols::One(Symbol(capability(destination)))),
        ..Target::default()
    };
    amqp10::push_sender(out, CHANNEL, &purpose.to_string(), purpose.handle(), target);
}

/// Appends a receiving link and its first credit.
pub(super) fn push_receiver(out: &mut Vec<u8>, purpose: Purpose, destination: &Destination, terms: Terms) {
    let compared: Vec<String> =
        comparisons(terms.comparisons).map(|(name, value)| format!("{name} >= {value}")).collect();
    let selector = compared.join(" AND ");
    let receiver = Receiver {
        name: &purpose.to_string(),
        handle: purpose.handle(),
        address: Some(address(destination)).filter(|address| *address != DYNAMIC),
        capability: Some(capability(destination)),
        selector: (!compared.is_empty()).then_some(&selector),
        is_settled: terms.ack == AckMode::Auto,
        is_durable: false,
    };
    amqp10::push_receiver(out, CHANNEL, &receiver);
    if let Purpose::Consume { credit, .. } = purpose {
        Credit::default().grant(out, CHANNEL, (purpose.handle(), false), 0, credit);
    }
}

/// The link credit for a prefetch count.
pub(super) fn credit_of(prefetch: Option<u32>) -> u32 {
    prefetch.unwrap_or(CREDIT).clamp(1, WINDOW)
}

/// Number of transfers for a message of this size.
pub(super) fn frames_of(message_bytes: usize) -> usize {
    message_bytes.div_ceil(PART_BYTES)
}

/// Name of a destination; its kind is given by a capability.
pub(super) fn address(destination: &Destination) -> &str {
    match destination {
        Destination::Queue(queue) => &queue.name,
        Destination::Service(name) | Destination::Topic(name) => name,
    }
}

fn capability(destination: &Destination) -> &'static str {
    match destination {
        Destination::Queue(_) | Destination::Service(_) => "queue",
        Destination::Topic(_) => "topic",
    }
}
