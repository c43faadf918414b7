//! The settings that a policy may have.

use std::time::Duration;

use crate::name::Name;

/// The treatment of a message that does not fit into a queue.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    /// The oldest message is dropped.
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

/// The number of deliveries of a message that may fail; a lower number orders first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeliveryLimit {
    /// This many failures.
    Failures(u32),
    /// No limit.
    Unlimited,
}

/// The settings of a policy; `None` where it sets nothing.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct PolicySettings {
    /// The time after which a queue without consumers or declarations is deleted.
    pub expires: Option<Duration>,
    /// The time after which a message expires.
    pub message_ttl: Option<Duration>,
    /// The age at which a message leaves a stream.
    pub max_age: Option<Duration>,
    /// The maximum number of ready messages.
    pub length_max: Option<u64>,
    /// The maximum total size of ready message bodies.
    pub length_bytes_max: Option<u64>,
    /// The treatment of messages beyond these limits.
    pub overflow: Option<Overflow>,
    /// The exchange that receives dead letters.
    pub dead_letter_exchange: Option<Name>,
    /// The routing key given to dead letters.
    pub dead_letter_routing_key: Option<Name>,
    /// The number of failed deliveries after which a message is dead-lettered.
    pub delivery_limit: Option<DeliveryLimit>,
    /// The exchange that receives messages no binding takes.
    pub alternate_exchange: Option<Name>,
}
