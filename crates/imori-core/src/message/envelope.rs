//! What the broker knows about a message in one queue: the same message can be in many.

use std::sync::Arc;

use super::address::Address;
use crate::name::Name;
use crate::time::Time;

/// The circumstances of one message in one queue.
#[derive(Debug, Clone)]
pub struct Envelope {
    /// Where it was published to, or dead-lettered to.
    pub address: Arc<Address>,
    /// Its place in the queue: given once, kept when it is released.
    pub sequence: u64,
    /// When it expires.
    pub deadline: Option<Time>,
    /// How often it died before it came here.
    pub deaths: Option<Arc<Deaths>>,
    /// Deliveries that failed: the connection ended, or the consumer said so.
    pub failures: u32,
    /// It was given out before.
    pub is_redelivered: bool,
    /// Its priority in this queue; 0 in a queue without priorities.
    pub priority: u8,
}

/// Why a message left a queue without being accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeathReason {
    /// A consumer rejected it.
    Rejected,
    /// Its time to live ended.
    Expired,
    /// The queue was over its length limit.
    Overflow,
    /// It failed more often than the queue's delivery limit allows.
    DeliveryLimit,
}

impl DeathReason {
    /// The word that RabbitMQ's users know from `x-death`.
    pub fn as_str(self) -> &'static str {
        match self {
            DeathReason::Rejected => "rejected",
            DeathReason::Expired => "expired",
            DeathReason::Overflow => "maxlen",
            DeathReason::DeliveryLimit => "delivery_limit",
        }
    }
}

/// Deaths of one message in one queue for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Death {
    /// The queue it died in.
    pub queue: Name,
    /// Why.
    pub reason: DeathReason,
    /// How often.
    pub count: u64,
    /// Where it had been sent to when it died there first.
    pub address: Arc<Address>,
    /// When it died there first.
    pub time: Time,
}

/// The history of a message's deaths, the latest first (RabbitMQ's `x-death`).
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Deaths(Vec<Death>);

impl Deaths {
    /// This history and one more death.
    pub fn and(&self, queue: &Name, reason: DeathReason, address: &Arc<Address>, time: Time) -> Deaths {
        let mut deaths = self.0.clone();
        let known = deaths.iter().position(|death| death.queue == *queue && death.reason == reason);
        let death = match known {
            Some(index) => {
                let mut death = deaths.remove(index);
                death.count += 1;
                death
            }
            None => Death { queue: queue.clone(), reason, count: 1, address: Arc::clone(address), time },
        };
        deaths.insert(0, death);
        Deaths(deaths)
    }

    /// The deaths, the latest first.
    pub fn iter(&self) -> impl Iterator<Item = &Death> {
        self.0.iter()
    }

    /// The first death of all.
    pub fn first(&self) -> Option<&Death> {
        self.0.last()
    }

    /// Tells whether the message went round in a circle to `queue` and nobody rejected it on the way:
    /// then it would go round for ever.
    pub fn is_cycle(&self, queue: &Name) -> bool {
        let round = self.0.iter().position(|death| death.queue == *queue);
        round
            .is_some_and(|end| self.0.iter().take(end + 1).all(|death| death.reason != DeathReason::Rejected))
    }
}
