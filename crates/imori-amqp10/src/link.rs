//! A link: one way for messages within a session.

use std::collections::BTreeSet;

use imori_core::id::ReaderId;
use imori_core::name::Name;

use crate::address::Node;
use crate::codec::composites::Attach;
use crate::codec::restricted::{ReceiverSettleMode, Role, SenderSettleMode};

/// The descriptor of the outcome rejected, by which a source lists it.
const REJECTED: &str = "amqp:rejected:list";

/// A link. The broker's end has the client's handle too.
#[derive(Debug)]
pub(crate) struct Link {
    /// Its name, by which the client finds it again.
    pub(crate) name: Box<str>,
    /// The node as the client is told it; `None` where each message names its own.
    pub(crate) address: Option<Box<str>>,
    /// The settlement that its attach asks of both ends.
    pub(crate) settles: (SenderSettleMode, ReceiverSettleMode),
    /// The place of the outcome rejected among those of its source.
    pub(crate) rejected: Rejected,
    /// The temporary node of its connection that it is to.
    pub(crate) temporary: Option<Name>,
    /// The end that the broker has.
    pub(crate) end: End,
}

impl Link {
    /// The link of an attach, to a node of this address.
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

/// The place of the outcome rejected among those that a source lists (AMQP 1.0, 3.5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// The source has it.
    Listed,
    /// The source has others alone.
    Missing,
    /// The source lists none.
    Unsaid,
}

/// The broker's end of a link.
#[derive(Debug)]
pub(crate) enum End {
    /// Messages come from here: a consumer of a queue.
    Source(SourceEnd),
    /// Messages go to here.
    Target(TargetEnd),
    /// The broker has detached it. Frames of it do not count until the client has detached it too.
    Detached,
}

impl End {
    /// The producer, if it is one.
    #[inline]
    pub(crate) fn target(&self) -> Option<&TargetEnd> {
        match self {
            End::Target(end) => Some(end),
            End::Source(_) | End::Detached => None,
        }
    }

    /// The role of the client, as long as the link is attached.
    pub(crate) fn role(&self) -> Option<Role> {
        match self {
            End::Source(_) => Some(Role::Receiver),
            End::Target(_) => Some(Role::Sender),
            End::Detached => None,
        }
    }
}

/// A consumer.
#[derive(Debug)]
pub(crate) struct SourceEnd {
    /// The core's consumer.
    pub(crate) reader: ReaderId,
    /// The queue that ends with the link: when it is detached, or when it is closed.
    pub(crate) queue: Option<(Name, Until)>,
    /// Its reader has ended, and the client is yet to be told.
    pub(crate) is_ending: bool,
}

/// The end of a queue that is its link's alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// The link is detached, however that is done.
    Detach,
    /// The link is closed.
    Close,
}

/// A producer.
#[derive(Debug)]
pub(crate) struct TargetEnd {
    /// The node or the coordinator that messages are for.
    pub(crate) to: Receiver,
    /// Deliveries that have begun, from the client's first number on.
    pub(crate) delivery_count: u32,
    /// Deliveries that the client may send.
    pub(crate) credit: u32,
    /// The message of which not all transfers have come.
    pub(crate) unfinished: Option<Unfinished>,
    /// Deliveries that the client settles last, by their ids (AMQP 1.0, 2.6.12). Each takes one of the link's credit, so
    /// that they are no more than that.
    pub(crate) unsettled: BTreeSet<u32>,
}

/// The receiver of a producer's messages.
#[derive(Debug, Clone)]
pub(crate) enum Receiver {
    /// A node.
    Node(Node),
    /// Whatever node each message names.
    Relay,
    /// The coordinator of transactions.
    Coordinator,
    /// The node by which others are made and deleted.
    Management,
}

/// A message of which not all transfers have come.
#[derive(Debug)]
pub(crate) struct Unfinished {
    /// The delivery's number in the session, as the client wrote it.
    pub(crate) delivery_id: u32,
    /// Parts of its first transfer that later ones leave out.
    pub(crate) begun: Box<Begun>,
    /// The format that its first transfer names.
    pub(crate) message_format: Option<u32>,
    /// The settlement by the broker that its first transfer asks for.
    pub(crate) rcv_settle_mode: Option<ReceiverSettleMode>,
    /// Some transfer of it said that it is settled.
    pub(crate) settled: bool,
    /// The bytes that have come.
    pub(crate) payload: Vec<u8>,
}

/// Bytes of the first transfer of a message that are needed once the last one has come.
#[derive(Debug)]
pub(crate) struct Begun {
    /// The delivery's name on the link.
    pub(crate) delivery_tag: Box<[u8]>,
    /// The transaction that the message is part of.
    pub(crate) transaction: Option<Box<[u8]>>,
}

impl Unfinished {
    /// Bytes of memory that its parts hold, which the connection is charged with: spare capacity counts.
    pub(crate) fn held_bytes(&self) -> usize {
        self.payload.capacity()
    }

    /// Bytes that it will hold with `more` bytes behind those that have come. Capacity grows by half, so that a long
    /// message is copied a few times only, and never beyond the longest message.
    pub(crate) fn grown_bytes(&self, more: usize, message_bytes_max: usize) -> usize {
        let (needed, held) = (self.payload.len() + more, self.held_bytes());
        if needed <= held {
            return held;
        }
        needed.max((held + held / 2).min(message_bytes_max))
    }

    /// Adds a part.
    pub(crate) fn append(&mut self, part: &[u8], message_bytes_max: usize) {
        let spare = self.grown_bytes(part.len(), message_bytes_max) - self.payload.len();
        self.payload.reserve_exact(spare);
        self.payload.extend_from_slice(part);
    }
}
