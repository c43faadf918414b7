//! Checks that a queue with a single active consumer delivers to one at a time.

use super::model::Model;
use crate::machine::Shared;
use crate::property::Property;

impl Model {
    /// Checks a delivery by this subscription: the one before it must be over, unless it is the
    /// same.
    pub(super) fn check_single_active(&mut self, shared: &Shared, subscription: usize, queue: usize) {
        let is_get = self.subscriptions.get(subscription).is_some_and(|record| record.is_get);
        if !self.queue(queue).is_single_active || is_get {
            return;
        }
        let active = self.active.get(&queue).copied().filter(|active| *active != subscription);
        if active.is_none_or(|active| self.is_subscription_over(shared, active)) {
            self.active.insert(queue, subscription);
        } else if !self.is_subscription_over(shared, subscription) {
            // A subscription that is over may still read earlier deliveries.
            shared.violate(Property::SingleActive, || {
                format!("queue {queue} gives to subscription {subscription} while {active:?} is there")
            });
        }
    }

    fn is_subscription_over(&self, shared: &Shared, subscription: usize) -> bool {
        self.subscriptions
            .get(subscription)
            .is_none_or(|record| record.unsubscribed_at.is_some() || self.is_over(shared, record.session))
    }
}
