//! The time at which the broker accepted a message with a shared id, as far as clients can know it.

use std::time::Duration;

use imori_core::time::Time;

use crate::machine::Shared;

/// A message's shared id, and when the broker handled the message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Duplicate {
    /// The first message with this id.
    pub(crate) first: usize,
    /// The broker handled the message between these two times, by its own clock.
    earliest: Time,
    latest: Time,
}

/// The first proof that a queue accepted a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    /// The time of the proof.
    pub(crate) at: Time,
    /// The step of the proof.
    pub(crate) step: u64,
    /// Whether the message was dead by then, so that it may have left the queue long before.
    pub(crate) is_dead: bool,
}

impl Duplicate {
    /// The record of a message that is not sent yet.
    pub(crate) fn of(first: usize) -> Duplicate {
        Duplicate { first, earliest: Time::NEVER, latest: Time::NEVER }
    }

    /// Notes that the message, or its commit, is on its way to the broker.
    pub(crate) fn sent(&mut self, shared: &Shared, pipe: usize) {
        let began = shared.network.pipe(pipe).turn_began;
        self.earliest = began.unwrap_or(shared.clock.get());
    }

    /// Notes that the broker has handled the message.
    pub(crate) fn confirmed(&mut self, now: Time) {
        self.latest = now;
    }

    /// The time span in which a queue can have accepted the message, given the first proof.
    pub(crate) fn span(&self, taken: Option<&Taken>) -> Span {
        let latest = taken.map_or(self.latest, |taken| taken.at.min(self.latest));
        Span { earliest: self.earliest, latest }
    }
}

/// The time span in which an event happened.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// The event happened at this time or later.
    pub earliest: Time,
    /// The event happened at this time or earlier.
    pub latest: Time,
}

impl Span {
    /// Whether this event may precede `later` by less than a window.
    pub fn may_hide(&self, later: &Span, window: Duration) -> bool {
        self.earliest <= later.latest && later.earliest < self.latest.after(window)
    }

    /// Whether the two events are certainly less than a window apart, in either order.
    pub fn is_within(&self, other: &Span, window: Duration) -> bool {
        let apart_max = self.latest.since(other.earliest).max(other.latest.since(self.earliest));
        apart_max < window
    }
}
