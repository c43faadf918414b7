//! A link: a one-way stream of messages within a session.

use std::collections::BTreeSet;

use imori_core::id::ReaderId;
use imori_core::name::Name;

use crate::address::Node;
use crate::codec::composites::Attach;
use crate::codec::restricted::{ReceiverSettleMode, Role, SenderSettleMode};

/// The descriptor of the outcome `rejected` in the outcomes of a source.
const REJECTED: &str = "amqp:rejected:list";

/// A link. Both ends use the client's handle.
#[derive(Debug)]
pub(crate) struct Link {
    /// The name of the link, by which a client can resume it.
    pub(crate) name: Box<str>,
    /// The node's address as told to the client; `None` if each message names its own node.
    pub(crate) address: Option<Box<str>>,
    /// The settle modes of both ends from `attach`.
    pub(crate) settles: (SenderSettleMode, ReceiverSettleMode),
    /// Whether the source supports the outcome `rejected`.
    pub(crate) rejected: Rejected,
    /// The temporary node of this connection that the link is attached to.
    pub(crate) temporary: Option<Name>,
    /// The broker's end of the link.
    pub(crate) end: End,
}

impl Link {
    /// Creates the link of an `attach`, to the node at `address`.
    pub(crate) fn new(attach: &Attach<'_>, address: Option<&str>, end: End) -> Link {
        let outcomes = attach.source.and_then(|source| source.outcomes);
        let rejected = match outcomes.map(|outcomes| outcomes.contains(REJECTED)) {
            Some(true) => Rejected::Listed,
            Some(false) => Rejected::Missing,
            None => Rejected::Unsaid,
        };
        Link {
            name: attach.name.into(),
            address: address.map(Into::into),
            settles: (attach.snd_settle_mode, attach.rcv_settle_mode),
            rejected,
            temporary: None,
            end,
        }
    }
}

/// Whether a source lists the outcome `rejected` (AMQP 1.0, 3.5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// The source lists it.
    Listed,
    /// The source lists only other outcomes.
    Missing,
    /// The source lists no outcomes.
    Unsaid,
}

/// The broker's end of a link.
#[derive(Debug)]
pub(crate) enum End {
    /// A source: the broker sends from a consumer of a queue.
    Source(SourceEnd),
    /// A target: the broker receives messages.
    Target(TargetEnd),
    /// The broker has detached the link. Its frames are ignored until the client has detached it
    /// too.
    Detached,
}

impl End {
    /// Returns the target, if this is one.
    #[inline]
    pub(crate) fn target(&self) -> Option<&TargetEnd> {
        match self {
            End::Target(end) => Some(end),
            End::Source(_) | End::Detached => None,
        }
    }

    /// Returns the client's role while the link is attached.
    pub(crate) fn role(&self) -> Option<Role> {
        match self {
            End::Source(_) => Some(Role::Receiver),
            End::Target(_) => Some(Role::Sender),
            End::Detached => None,
        }
    }
}

/// The broker's end of a link to a receiving client.
#[derive(Debug)]
pub(crate) struct SourceEnd {
    /// The consumer in the core.
    pub(crate) reader: ReaderId,
    /// The queue that ends with the link, and whether by detach or only by close.
    pub(crate) queue: Option<(Name, Until)>,
    /// The consumer has ended, but the client has not been told yet.
    pub(crate) is_ending: bool,
}

/// When a queue ends that belongs to one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// When the link is detached in any way.
    Detach,
    /// When the link is closed.
    Close,
}

/// The broker's end of a link from a sending client.
#[derive(Debug)]
pub(crate) struct TargetEnd {
    /// The receiver of the messages.
    pub(crate) to: Receiver,
    /// Deliveries started so far, counted from the client's initial count.
    pub(crate) delivery_count: u32,
    /// Deliveries that the client may still send.
    pub(crate) credit: u32,
    /// The message that has arrived only in part.
    pub(crate) unfinished: Option<Unfinished>,
    /// Ids of deliveries that the client settles last (AMQP 1.0, 2.6.12). Each uses credit of the
    /// link, which bounds their number.
    pub(crate) unsettled: BTreeSet<u32>,
}

/// The receiver of a link's messages.
#[derive(Debug, Clone)]
pub(crate) enum Receiver {
    /// A node.
    Node(Node),
    /// The node that each message names.
    Relay,
    /// The coordinator of transactions.
    Coordinator,
    /// The node `/management`, which creates and deletes other nodes.
    Management,
}

/// A message that has arrived only in part.
#[derive(Debug)]
pub(crate) struct Unfinished {
    /// The delivery id in the session.
    pub(crate) delivery_id: u32,
    /// Fields of the first transfer that later ones omit.
    pub(crate) begun: Box<Begun>,
    /// The message format in the first transfer.
    pub(crate) message_format: Option<u32>,
    /// The receiver settle mode in the first transfer.
    pub(crate) rcv_settle_mode: Option<ReceiverSettleMode>,
    /// Some transfer of the message was marked settled.
    pub(crate) settled: bool,
    /// The payload received so far.
    pub(crate) payload: Vec<u8>,
}

/// Fields of the first transfer that are needed after the last one has arrived.
#[derive(Debug)]
pub(crate) struct Begun {
    /// The delivery tag.
    pub(crate) delivery_tag: Box<[u8]>,
    /// The transaction of the message.
    pub(crate) transaction: Option<Box<[u8]>>,
}

impl Unfinished {
    /// Returns the memory of the payload in bytes, spare capacity included, for the connection's
    /// limit.
    pub(crate) fn held_bytes(&self) -> usize {
        self.payload.capacity()
    }

    /// Returns the memory after adding `more` bytes. Capacity grows by half, so a long message is
    /// copied only a few times, and never beyond the largest message.
    pub(crate) fn grown_bytes(&self, more: usize, message_bytes_max: usize) -> usize {
        let (needed, held) = (self.payload.len() + more, self.held_bytes());
        if needed <= held {
            return held;
        }
        needed.max((held + held / 2).min(message_bytes_max))
    }

    /// Appends a part of the payload.
    pub(crate) fn append(&mut self, part: &[u8], message_bytes_max: usize) {
        let spare = self.grown_bytes(part.len(), message_bytes_max) - self.payload.len();
        self.payload.reserve_exact(spare);
        self.payload.extend_from_slice(part);
    }
}
