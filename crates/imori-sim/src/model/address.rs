//! Checks that a message arrives from the queue it was sent to, or from its dead-letter queue.

use super::model::Model;
use super::records::{Arrived, Outcome};
use crate::machine::Shared;
use crate::property::Property;

impl Model {
    /// Checks that the message was sent to this queue, or died for a valid reason on its way here.
    pub(super) fn check_address(&mut self, shared: &Shared, arrived: &Arrived<'_>, queue: usize) {
        let message = arrived.message;
        let spec = self.queue(queue);
        let name = spec.name.clone();
        if !spec.is_dead_letter_queue {
            if !self.is_for(message, queue) || arrived.death.is_some() {
                shared
                    .violate(Property::Visibility, || format!("message {message} is not for queue `{name}`"));
            }
            return;
        }
        let Some((reason, died_in)) = arrived.death else {
            shared.violate(Property::DeadLetter, || format!("message {message} came to `{name}` alive"));
            return;
        };
        let origin =
            self.queues.iter().position(|spec| spec.name == died_in && spec.dead_letter == Some(queue));
        let Some(origin) = origin else {
            shared.violate(Property::DeadLetter, || {
                format!("message {message} died in `{died_in}`, came to `{name}`")
            });
            return;
        };
        let spec = self.queue(origin);
        let (has_ttl, has_length, has_limit) =
            (spec.ttl_ms.is_some(), spec.is_bounded, spec.has_delivery_limit);
        // After an end of the broker it is unknown which messages a full queue refused.
        let may_be_refused = spec.refuses && !self.crashes.is_empty();
        let last = self.last_deliveries.get(&(message, origin)).copied();
        let has_ttl = has_ttl || self.message(message).has_ttl;
        let is_allowed = match reason {
            "expired" => has_ttl,
            "maxlen" => has_length,
            "delivery_limit" => has_limit,
            "rejected" => may_be_refused || last.is_some_and(|last| last.outcome == Outcome::Reject),
            _ => false,
        };
        let is_with_consumer = last.is_some_and(|last| match last.outcome {
            Outcome::Auto => !last.is_of_earlier_life,
            Outcome::Open | Outcome::Accept => !self.is_over(shared, last.session),
            Outcome::Release | Outcome::Reject => false,
        });
        if !is_allowed || is_with_consumer {
            shared.violate(Property::DeadLetter, || {
                format!(
                    "message {message} died of `{reason}` in `{died_in}`; its latest delivery is {last:?}"
                )
            });
        }
    }
}
