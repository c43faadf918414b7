//! Checks the order of live deliveries, of first deliveries from a queue, and of restored messages.

use super::model::Model;
use super::records::{LastDelivery, Outcome, SessionRecord};
use crate::machine::Shared;
use crate::property::Property;

impl Model {
    pub(super) fn check_live_order(&mut self, shared: &Shared, session: usize, message: usize) {
        let record = self.message(message);
        let (publisher, key) = (record.publisher, record.key);
        let latest = self.live_keys.entry((publisher, session)).or_default();
        if key < *latest {
            shared.violate(Property::Order, || {
                format!("session {session} got message {message} of session {publisher} after a later one")
            });
        }
        *latest = key;
    }

    /// Checks that restored messages keep their order, unless a consumer left or released a
    /// delivery.
    pub(super) fn check_restored_order(
        &mut self,
        shared: &Shared,
        session: usize,
        message: usize,
        queue: usize,
    ) {
        let begin = self.last_crash().unwrap_or(0);
        let is_disturbed = |session: &SessionRecord| session.ended_at.is_some_and(|at| at > begin);
        let is_released = |last: &LastDelivery| {
            !last.is_of_earlier_life && matches!(last.outcome, Outcome::Release | Outcome::Reject)
        };
        let disturbed =
            self.sessions.iter().any(is_disturbed) || self.last_deliveries.values().any(is_released);
        let has_priorities = self.queue(queue).has_priorities;
        let Some(record) = self.messages.get(message).filter(|_| !disturbed && !has_priorities) else {
            return;
        };
        let (publisher, key) = (record.publisher, record.key);
        let latest = self.restored_keys.entry((session, publisher, queue)).or_default();
        if key < *latest {
            shared.violate(Property::Order, || {
                format!("message {message} of queue {queue} is restored behind a later one of its publisher")
            });
        }
        *latest = key;
    }

    pub(super) fn check_queue_order(
        &mut self,
        shared: &Shared,
        session: usize,
        message: usize,
        queue: usize,
    ) {
        let spec = self.queue(queue);
        if spec.is_dead_letter_queue {
            return;
        }
        let has_priorities = spec.has_priorities;
        let record = self.message(message);
        let priority = if has_priorities { record.priority } else { 0 };
        let (publisher, key) = (record.publisher, record.key);
        let (sent, confirmed) = (record.sent_at, record.confirmed_at);
        let latest = self.queue_keys.entry((publisher, session, queue, priority)).or_default();
        if key < *latest {
            shared.violate(Property::Order, || {
                format!("session {session} got message {message} of queue {queue} after a later one of session {publisher}")
            });
        }
        *latest = key;
        let latest = self.queue_sent.entry((session, queue, priority)).or_default();
        if confirmed.is_some_and(|confirmed| confirmed < *latest) {
            shared.violate(Property::Order, || {
                format!("session {session} got message {message} of queue {queue} after one sent when it was confirmed")
            });
        }
        *latest = (*latest).max(sent.unwrap_or(0));
    }
}
