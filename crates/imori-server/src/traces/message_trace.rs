//! The trace of messages that an operator starts: it follows publishes to an address through their queues to the
//! outcome of each delivery.
//!
//! One trace runs at a time. It holds names, times and sizes, and neither headers nor bodies.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use imori_core::delivery::{Outcome, QueuePosition};
use imori_core::id::{ConnectionId, QueueId, VhostId};
use imori_core::message::{DeathReason, Property};
use imori_core::name::Name;
use imori_core::queue::{DeadLetter, Queue};
use imori_core::time::Time;
use imori_core::world::Sent;

use super::span::shortened;
use crate::limits::{TRACE_STEPS_MAX, TRACED_MESSAGES_MAX};
use crate::peers::client::Client;

/// The messages that a trace follows.
#[derive(Debug, Clone)]
pub struct TraceFilter {
    /// The vhost.
    pub vhost: VhostId,
    /// The exchange they are published to; `None` for any.
    pub exchange: Option<String>,
    /// Their subject, in which `*` stands for any characters.
    pub subject: String,
    /// A queue that takes them; `None` for any queue and for live subscriptions.
    pub queue: Option<String>,
    /// The number of messages to follow.
    pub messages: usize,
    /// How long the trace runs.
    pub time: Duration,
}

/// A message that is followed.
#[derive(Debug, Clone)]
pub struct TracedMessage {
    /// When it was published, or died in its queue.
    pub at: Time,
    /// The connection that published it; `None` for a dead letter.
    pub publisher: Option<ConnectionId>,
    /// The exchange.
    pub exchange: String,
    /// The subject.
    pub subject: String,
    /// The id that its publisher gave it, or nothing.
    pub message_id: String,
    /// The correlation id, or nothing.
    pub correlation_id: String,
    /// Bytes of the body.
    pub bytes: usize,
    /// Messages with the same address that were published together; the first one is followed.
    pub messages: usize,
    /// Its steps, oldest first.
    pub steps: Vec<(Time, TraceStep)>,
    /// Steps beyond the limit.
    pub more_steps: usize,
}

/// A step of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceStep {
    /// All receivers have it, or it waits in their queues.
    Routed {
        /// Queues and live receivers, summed over all messages that were published together.
        receivers: usize,
    },
    /// A queue took it.
    Queued {
        /// The queue's name.
        queue: String,
    },
    /// A connection has it.
    Delivered {
        /// The queue that it came from; `None` for a live subscription or an inbox.
        queue: Option<String>,
        /// The connection.
        to: ConnectionId,
    },
    /// A consumer settled it.
    Settled {
        /// The queue's name.
        queue: String,
        /// The connection.
        by: ConnectionId,
        /// The outcome.
        outcome: Outcome,
    },
    /// It left its queue as a dead letter.
    DeadLettered {
        /// The queue's name.
        queue: String,
        /// Why.
        reason: DeathReason,
        /// The exchange it went to.
        exchange: String,
        /// Its new routing key.
        subject: String,
    },
}

/// The client of a connection, as it was when the trace met it.
#[derive(Debug, Clone)]
pub struct TracedClient {
    /// The client's address.
    pub source: SocketAddr,
    /// The local address.
    pub local: SocketAddr,
    /// The user.
    pub user: String,
    /// The protocol; `None` for a client inside the broker.
    pub protocol: Option<String>,
}

impl TracedClient {
    pub(crate) fn of(client: &Client) -> TracedClient {
        TracedClient {
            source: client.source,
            local: client.local,
            user: client.facts.user.clone(),
            protocol: client.protocol.map(|_| client.facts.protocol.clone()),
        }
    }
}

/// A trace and what it has followed so far.
#[derive(Debug, Clone)]
pub struct MessageTrace {
    /// The messages that it follows.
    pub filter: TraceFilter,
    /// The user who started it.
    pub user: String,
    /// When it started.
    pub from: Time,
    /// When it ends, or has ended.
    pub until: Time,
    /// What it has followed, oldest first.
    pub messages: Vec<TracedMessage>,
    /// The clients that appear in it.
    pub clients: HashMap<ConnectionId, TracedClient>,
    /// Where followed messages are, or were.
    positions: HashMap<QueuePosition, usize>,
    queues: HashMap<QueueId, Name>,
}

impl MessageTrace {
    pub(super) fn new(mut filter: TraceFilter, user: String, now: Time) -> MessageTrace {
        filter.messages = filter.messages.clamp(1, TRACED_MESSAGES_MAX);
        MessageTrace {
            user,
            from: now,
            until: now.after(filter.time),
            filter,
            messages: Vec::new(),
            clients: HashMap::new(),
            positions: HashMap::new(),
            queues: HashMap::new(),
        }
    }

    /// Begins to follow published messages, if they match; returns the index by which the other steps name them.
    /// Messages of which only the queue matters have no index before [`MessageTrace::enqueuing`].
    pub(super) fn publishing(
        &mut self,
        now: Time,
        sent: &Sent<'_>,
        publisher: Option<ConnectionId>,
    ) -> Option<Followed> {
        let filter = &self.filter;
        let is_meant = now <= self.until
            && self.messages.len() < filter.messages
            && sent.vhost == filter.vhost
            && filter.exchange.as_ref().is_none_or(|exchange| exchange.as_bytes() == sent.exchange)
            && matches(filter.subject.as_bytes(), sent.subject);
        if !is_meant {
            return None;
        }
        let text = |property| sent.first.property(property).map(shortened).unwrap_or_default();
        let message = TracedMessage {
            at: now,
            publisher,
            exchange: shortened(sent.exchange),
            subject: shortened(sent.subject),
            message_id: text(Property::MessageId),
            correlation_id: text(Property::CorrelationId),
            bytes: sent.first.body.len(),
            messages: sent.messages,
            steps: Vec::new(),
            more_steps: 0,
        };
        Some(match filter.queue {
            Some(_) => Followed::Perhaps(Box::new(message)),
            None => Followed::Message(self.add(message)),
        })
    }

    fn add(&mut self, message: TracedMessage) -> usize {
        self.messages.push(message);
        self.messages.len() - 1
    }

    /// A followed message comes to a queue.
    pub(super) fn enqueuing(
        &mut self,
        now: Time,
        followed: Followed,
        at: QueuePosition,
        queue: &Queue,
    ) -> Followed {
        let index = match followed {
            Followed::Message(index) => index,
            Followed::Perhaps(message) => {
                let wanted =
                    self.filter.queue.as_ref().is_some_and(|name| name.as_bytes() == queue.name().as_bytes());
                match wanted && self.messages.len() < self.filter.messages {
                    true => self.add(*message),
                    false => return Followed::Perhaps(message),
                }
            }
        };
        self.queues.entry(at.queue).or_insert_with(|| queue.name().clone());
        self.positions.insert(at, index);
        let queue = shortened(queue.name().as_bytes());
        self.step(index, now, TraceStep::Queued { queue });
        Followed::Message(index)
    }

    /// All receivers have a followed message.
    pub(super) fn routed(&mut self, now: Time, index: usize, receivers: usize) {
        self.step(index, now, TraceStep::Routed { receivers });
    }

    /// A connection has a message, which `current` is if it was just published. Returns whether it is followed.
    pub(super) fn delivered(
        &mut self,
        now: Time,
        current: Option<usize>,
        from: Option<QueuePosition>,
        to: ConnectionId,
    ) -> bool {
        let index = match from {
            Some(from) => self.positions.get(&from).copied(),
            None => current,
        };
        let Some(index) = index else { return false };
        let queue = from.map(|from| self.queue(from.queue));
        self.step(index, now, TraceStep::Delivered { queue, to });
        true
    }

    /// A consumer settles a delivery.
    pub(super) fn settling(&mut self, now: Time, at: QueuePosition, by: ConnectionId, outcome: Outcome) {
        if let Some(index) = self.positions.get(&at).copied() {
            let queue = self.queue(at.queue);
            self.step(index, now, TraceStep::Settled { queue, by, outcome });
        }
    }

    /// A message left its queue as a dead letter. Returns its index, if it is followed.
    pub(super) fn dead_lettering(&mut self, now: Time, vhost: VhostId, letter: &DeadLetter) -> Option<usize> {
        if vhost != self.filter.vhost {
            return None;
        }
        let death = letter.deaths.iter().next()?;
        let died_in = |(at, _): &(&QueuePosition, &usize)| {
            at.sequence == letter.sequence
                && self.queues.get(&at.queue).is_some_and(|queue| *queue == death.queue)
        };
        let (_, index) = self.positions.iter().find(died_in)?;
        let index = *index;
        let step = TraceStep::DeadLettered {
            queue: shortened(death.queue.as_bytes()),
            reason: death.reason,
            exchange: shortened(letter.exchange.as_bytes()),
            subject: shortened(letter.routing_key.as_bytes()),
        };
        self.step(index, now, step);
        Some(index)
    }

    fn queue(&self, id: QueueId) -> String {
        self.queues.get(&id).map(|name| shortened(name.as_bytes())).unwrap_or_default()
    }

    fn step(&mut self, index: usize, now: Time, step: TraceStep) {
        let Some(message) = self.messages.get_mut(index) else { return };
        match message.steps.len() < TRACE_STEPS_MAX {
            true => message.steps.push((now, step)),
            false => message.more_steps += 1,
        }
    }
}

/// A message that a trace follows, from its publish until its queues have it.
#[derive(Debug)]
pub(super) enum Followed {
    /// The message with this index.
    Message(usize),
    /// A message that is followed if the queue of the filter takes it.
    Perhaps(Box<TracedMessage>),
}

/// Whether a subject is as a pattern says, in which `*` stands for any characters.
fn matches(pattern: &[u8], subject: &[u8]) -> bool {
    let mut parts = pattern.split(|byte| *byte == b'*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = subject.strip_prefix(first) else { return false };
    let mut parts: Vec<&[u8]> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        let Some(at) = rest.windows(part.len()).position(|window| window == part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, subject, expected) in [
            ("a.b", "a.b", true),
            ("a.b", "a.bc", false),
            ("", "", true),
            ("*", "", true),
            ("*", "a.b", true),
            ("a.*", "a.b.c", true),
            ("a.*", "b.a.", false),
            ("*.c", "a.b.c", true),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abcd", false),
            ("aa*aa", "aaa", false),
            ("a**b", "ab", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), subject.as_bytes()), expected, "{pattern} {subject}");
        }
    }
}
