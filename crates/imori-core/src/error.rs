//! Why the broker did not do what it was asked.

use std::fmt;

use crate::arguments::Difference;
use crate::authorize::Refusal;
use crate::name::Name;
use crate::outbound::SessionId;
use crate::quota::QuotaReached;
use crate::route::RouteError;

/// Why a command was refused. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrokerError {
    /// The identity has no right to it.
    Refused(Refusal),
    /// The routing table has no such exchange, does not take such a pattern, or is full.
    Route(RouteError),
    /// There is no such queue.
    NoQueue(Name),
    /// There is no such inbox; whoever waited for replies is gone.
    NoInbox,
    /// The queue belongs to another connection.
    Locked(Name),
    /// A consumer has the queue for itself, or wants it for itself and others read it.
    ConsumedExclusively(Name),
    /// A consumer wants a queue for itself that gives to one consumer at a time anyway.
    SingleActive(Name),
    /// An exchange that has bindings, or a queue that has consumers, was to be deleted only if it is unused.
    InUse(Name),
    /// A queue that has messages was to be deleted only if it is empty.
    NotEmpty(Name),
    /// The queue exists with another value of a property.
    Inequivalent {
        /// The queue.
        name: Name,
        /// The property and both values.
        difference: Box<Difference>,
    },
    /// A queue of the message is full and its policy is to refuse.
    QueueFull(Name),
    /// A delayed message goes to no queue, and nobody else keeps it until it is due: where it was sent to.
    NotKept(Name),
    /// A message that an operator moves would come to no queue: the subject.
    Nowhere(Name),
    /// A message that an operator moves would come back to the queue that it leaves.
    ToItself(Name),
    /// There is no unsettled delivery of this number.
    NoDelivery(u64),
    /// The connection has no session of this id that is open.
    NoSession(SessionId),
    /// The connection has a session of this id already.
    SessionOpen(SessionId),
    /// The connection has as many sessions as it may have.
    TooManySessions {
        /// How many that is.
        max: u16,
    },
    /// A persistent message, with the numbers of the durable queues that it goes to, has more bytes than the journal
    /// takes as one record.
    RecordTooLarge {
        /// How many it has.
        bytes: usize,
        /// How many it may have.
        bytes_max: usize,
        /// The queues.
        queues: usize,
    },
    /// The messages and settlements of a transaction have more bytes than the journal takes as one group.
    TransactionTooLarge {
        /// How many it has.
        bytes: usize,
        /// How many it may have.
        bytes_max: usize,
    },
    /// The headers of an internal client's message are larger than 64 KiB.
    HeadersTooLarge,
    /// The broker has as many queues as it may have.
    TooManyQueues,
    /// A limit of the user or the vhost is reached.
    Quota(QuotaReached),
    /// The disk is so full that nothing more is declared there.
    DiskFull(Name),
}

impl fmt::Display for BrokerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BrokerError::Refused(refusal) => write!(f, "{refusal}"),
            BrokerError::Route(error) => write!(f, "{error}"),
            BrokerError::NoQueue(name) => {
                write!(f, "there is no queue `{name}`; declare it or use another name")
            }
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
            BrokerError::DiskFull(name) => write!(
                f,
                "the disk is nearly full, so that `{name}` cannot be kept there; make space, or consume what waits, and declare it again"
            ),
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
