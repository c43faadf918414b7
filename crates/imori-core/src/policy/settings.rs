//! The settings that a policy may have.

use std::time::Duration;

use crate::name::Name;

/// The policy for a message for which a queue has no room.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    /// The oldest message leaves.
    #[default]
    DropHead,
    /// The publish is refused.
    RejectPublish,
    /// The publish is refused and the message is dead-lettered.
    RejectPublishDeadLetter,
}

impl Overflow {
    /// The word for the treatment in declarations and policies.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Overflow::DropHead => "drop-head",
            Overflow::RejectPublish => "reject-publish",
            Overflow::RejectPublishDeadLetter => "reject-publish-dlx",
        }
    }
}

/// How many deliveries of a message may fail; fewer is less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeliveryLimit {
    /// So many.
    Failures(u32),
    /// Any number.
    Unlimited,
}

/// The settings of a policy. What it does not say is `None`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct PolicySettings {
    /// A queue goes after this long without a consumer or a declaration.
    pub expires: Option<Duration>,
    /// How long a message may wait.
    pub message_ttl: Option<Duration>,
    /// How many messages may wait.
    pub length_max: Option<u64>,
    /// How many bytes of bodies may wait.
    pub length_bytes_max: Option<u64>,
    /// The treatment of messages beyond these limits.
    pub overflow: Option<Overflow>,
    /// The exchange to which dead letters go.
    pub dead_letter_exchange: Option<Name>,
    /// The routing key that dead letters get.
    pub dead_letter_routing_key: Option<Name>,
    /// How many deliveries of a message may fail before it is dead-lettered.
    pub delivery_limit: Option<DeliveryLimit>,
    /// The exchange that takes what no binding of an exchange takes.
    pub alternate_exchange: Option<Name>,
}
