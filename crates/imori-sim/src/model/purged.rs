//! Checks of purges: a purged message is gone for good.

use super::model::Model;
use super::records::{Arrived, MessageRecord, PurgeRecord};
use crate::broker_end::EndKind;
use crate::machine::Shared;
use crate::property::Property;

impl Model {
    /// Notes that a client requested a purge, and returns its index.
    pub(crate) fn purge_asked(&mut self, shared: &Shared, queue: usize) -> usize {
        let sent_at = shared.step.get();
        self.purges.push(PurgeRecord { queue, sent_at, done_at: None, over_at: None });
        self.purges.len() - 1
    }

    /// Notes the number of messages that the broker says it purged, and checks it.
    pub(crate) fn purge_done(&mut self, shared: &Shared, purge: usize, count: usize) {
        let now = shared.step.get();
        let Some(record) = self.purges.get_mut(purge) else { return };
        (record.done_at, record.over_at) = (Some(now), Some(now));
        let queue = record.queue;
        self.check_waiting_count(shared, queue, count);
    }

    /// Checks that no more messages wait in a queue than were sent to it.
    pub(crate) fn check_waiting_count(&self, shared: &Shared, queue: usize, count: usize) {
        let is_sent = |message: &usize| {
            let sent = self.messages.get(*message).and_then(|message| message.sent_at);
            sent.is_some() && self.is_for(*message, queue)
        };
        let sent = (0..self.messages.len()).filter(is_sent).count();
        if count > sent {
            let name = &self.queue(queue).name;
            shared.violate(Property::Purge, || {
                format!("{count} messages waited in `{name}`, {sent} were sent")
            });
        }
    }

    /// Whether a purge may have removed this message from this queue.
    pub(crate) fn may_be_purged(&self, message: usize, queue: usize) -> bool {
        let sent = self.messages.get(message).and_then(|message| message.sent_at).unwrap_or(0);
        self.purges.iter().any(|purge| purge.queue == queue && sent <= purge.over_at.unwrap_or(u64::MAX))
    }

    /// Checks that the first delivery of a message, by this subscription, is not of a purged one.
    pub(super) fn check_not_purged(
        &self,
        shared: &Shared,
        arrived: &Arrived<'_>,
        subscription: usize,
        queue: usize,
    ) {
        let message = arrived.message;
        let Some(began) = self.subscriptions.get(subscription).map(|record| record.sent_at) else { return };
        if let Some(purge) = self.surely_purged(message, queue, EndKind::Clean)
            && purge.done_at.is_some_and(|done| done < began)
        {
            shared.violate(Property::Purge, || {
                format!("message {message} of queue {queue} came, which was purged before: {purge:?}")
            });
        }
    }

    /// Whether a message may have died in a queue undelivered, and wait there for room.
    fn may_linger(&self, message: &MessageRecord, queue: usize) -> bool {
        let spec = self.queue(queue);
        spec.dead_letter.is_some() && (spec.ttl_ms.is_some() || spec.is_bounded || message.has_ttl)
    }

    /// The purge that certainly removed this message: the message was in the queue, undelivered as
    /// far as clients know, and the purge survives all ends of the broker and one of this kind.
    pub(crate) fn surely_purged(&self, message: usize, queue: usize, kind: EndKind) -> Option<PurgeRecord> {
        let record = self.messages.get(message)?;
        let confirmed = record.confirmed_at?;
        if self.is_incomplete
            || record.due.is_some()
            || self.last_deliveries.contains_key(&(message, queue))
            || !self.is_for(message, queue)
            || !self.queue(queue).keeps(kind)
            || self.may_linger(record, queue)
        {
            return None;
        }
        let outlives = |purge: &PurgeRecord| {
            let done = purge.done_at?;
            let ends = self.crashes.iter().filter(|crash| crash.at >= done);
            ends.map(|crash| crash.kind).all(|kind| self.queue(queue).keeps(kind)).then_some(())
        };
        let takes = |purge: &&PurgeRecord| {
            purge.queue == queue && confirmed < purge.sent_at && outlives(purge).is_some()
        };
        self.purges.iter().find(takes).copied()
    }
}
