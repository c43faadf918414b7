//! Checks that a message is with one consumer at a time, and is marked if it may have been
//! delivered before.

use imori_core::time::Time;

use super::model::Model;
use super::records::{Arrived, Outcome, Reads, SessionRecord};
use crate::broker_end::Crash;
use crate::machine::Shared;
use crate::property::Property;

impl Model {
    /// Checks that no other consumer has the message, and that it is marked if it was delivered
    /// before.
    pub(super) fn check_single(&mut self, shared: &Shared, arrived: &Arrived<'_>, queue: usize) {
        let message = arrived.message;
        let spec = self.queue(queue);
        let record = self.messages.get(message);
        let sent = record.and_then(|record| record.sent_at);
        // A dead letter is not delayed.
        let due = record.and_then(|record| record.due).filter(|_| !spec.is_dead_letter_queue);
        let was_before = |crash: u64| sent.is_some_and(|sent| sent <= crash);
        let is_restored = self.last_crash().is_some_and(was_before);
        if is_restored && !spec.is_dead_letter_queue {
            if !record.is_some_and(|record| record.is_persistent) || spec.is_transient && !spec.is_volatile {
                shared.violate(Property::Durability, || {
                    format!("message {message} outlived the broker, for which it was not made")
                });
            }
            // A message that was due only after the restart had not been delivered before.
            let is_marked = |crash: &Crash| {
                !crash.was_clean && was_before(crash.at) && due.is_none_or(|due| due.latest < crash.back)
            };
            if !arrived.is_redelivered && self.crashes.iter().any(is_marked) {
                shared.violate(Property::Duplication, || {
                    format!("message {message} outlived the broker and does not say that it may come again")
                });
            }
        }
        if is_restored && !spec.is_dead_letter_queue && due.is_none() {
            self.check_restored_order(shared, arrived.session, message, queue);
        }
        let spec = self.queue(queue);
        // The broker may forget a death; the message then dies again as if it had never been
        // delivered.
        let may_be_unmarked = spec.is_dead_letter_queue;
        let Some(last) = self.last_deliveries.get(&(message, queue)).copied() else {
            // A later start no longer knows which messages were due when the doubt arose.
            let back = self.crashes.last().map_or(Time(0), |crash| crash.back);
            let is_doubtful = due.is_none_or(|due| due.earliest < back)
                && self.crashes.iter().any(|crash| !crash.was_clean && was_before(crash.at));
            let is_known = !self.is_incomplete && !is_doubtful && !self.is_being_left(shared, queue);
            if arrived.is_redelivered && is_known {
                shared.violate(Property::Duplication, || {
                    format!("message {message} is marked as redelivered but nobody had it")
                });
            }
            return;
        };
        let is_allowed = match last.outcome {
            Outcome::Auto => last.is_of_earlier_life,
            Outcome::Release => true,
            Outcome::Open => self.is_over(shared, last.session),
            Outcome::Accept | Outcome::Reject => self.is_over(shared, last.session) && !last.is_processed,
        };
        if !is_allowed {
            let session = arrived.session;
            shared.violate(Property::Duplication, || {
                format!("message {message} of queue {queue} came to session {session} although {last:?}")
            });
        }
        if !(arrived.is_redelivered || may_be_unmarked && last.is_of_earlier_life) {
            shared.violate(Property::Duplication, || {
                format!("message {message} of queue {queue} came again without the mark")
            });
        }
    }

    /// Whether a session that reads the queue has said goodbye without reading all its deliveries,
    /// or ended in the middle of one.
    fn is_being_left(&self, shared: &Shared, queue: usize) -> bool {
        let is_left = |session: &SessionRecord| {
            let pipe = shared.network.pipe(session.pipe);
            let is_read = session.is_answered || session.is_crashed || pipe.is_over && !pipe.has_last_bytes;
            session.has_part || session.left_at.is_some() && !is_read
        };
        self.subscriptions.iter().any(|record| {
            record.reads == Reads::Queue(queue) && self.sessions.get(record.session).is_some_and(is_left)
        })
    }
}
