//! The state of a message in one queue; the same message can be in many queues.

use std::sync::Arc;
use std::time::Duration;

use super::address::Address;
use crate::confirm::Lsn;
use crate::name::Name;
use crate::time::Time;

/// The state of one message in one queue.
#[derive(Debug, Clone)]
pub struct Envelope {
    /// The address that it was published or dead-lettered to.
    pub address: Arc<Address>,
    /// Its sequence number in the queue, which it keeps when it is released.
    pub sequence: u64,
    /// Its record in the journal; [`Lsn::NONE`] if it has none.
    pub lsn: Lsn,
    /// When it began to wait here: on arrival, or when it was due.
    pub since: Time,
    /// The publisher's time to live for this queue, in milliseconds.
    pub expiration_ms: Option<u32>,
    /// Its history: deaths in queues before this one, and annotations of consumers.
    pub deaths: Option<Arc<Deaths>>,
    /// Number of failed deliveries: the connection ended, or the consumer reported a failure.
    pub failures: u32,
    /// The message was delivered before.
    pub is_redelivered: bool,
    /// A consumer or a full queue rejected the message, and the disk has no room yet for the dead letter.
    pub is_rejected: bool,
    /// Its priority in this queue; 0 in a queue without priorities.
    pub priority: u8,
}

impl Envelope {
    /// Replaces the annotations of consumers.
    pub(crate) fn annotate(&mut self, annotations: Box<[u8]>) {
        let history = self.deaths.as_deref().cloned().unwrap_or_default();
        self.deaths = Some(Arc::new(history.with_annotations(Some(annotations))));
    }

    /// When the message expires in a queue with this time to live.
    pub fn deadline(&self, ttl: Option<Duration>) -> Option<Time> {
        let expiration = self.expiration_ms.map(|ms| Duration::from_millis(u64::from(ms)));
        let ttl = match (ttl, expiration) {
            (Some(ttl), Some(expiration)) => ttl.min(expiration),
            (ttl, expiration) => ttl.or(expiration)?,
        };
        Some(self.since.after(ttl)).filter(|deadline| *deadline < Time::NEVER)
    }
}

/// The reason why a message left a queue without being accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeathReason {
    /// A consumer rejected the message.
    Rejected,
    /// The time to live ended.
    Expired,
    /// The queue exceeded its length limit.
    Overflow,
    /// The message failed more often than the delivery limit allows.
    DeliveryLimit,
}

impl DeathReason {
    /// Every reason, in the order of the numbers that records use.
    pub const ALL: [DeathReason; 4] =
        [DeathReason::Rejected, DeathReason::Expired, DeathReason::Overflow, DeathReason::DeliveryLimit];

    /// The name in RabbitMQ's `x-death` header.
    pub fn as_str(self) -> &'static str {
        match self {
            DeathReason::Rejected => "rejected",
            DeathReason::Expired => "expired",
            DeathReason::Overflow => "maxlen",
            DeathReason::DeliveryLimit => "delivery_limit",
        }
    }
}

/// The deaths of a message in one queue for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Death {
    /// The queue in which the message died.
    pub queue: Name,
    /// Why it died there; other reasons in the same queue are counted apart.
    pub reason: DeathReason,
    /// Number of deaths.
    pub count: u64,
    /// The message's address at its first death there.
    pub address: Arc<Address>,
    /// The time of its first death there.
    pub time: Time,
}

/// The history of a message in queues: its deaths, the latest first (RabbitMQ's `x-death`), and the
/// annotations that consumers added when they gave it back.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Deaths {
    list: Vec<Death>,
    /// The index of the very first death.
    first: usize,
    /// Annotations of consumers, in the form of the protocol that has annotations.
    annotations: Option<Box<[u8]>>,
}

impl Deaths {
    /// This history with one more death.
    pub fn and(&self, queue: &Name, reason: DeathReason, address: &Arc<Address>, time: Time) -> Deaths {
        let mut list = self.list.clone();
        let known = list.iter().position(|death| death.queue == *queue && death.reason == reason);
        let (death, first) = match known {
            Some(index) => {
                let mut death = list.remove(index);
                death.count = death.count.saturating_add(1);
                let first = match self.first {
                    first if first == index => 0,
                    first => first + usize::from(first < index),
                };
                (death, first)
            }
            None => {
                let address = Arc::clone(address);
                let death = Death { queue: queue.clone(), reason, count: 1, address, time };
                (death, if list.is_empty() { 0 } else { self.first + 1 })
            }
        };
        list.insert(0, death);
        Deaths { list, first, annotations: self.annotations.clone() }
    }

    /// This history with its annotations replaced.
    #[must_use]
    pub fn with_annotations(self, annotations: Option<Box<[u8]>>) -> Deaths {
        Deaths { annotations, ..self }
    }

    /// The annotations of consumers, in the form of the protocol that has annotations.
    pub fn annotations(&self) -> Option<&[u8]> {
        self.annotations.as_deref()
    }

    /// Whether a history has deaths, which makes its message a dead letter.
    #[inline]
    pub fn any(history: Option<&Arc<Deaths>>) -> bool {
        history.is_some_and(|deaths| !deaths.is_empty())
    }

    /// The deaths, the latest first.
    pub fn iter(&self) -> impl Iterator<Item = &Death> {
        self.list.iter()
    }

    /// Restores a history from its deaths, the latest first, and the index of the very first.
    pub fn told(list: Vec<Death>, first: usize) -> Deaths {
        Deaths { first: first.min(list.len().saturating_sub(1)), list, annotations: None }
    }

    /// The index of the very first death.
    pub fn first_index(&self) -> usize {
        self.first
    }

    /// Number of pairs of queue and reason.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is no death.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The very first death.
    pub fn first(&self) -> Option<&Death> {
        self.list.get(self.first)
    }

    /// Whether the message came back to `queue` in a cycle without any rejection, and would go round forever.
    pub fn is_cycle(&self, queue: &Name) -> bool {
        let round = self.list.iter().position(|death| death.queue == *queue);
        round.is_some_and(|end| {
            self.list.iter().take(end + 1).all(|death| death.reason != DeathReason::Rejected)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A history of deaths in these queues, in order; `a!` was rejected in `a`.
    fn history(text: &str) -> Deaths {
        let address = Arc::new(Address::new(b"x", b"k"));
        let mut deaths = Deaths::default();
        for (time, name) in (0..).zip(text.split_whitespace()) {
            let (name, reason) = match name.strip_suffix('!') {
                Some(name) => (name, DeathReason::Rejected),
                None => (name, DeathReason::Expired),
            };
            deaths = deaths.and(&Name::from(name), reason, &address, Time(time));
        }
        deaths
    }

    #[test]
    fn a_circle_that_nobody_rejected_in_is_one() {
        for (deaths, queue, expected) in [
            ("", "a", false),
            ("a", "a", true),
            ("a", "b", false),
            ("a!", "a", false),
            ("a b", "a", true),
            ("a b!", "a", false),
            ("a! b", "a", false),
            ("a! b", "b", true),
            ("a b! a", "a", true),
            ("a a! b", "a", false),
            ("c! a b", "a", true),
        ] {
            assert_eq!(history(deaths).is_cycle(&Name::from(queue)), expected, "{deaths} then {queue}");
        }
    }

    #[test]
    fn deaths_are_counted_by_queue_and_reason_with_the_latest_first() {
        let deaths = history("a b a a! b a");
        let shown: Vec<_> = deaths
            .iter()
            .map(|death| (death.queue.to_string(), death.reason.as_str(), death.count, death.time.0))
            .collect();
        let expected = [("a", "expired", 3, 0), ("b", "expired", 2, 1), ("a", "rejected", 1, 3)]
            .map(|(queue, reason, count, time)| (queue.to_owned(), reason, count, time));
        assert_eq!(shown, expected);
        assert_eq!(deaths.len(), 3);
    }

    #[test]
    fn the_first_death_stays_the_first() {
        for (deaths, expected) in [
            ("", None),
            ("a", Some("a")),
            ("a b a", Some("a")),
            ("a b c b a c", Some("a")),
            ("b a! b! a b", Some("b")),
        ] {
            let history = history(deaths);
            let first = history.first().map(|death| (death.queue.to_string(), death.time, death.reason));
            assert_eq!(
                first,
                expected.map(|name| (name.to_owned(), Time(0), DeathReason::Expired)),
                "{deaths}"
            );
        }
    }
}
