//! Everything that clients know, and how an end of the broker changes it.

use std::collections::{BTreeMap, BTreeSet};

use imori_core::confirm::Level;

use super::duplicate::Taken;
use super::records::{
    Goodbyes, LastDelivery, MessageRecord, Mode, PurgeRecord, RouteRecord, RouteState, SessionRecord,
    SubscriptionRecord, To, TransactionRecord,
};
use super::wildcards::is_match;
use crate::broker_end::{Crash, EndKind};
use crate::machine::Shared;
use crate::property::Property;
use crate::workload::QueueSpec;

/// Everything that clients know.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) sessions: Vec<SessionRecord>,
    pub(crate) queues: Vec<QueueSpec>,
    pub(crate) messages: Vec<MessageRecord>,
    pub(crate) subscriptions: Vec<SubscriptionRecord>,
    /// The latest deliveries, by message and queue.
    pub(crate) last_deliveries: BTreeMap<(usize, usize), LastDelivery>,
    pub(crate) transactions: Vec<TransactionRecord>,
    pub(crate) purges: Vec<PurgeRecord>,
    /// Routes made by operators, each for a subject of its own.
    pub(crate) routes: Vec<RouteRecord>,
    /// The subscription with the latest delivery of each queue with a single active consumer.
    pub(super) active: BTreeMap<usize, usize>,
    /// Ends of the broker.
    pub(crate) crashes: Vec<Crash>,
    /// Sessions that ended beside others of their connection.
    pub(crate) goodbyes: Goodbyes,
    /// Replies that arrived.
    pub(crate) replies: BTreeSet<usize>,
    /// Whether the broker was told to stop.
    pub(crate) has_stopped: bool,
    /// Whether some of the broker's output is unknown to the checks.
    pub(crate) is_incomplete: bool,
    /// The latest key of live deliveries, by publisher and receiver.
    pub(super) live_keys: BTreeMap<(usize, usize), (u64, u64)>,
    /// The latest key of first deliveries, by publisher, receiver, queue and priority.
    pub(super) queue_keys: BTreeMap<(usize, usize, usize, u8), (u64, u64)>,
    /// The latest key of restored messages, by receiver, publisher and queue.
    pub(super) restored_keys: BTreeMap<(usize, usize, usize), (u64, u64)>,
    /// The latest step of sending among first deliveries, by receiver, queue and priority.
    pub(super) queue_sent: BTreeMap<(usize, usize, u8), u64>,
    /// Messages that share an id, by the first of them.
    pub(crate) same: BTreeMap<usize, Vec<usize>>,
    /// Messages with shared ids that a queue certainly accepted, by message and queue.
    pub(crate) taken: BTreeMap<(usize, usize), Taken>,
    /// The group member that got a message, by group and message.
    pub(crate) group_got: BTreeMap<(String, usize), usize>,
    /// Header bytes of each message, as last received.
    pub(crate) text_bytes: BTreeMap<usize, usize>,
}

impl Model {
    /// Begins a session on a transport and returns its index.
    pub(crate) fn begin_session(&mut self, pipe: usize) -> usize {
        self.sessions.push(SessionRecord { pipe, ..SessionRecord::default() });
        self.sessions.len() - 1
    }

    /// Notes that the client ended a connection, or noticed its end.
    pub(crate) fn connection_ended(&mut self, pipe: usize, at: u64) {
        for session in self.sessions.iter_mut().filter(|session| session.pipe == pipe) {
            session.ended_at.get_or_insert(at);
        }
    }

    pub(crate) fn session(&mut self, session: usize) -> &mut SessionRecord {
        self.sessions.get_mut(session).expect("sessions are numbered as they begin")
    }

    pub(crate) fn message(&mut self, message: usize) -> &mut MessageRecord {
        self.messages.get_mut(message).expect("messages are numbered as they are made")
    }

    pub(crate) fn route(&mut self, route: usize) -> &mut RouteRecord {
        self.routes.get_mut(route).expect("ways are numbered as they are made")
    }

    pub(crate) fn queue(&self, queue: usize) -> &QueueSpec {
        self.queues.get(queue).expect("queues are numbered as they are named")
    }

    pub(crate) fn subscription(&mut self, subscription: usize) -> &mut SubscriptionRecord {
        self.subscriptions.get_mut(subscription).expect("subscriptions are numbered as they begin")
    }

    /// Notes that the publisher of a message knows that the broker has handled it.
    pub(crate) fn message_confirmed(&mut self, shared: &Shared, message: usize) {
        let (now, clock) = (shared.step.get(), shared.clock.get());
        let record = self.message(message);
        record.confirmed_at = Some(now);
        if record.is_too_large {
            shared.violate(Property::Refusal, || {
                format!("message {message} is confirmed, and there is no room for it in the journal")
            });
        }
        record.due.iter_mut().for_each(|due| due.confirmed(clock));
        record.duplicate.iter_mut().for_each(|duplicate| duplicate.confirmed(clock));
    }

    /// Checks the level in a message's receipt against that of its queue.
    pub(crate) fn check_level(&self, shared: &Shared, message: usize, said: Option<&str>) {
        let Some(record) = self.messages.get(message) else { return };
        let expected = match record.to {
            // A transaction is only as safe as the least safe of its messages.
            _ if record.is_in_transaction && said.is_some() => return,
            To::Queue(queue) if self.queue(queue).is_volatile => return,
            To::Queue(queue) if record.is_persistent => self.queue(queue).level(),
            To::Topic(_) if record.is_persistent => return,
            _ => Level::Memory,
        };
        if said != Some(expected.as_str()) {
            shared.violate(Property::Level, || {
                format!("the receipt of message {message} says {said:?}, its queue has {expected}")
            });
        }
    }

    /// Notes an end of the broker.
    pub(crate) fn crash(&mut self, crash: Crash) {
        for session in &mut self.sessions {
            session.is_crashed |= session.ended_at.is_none_or(|at| at >= crash.at);
            session.ended_at.get_or_insert(crash.at);
        }
        for ((message, queue), last) in &mut self.last_deliveries {
            let is_persistent = self.messages.get(*message).is_some_and(|message| message.is_persistent);
            let keeps = self.queues.get(*queue).is_some_and(|queue| queue.keeps(crash.kind));
            last.is_processed &= is_persistent && keeps;
            last.is_of_earlier_life |= !crash.was_clean;
        }
        for message in &mut self.messages {
            let keeps = matches!(message.to, To::Queue(queue)
                if self.queues.get(queue).is_some_and(|queue| queue.keeps(crash.kind)));
            message.cancel.outlive(message.is_persistent && keeps);
        }
        for purge in &mut self.purges {
            purge.over_at.get_or_insert(crash.at);
        }
        self.crashes.push(crash);
    }

    /// Whether a message was sent to a queue, by name or through a binding.
    pub(crate) fn is_for(&self, message: usize, queue: usize) -> bool {
        let Some(record) = self.messages.get(message) else { return false };
        match &record.to {
            To::Queue(to) => *to == queue,
            To::Topic(subject) => {
                let pattern = self.queue(queue).pattern.as_ref();
                let is_routed = |route: &RouteRecord| {
                    let is_taken = record.has_headers || !route.by_headers;
                    route.state == RouteState::Made
                        && route.queue == queue
                        && route.subject == *subject
                        && is_taken
                };
                pattern.is_some_and(|pattern| is_match(pattern, subject)) || self.routes.iter().any(is_routed)
            }
            To::Inbox(_) => false,
        }
    }

    /// Whether this message of this queue survives an end of this kind at that step.
    pub(crate) fn is_kept(&self, message: usize, queue: usize, kind: EndKind, at: u64) -> bool {
        let is_kept = |message: &MessageRecord| {
            message.is_persistent && message.confirmed_at.is_some_and(|confirmed| confirmed <= at)
        };
        self.messages.get(message).is_some_and(is_kept) && self.queue(queue).keeps(kind)
    }

    /// Whether an end of the broker may have lost this message of this queue.
    pub(crate) fn may_be_lost(&self, message: usize, queue: usize) -> bool {
        let sent = self.messages.get(message).and_then(|message| message.sent_at).unwrap_or(0);
        let is_later = |crash: &&Crash| crash.at >= sent;
        self.crashes.iter().filter(is_later).any(|crash| !self.is_kept(message, queue, crash.kind, crash.at))
    }

    /// Whether a subscription, and the session it belongs to, have credit.
    pub(crate) fn has_credit(&self, subscription: usize) -> bool {
        let Some(record) = self.subscriptions.get(subscription) else { return false };
        let window =
            self.sessions.get(record.session).and_then(|session| Some((session.window?, session.unsettled)));
        let is_open = window.is_none_or(|(window, unsettled)| unsettled < window);
        record.mode == Mode::Auto || record.unsettled < record.prefetch && is_open
    }

    /// The step of the broker's last end.
    pub(super) fn last_crash(&self) -> Option<u64> {
        self.crashes.last().map(|crash| crash.at)
    }

    pub(crate) fn is_over(&self, shared: &Shared, session: usize) -> bool {
        let is_over = |session: &SessionRecord| {
            session.ended_at.or(session.left_at).is_some() || shared.network.pipe(session.pipe).is_ending
        };
        self.sessions.get(session).is_none_or(is_over)
    }
}
