//! A queue with a single active consumer gives to one at a time.

use super::model::Model;
use crate::machine::Shared;
use crate::property::Property;

impl Model {
    /// A delivery came by this subscription: the one before it got all of them, or is over.
    pub(super) fn check_single_active(&mut self, shared: &Shared, subscription: usize, queue: usize) {
        let is_get = self.subscriptions.get(subscription).is_some_and(|record| record.is_get);
        if !self.queue(queue).is_single_active || is_get {
            return;
        }
        let active = self.active.get(&queue).copied().filter(|active| *active != subscription);
        if active.is_none_or(|active| self.is_subscription_over(shared, active)) {
            self.active.insert(queue, subscription);
        } else if !self.is_subscription_over(shared, subscription) {
            // Who is over may still read what it got before.
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
