//! Checks arriving deliveries: replies, live ones, and those from queues.

use super::model::Model;
use super::records::{Arrived, LastDelivery, Mode, Outcome, Reads, To};
use super::wildcards::is_match;
use crate::machine::Shared;
use crate::property::Property;

impl Model {
    /// Checks a reply that arrived at an inbox.
    pub(crate) fn reply_arrived(&mut self, shared: &Shared, arrived: &Arrived<'_>) {
        let (session, message) = (arrived.session, arrived.message);
        let record = self.message(message);
        if record.to != To::Inbox(session) {
            let to = record.to.clone();
            shared.violate(Property::InboxPrivacy, || {
                format!("message {message} to {to:?} came to an inbox of session {session}")
            });
        }
        if arrived.is_redelivered || !self.replies.insert(message) {
            shared.violate(Property::Duplication, || {
                format!("reply {message} came twice to session {session}")
            });
        }
        self.check_live_order(shared, session, message);
    }

    /// Checks a message that arrived at a live subscription.
    pub(crate) fn live_arrived(&mut self, shared: &Shared, arrived: &Arrived<'_>, subscription: usize) {
        let (session, message) = (arrived.session, arrived.message);
        let Some(record) = self.subscriptions.get_mut(subscription) else { return };
        if arrived.is_redelivered || !record.got.insert(message) {
            shared.violate(Property::Duplication, || {
                format!("message {message} came twice to subscription {subscription}")
            });
        }
        if record.deliveries_max.is_some_and(|max| record.got.len() > max) {
            shared.violate(Property::Credit, || {
                format!("message {message} came to subscription {subscription}, which had all that it wanted")
            });
        }
        let other =
            record.group.clone().and_then(|group| self.group_got.insert((group, message), subscription));
        if let Some(other) = other {
            shared.violate(Property::Duplication, || {
                format!("message {message} came to subscriptions {other} and {subscription} of one group")
            });
        }
        let Reads::Topic(pattern) = &record.reads else { return };
        let is_meant = match self.messages.get(message).map(|message| &message.to) {
            Some(To::Topic(subject)) => is_match(pattern, subject),
            _ => false,
        };
        let is_meant = is_meant && self.messages.get(message).is_some_and(|message| message.due.is_none());
        if !is_meant {
            let text = format!("message {message} is not for subscription {subscription} to `{pattern}`");
            shared.violate(Property::Visibility, || text);
        }
        self.check_live_order(shared, session, message);
    }

    /// Whether the session had said goodbye before another session got this message; its own
    /// delivery may then be the earlier one.
    fn is_stale(&self, session: usize, message: usize, queue: usize) -> bool {
        let left_at = self.sessions.get(session).and_then(|session| session.left_at);
        let last = self.last_deliveries.get(&(message, queue)).filter(|last| last.session != session);
        last.zip(left_at).is_some_and(|(last, left_at)| last.at > left_at)
    }

    /// Checks a message that arrived from a queue.
    pub(crate) fn queue_arrived(
        &mut self,
        shared: &Shared,
        arrived: &Arrived<'_>,
        subscription: usize,
        queue: usize,
    ) {
        let (session, message) = (arrived.session, arrived.message);
        self.text_bytes.insert(message, arrived.text_bytes);
        let record = self.subscription(subscription);
        let mode = record.mode;
        if mode != Mode::Auto {
            record.unsettled += 1;
            if record.unsettled > record.prefetch {
                let (have, may) = (record.unsettled, record.prefetch);
                shared
                    .violate(Property::Credit, || format!("subscription {subscription} has {have} of {may}"));
            }
            let record = self.session(session);
            record.unsettled += 1;
            if let Some(may) = record.window.filter(|window| record.unsettled > *window) {
                let have = record.unsettled;
                shared.violate(Property::Credit, || format!("session {session} has {have} of {may}"));
            }
        }
        self.check_single_active(shared, subscription, queue);
        self.check_not_purged(shared, arrived, subscription, queue);
        self.check_address(shared, arrived, queue);
        self.note_taken(shared, arrived, queue);
        let is_stale = mode != Mode::Auto && self.is_stale(session, message, queue);
        if !is_stale {
            self.check_single(shared, arrived, queue);
        }
        let is_delayed = self.message(message).due.is_some();
        if !arrived.is_redelivered && !is_delayed {
            self.check_queue_order(shared, session, message, queue);
        }
        if is_stale {
            return;
        }
        let outcome = if mode == Mode::Auto { Outcome::Auto } else { Outcome::Open };
        self.last_deliveries.insert(
            (message, queue),
            LastDelivery {
                session,
                at: shared.step.get(),
                number: arrived.number,
                outcome,
                is_processed: false,
                is_of_earlier_life: false,
            },
        );
    }
}
