//! The frames with which an AMQP 1.0 client logs in and attaches its links, all in one session.
//!
//! They are pipelined. A link's name encodes its purpose: the broker's attach repeats the name,
//! which tells the reader how to use the link and whether the attach is awaited.

use std::fmt;
use std::process;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

use imori_amqp10::codec::composites::{
    AnyTarget, Attach, Begin, Flow, Open, Performative, SaslFrame, SaslInit, Source, Target,
};
use imori_amqp10::codec::frame::{FrameKind, ProtocolHeader, push_frame};
use imori_amqp10::codec::map::MapBuf;
use imori_amqp10::codec::push::{push_descriptor, push_value};
use imori_amqp10::codec::restricted::{Role, SenderSettleMode};
use imori_amqp10::codec::symbols::Symbols;
use imori_amqp10::codec::value::{Descriptor, Symbol, Value};

use crate::options::AckMode;
use crate::protocol::driver::{Destination, Terms, comparisons};

/// The only channel used.
pub(super) const CHANNEL: u16 = 0;

/// The largest frame in bytes, in either direction.
pub(super) const FRAME_BYTES: u32 = 64 * 1024;

/// The most bytes of a body in one frame, which leaves room for the sections before it.
pub(super) const PART_BYTES: usize = FRAME_BYTES as usize - 1024;

/// Session window in transfers; more than any run has in flight.
pub(super) const WINDOW: u32 = i32::MAX as u32;

/// Default link credit, if no prefetch count is given.
const CREDIT: u32 = 2_000;

/// Stands for the address of a dynamic node, which the broker chooses.
pub(super) const DYNAMIC: &str = "";

/// Idle time-out announced to the broker, in milliseconds. It sends an empty frame in time, and our
/// answer to that keeps the connection alive in the other direction.
const IDLE_MS: u32 = 30_000;

/// Descriptor of the selector filter, from the AMQP capabilities registry.
const SELECTOR: u64 = 0x0000_468c_0000_0004;

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
pub(super) fn push_login(out: &mut Vec<u8>, user: &str, password: &str, vhost: &str) {
    let response = format!("\0{user}\0{password}");
    let init = SaslInit {
        mechanism: Symbol("PLAIN"),
        initial_response: Some(response.as_bytes()),
        ..SaslInit::default()
    };
    out.extend_from_slice(ProtocolHeader::Sasl.bytes());
    push_frame(out, FrameKind::Sasl, 0, |out| SaslFrame::Init(init).encode(out));
    out.extend_from_slice(ProtocolHeader::Amqp.bytes());
    let hostname = (vhost != "/").then(|| format!("vhost:{vhost}"));
    let container = format!("imori-bench-{}-{}", process::id(), CONNECTIONS.fetch_add(1, Ordering::Relaxed));
    let open = Open {
        container_id: &container,
        hostname: hostname.as_deref(),
        max_frame_size: FRAME_BYTES,
        idle_time_out: Some(IDLE_MS),
        ..Open::default()
    };
    push(out, &Performative::Open(open));
    let begin = Begin { incoming_window: WINDOW, outgoing_window: WINDOW, ..Begin::default() };
    push(out, &Performative::Begin(begin));
}

/// Appends a sending link; without a destination it is anonymous, and each message has an address.
pub(super) fn push_sender(out: &mut Vec<u8>, purpose: Purpose, destination: Option<&Destination>) {
    let capability = [Symbol(destination.map_or("queue", capability))];
    let target = Target {
        address: destination.map(address),
        capabilities: destination.map(|_| Symbols::Slice(&capability)),
        ..Target::default()
    };
    let attach = Attach {
        name: &purpose.to_string(),
        handle: purpose.handle(),
        role: Role::Sender,
        source: Some(Source::default()),
        target: Some(AnyTarget::Target(target)),
        initial_delivery_count: Some(0),
        ..Attach::default()
    };
    push(out, &Performative::Attach(attach));
}

/// Appends a receiving link and its first credit.
pub(super) fn push_receiver(out: &mut Vec<u8>, purpose: Purpose, destination: &Destination, terms: Terms) {
    let is_dynamic = address(destination) == DYNAMIC;
    let capability = [Symbol(if is_dynamic { "temporary-queue" } else { capability(destination) })];
    let compared: Vec<String> =
        comparisons(terms.comparisons).map(|(name, value)| format!("{name} >= {value}")).collect();
    let selector = compared.join(" AND ");
    let mut filter = MapBuf::new();
    filter.push_with(Value::Symbol(Symbol("jms-selector")), |out| {
        push_descriptor(out, Descriptor::Code(SELECTOR));
        push_value(out, Value::String(&selector));
    });
    let source = Source {
        filter: (!compared.is_empty()).then(|| filter.map()),
        address: (!is_dynamic).then(|| address(destination)),
        dynamic: is_dynamic,
        capabilities: Some(Symbols::Slice(&capability)),
        ..Source::default()
    };
    let attach = Attach {
        name: &purpose.to_string(),
        handle: purpose.handle(),
        role: Role::Receiver,
        snd_settle_mode: if terms.ack == AckMode::Auto {
            SenderSettleMode::Settled
        } else {
            SenderSettleMode::Unsettled
        },
        source: Some(source),
        target: Some(AnyTarget::Target(Target::default())),
        ..Attach::default()
    };
    push(out, &Performative::Attach(attach));
    if let Purpose::Consume { credit, .. } = purpose {
        push_credit(out, 0, purpose, None, credit);
    }
}

/// Appends credit for a link, relative to its delivery count, which is unknown before the broker's attach.
pub(super) fn push_credit(
    out: &mut Vec<u8>,
    next_incoming_id: u32,
    purpose: Purpose,
    delivered: Option<u32>,
    credit: u32,
) {
    let flow = Flow {
        next_incoming_id: Some(next_incoming_id),
        incoming_window: WINDOW,
        outgoing_window: WINDOW,
        handle: Some(purpose.handle()),
        delivery_count: delivered,
        link_credit: Some(credit),
        ..Flow::default()
    };
    push(out, &Performative::Flow(flow));
}

/// Appends a frame without a payload.
pub(super) fn push(out: &mut Vec<u8>, performative: &Performative<'_>) {
    push_frame(out, FrameKind::Amqp, CHANNEL, |out| performative.encode(out));
}

/// The link credit for a prefetch count.
pub(super) fn credit_of(prefetch: Option<u32>) -> u32 {
    prefetch.unwrap_or(CREDIT).clamp(1, WINDOW)
}

/// Number of transfers for a body of this size.
pub(super) fn frames_of(body_bytes: usize) -> usize {
    body_bytes.div_ceil(PART_BYTES).max(1)
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
