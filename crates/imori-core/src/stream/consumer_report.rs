//! The state of a consumer, as clients and operators are told of it.

use super::consumer::{Position, StreamConsumer};
use super::settings::ConsumerSettings;
use crate::name::Name;
use crate::time::Time;

impl StreamConsumer {
    /// The name within the stream; durable consumers are found by it.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The settings in force, as the last request left them.
    pub fn settings(&self) -> &ConsumerSettings {
        &self.settings
    }

    /// When it was made.
    pub fn created(&self) -> Time {
        self.created
    }

    /// The latest delivery, and when it was.
    pub fn delivered(&self) -> (Position, Option<Time>) {
        (self.delivered, self.last_delivery)
    }

    /// The delivery up to which all are acknowledged, and when the last acknowledgement came.
    pub fn floor(&self) -> (Position, Option<Time>) {
        (self.floor, self.last_ack)
    }

    /// Number of unacknowledged deliveries.
    pub fn pending_len(&self) -> usize {
        self.pending.len()
    }

    /// Number of unacknowledged messages that were delivered more than once.
    pub fn redelivered_len(&self) -> usize {
        self.pending.values().filter(|pending| pending.deliveries > 1).count()
    }

    /// Number of requests that wait.
    pub fn waiting_len(&self) -> usize {
        self.requests.len()
    }

    /// Number of messages that nobody has got yet.
    pub fn unread(&self) -> u64 {
        self.unread
    }

    /// Whether the deliver subject has a subscription.
    pub fn is_active(&self) -> bool {
        self.is_active
    }

    /// Whether deliveries wait for a time in the future.
    pub fn is_paused(&self, now: Time) -> bool {
        self.settings.paused_until.is_some_and(|until| until > now)
    }
}
