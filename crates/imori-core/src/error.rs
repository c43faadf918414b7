//! The errors of the broker's verbs.

use std::fmt;

use crate::arguments::Difference;
use crate::authorize::Refusal;
use crate::name::Name;
use crate::outbound::SessionId;
use crate::quota::QuotaReached;
use crate::room::Unavailable;
use crate::route::RouteError;

/// The reason why a command was refused. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrokerError {
    /// The identity lacks a right.
    Refused(Refusal),
    /// The routing table has no such exchange, refuses the pattern, or is full.
    Route(RouteError),
    /// The queue does not exist.
    NoQueue(Name),
    /// The queue is a stream, whose messages are not taken out.
    IsStream(Name),
    /// The configuration of the stream forbids that its messages are deleted.
    StreamKeeps(Name),
    /// The inbox does not exist, because its owner has gone.
    NoInbox,
    /// The queue is exclusive to another connection.
    Locked(Name),
    /// The queue has an exclusive consumer, or the new consumer is exclusive and the queue has
    /// others.
    ConsumedExclusively(Name),
    /// An exclusive consumer is not allowed on a queue with a single active consumer.
    SingleActive(Name),
    /// The exchange or queue should be deleted only if unused, but has bindings or consumers.
    InUse(Name),
    /// The queue should be deleted only if empty, but has messages.
    NotEmpty(Name),
    /// The queue exists with another value of a property.
    Inequivalent {
        /// The queue.
        name: Name,
        /// The property and both values.
        difference: Box<Difference>,
    },
    /// A queue of the message's route is full, and its policy is to refuse.
    QueueFull(Name),
    /// The address of a delayed message reaches no queue that could hold it until it is due.
    NotKept(Name),
    /// An operator's move would take a message to no queue; the subject is given.
    Nowhere(Name),
    /// An operator's move would take a message back to the queue it leaves.
    ToItself(Name),
    /// There is no unsettled delivery with this number.
    NoDelivery(u64),
    /// The connection has no open session with this id.
    NoSession(SessionId),
    /// The connection already has a session with this id.
    SessionOpen(SessionId),
    /// The connection has reached its limit of sessions.
    TooManySessions {
        /// The limit.
        max: u16,
    },
    /// The record of a persistent message, with the ids of its durable queues, is larger than the
    /// journal accepts.
    RecordTooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
        /// The number of durable queues.
        queues: usize,
    },
    /// The records of a transaction are larger than the journal accepts as one group.
    TransactionTooLarge {
        /// Their size.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The headers of an internal client's message exceed 64 KiB.
    HeadersTooLarge,
    /// The broker has reached its limit of queues.
    TooManyQueues,
    /// A limit of the user or the vhost is reached.
    Quota(QuotaReached),
    /// The journal takes no records of messages or definitions now.
    Unavailable {
        /// The queue, exchange or subject.
        name: Name,
        /// The reason.
        cause: Unavailable,
    },
}

impl fmt::Display for BrokerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BrokerError::Refused(refusal) => write!(f, "{refusal}"),
            BrokerError::Route(error) => write!(f, "{error}"),
            BrokerError::NoQueue(name) => {
                write!(f, "there is no queue `{name}`; declare it or use another name")
            }
            BrokerError::IsStream(name) => {
                write!(f, "queue `{name}` is a stream, whose messages are not taken out; subscribe to it")
            }
            BrokerError::StreamKeeps(name) => write!(
                f,
                "the configuration of stream `{name}` forbids that its messages are deleted; change `deny_purge` or `deny_delete`, unless it is sealed"
            ),
            BrokerError::HeadersTooLarge => {
                f.write_str("the headers of the message take more than 65,535 bytes; send less in them")
            }
            BrokerError::NoInbox => {
                f.write_str("there is no such inbox; whoever waited for replies there is gone")
            }
            BrokerError::Locked(name) => {
                write!(f, "queue `{name}` is exclusive to another connection; use another name")
            }
            BrokerError::ConsumedExclusively(name) => write!(
                f,
                "queue `{name}` is read by another consumer and one of the two is exclusive; end the other or subscribe without `exclusive`"
            ),
            BrokerError::SingleActive(name) => write!(
                f,
                "queue `{name}` has a single active consumer, which cannot be exclusive; subscribe without `exclusive`"
            ),
            BrokerError::InUse(name) => write!(
                f,
                "`{name}` is in use; take out its bindings or end its consumers, or delete it without `if-unused`"
            ),
            BrokerError::NotEmpty(name) => write!(
                f,
                "queue `{name}` has messages; consume or purge them, or delete it without `if-empty`"
            ),
            BrokerError::Inequivalent { name, difference } => {
                let Difference { property, received, current } = &**difference;
                let shown = |value: &Option<String>| {
                    value.as_ref().map_or_else(|| String::from("none"), |value| format!("`{value}`"))
                };
                write!(
                    f,
                    "inequivalent arg '{property}' for queue `{name}`: received {} but current is {}; use that value or delete the queue first",
                    shown(received),
                    shown(current)
                )
            }
            BrokerError::QueueFull(name) => {
                write!(f, "queue `{name}` is at its length limit; send again when it is shorter")
            }
            BrokerError::NotKept(subject) => write!(
                f,
                "no queue keeps a delayed message to `{subject}` until it is due; bind a queue or send it without delay"
            ),
            BrokerError::Nowhere(subject) => {
                write!(f, "no queue would get the message by `{subject}`; bind one, or name another target")
            }
            BrokerError::ToItself(name) => {
                write!(f, "the message would come back to queue `{name}`; name another target")
            }
            BrokerError::NoDelivery(number) => write!(
                f,
                "there is no unsettled delivery `{number}`; settle each delivery once, on the connection that received it"
            ),
            BrokerError::NoSession(id) => write!(f, "session `{}` is not open; open it first", id.0),
            BrokerError::SessionOpen(id) => {
                write!(f, "session `{}` is open already; use another number or end it first", id.0)
            }
            BrokerError::TooManySessions { max } => {
                write!(f, "the connection has `{max}` sessions, as many as it may have; end one first")
            }
            BrokerError::RecordTooLarge { bytes, bytes_max, queues } => write!(
                f,
                "the persistent message to `{queues}` durable queues takes `{bytes}` bytes of the journal and may take `{bytes_max}`; send a shorter one, bind fewer queues or raise `journal.file_bytes`"
            ),
            BrokerError::TransactionTooLarge { bytes, bytes_max } => write!(
                f,
                "the transaction takes `{bytes}` bytes of the journal and may take `{bytes_max}`; commit more often or raise `journal.file_bytes`"
            ),
            BrokerError::Unavailable { name, cause: Unavailable::DiskFull } => write!(
                f,
                "the disk is nearly full, so that `{name}` cannot be kept there; make space, or consume what waits, and try again"
            ),
            BrokerError::Unavailable { name, cause: Unavailable::NotLeader } => write!(
                f,
                "another node leads the journal, so that `{name}` cannot be kept by this one; try again, or connect to that node"
            ),
            BrokerError::Unavailable { name, cause: Unavailable::NoQuorum } => {
                write!(f, "too few nodes are there to keep `{name}`; try again once more of them are back")
            }
            BrokerError::Quota(reached) => write!(f, "{reached}"),
            BrokerError::TooManyQueues => f.write_str(
                "the broker has as many queues as it may have; delete some or raise `limits.queues`",
            ),
        }
    }
}

impl std::error::Error for BrokerError {}

impl From<Refusal> for BrokerError {
    fn from(refusal: Refusal) -> BrokerError {
        BrokerError::Refused(refusal)
    }
}

impl From<QuotaReached> for BrokerError {
    fn from(reached: QuotaReached) -> BrokerError {
        BrokerError::Quota(reached)
    }
}

impl From<RouteError> for BrokerError {
    fn from(error: RouteError) -> BrokerError {
        BrokerError::Route(error)
    }
}
