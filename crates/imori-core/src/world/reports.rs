//! Reports of the verbs on messages: counts and latencies.

use crate::message::DeathReason;

/// An event that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// A message was published.
    Published,
    /// A message had no receiver.
    Unroutable,
    /// A reply was dropped because its inbox no longer exists.
    ReplyDropped,
    /// A connection was cut because too much output waited for it.
    CutTooSlow,
    /// A connection was cut because it did not finish a large message while others needed its
    /// memory.
    CutUnfinished,
    /// A queue dropped or dead-lettered a message that a consumer rejected.
    DiedRejected,
    /// A queue dropped or dead-lettered a message that had expired.
    DiedExpired,
    /// A queue dropped or dead-lettered a message because it was full.
    DiedOverflow,
    /// A queue dropped or dead-lettered a message that had failed too often.
    DiedDeliveryLimit,
    /// A message was dead-lettered because a consumer rejected it.
    DeadLetteredRejected,
    /// A message was dead-lettered because it had expired.
    DeadLetteredExpired,
    /// A message was dead-lettered because its queue was full.
    DeadLetteredOverflow,
    /// A message was dead-lettered because it had failed too often.
    DeadLetteredDeliveryLimit,
    /// A dead letter was dropped because its exchange does not exist, or because it cycled.
    DeadLetterDropped,
    /// A message was withheld from a subscription with a protocol that cannot represent its subject
    /// or size.
    NoForm,
    /// A connection was ended by a bug in the broker.
    Fault,
    /// A publisher started to wait for a queue to become shorter.
    Throttled,
    /// A publisher started to wait because its user or vhost exceeded its rate.
    RateLimited,
    /// A publish was refused because its vhost has reached its limit of bytes.
    BytesRefused,
    /// A queue was declared, whether or not it existed.
    QueueDeclared,
    /// A queue was created.
    QueueCreated,
    /// A queue was deleted.
    QueueDeleted,
}

impl Counter {
    /// Every counter.
    pub const ALL: [Counter; 22] = [
        Counter::Published,
        Counter::Unroutable,
        Counter::ReplyDropped,
        Counter::CutTooSlow,
        Counter::CutUnfinished,
        Counter::DiedRejected,
        Counter::DiedExpired,
        Counter::DiedOverflow,
        Counter::DiedDeliveryLimit,
        Counter::DeadLetteredRejected,
        Counter::DeadLetteredExpired,
        Counter::DeadLetteredOverflow,
        Counter::DeadLetteredDeliveryLimit,
        Counter::DeadLetterDropped,
        Counter::NoForm,
        Counter::Fault,
        Counter::Throttled,
        Counter::RateLimited,
        Counter::BytesRefused,
        Counter::QueueDeclared,
        Counter::QueueCreated,
        Counter::QueueDeleted,
    ];

    /// The counter for messages that died in a queue for this reason.
    #[must_use]
    pub fn died(reason: DeathReason) -> Counter {
        match reason {
            DeathReason::Rejected => Counter::DiedRejected,
            DeathReason::Expired => Counter::DiedExpired,
            DeathReason::Overflow => Counter::DiedOverflow,
            DeathReason::DeliveryLimit => Counter::DiedDeliveryLimit,
        }
    }

    /// The counter for messages dead-lettered for this reason.
    #[must_use]
    pub fn dead_lettered(reason: DeathReason) -> Counter {
        match reason {
            DeathReason::Rejected => Counter::DeadLetteredRejected,
            DeathReason::Expired => Counter::DeadLetteredExpired,
            DeathReason::Overflow => Counter::DeadLetteredOverflow,
            DeathReason::DeliveryLimit => Counter::DeadLetteredDeliveryLimit,
        }
    }
}

/// Requests of a vhost's clients to the API of streams, since the start of the broker.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct StreamRequests {
    /// Requests that were answered.
    pub total: u64,
    /// Requests that were answered with an error.
    pub errors: u64,
}

/// A latency that is measured by sampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Latency {
    /// From the turn that received a publish to the turn that sent its confirm, if it waited for
    /// the journal.
    Confirm,
    /// From the arrival of a message that had to wait to its first delivery.
    QueueWait,
}

impl Latency {
    /// Every latency.
    pub const ALL: [Latency; 2] = [Latency::Confirm, Latency::QueueWait];
}
