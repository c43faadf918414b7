//! When the broker took a message whose id others bear too, as far as clients can know.

use std::time::Duration;

use imori_core::time::Time;

use crate::machine::Shared;

/// A message that bears an id which others may bear.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Duplicate {
    /// The message that bore the id first.
    pub(crate) first: usize,
    /// The broker came to it in between, by its own clock.
    earliest: Time,
    latest: Time,
}

/// The first sight of a message that a queue took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    /// When it was seen.
    pub(crate) at: Time,
    /// At which step.
    pub(crate) step: u64,
    /// The message was a dead letter then, and may have left the queue long before.
    pub(crate) is_dead: bool,
}

impl Duplicate {
    /// Of a message that is not sent yet.
    pub(crate) fn of(first: usize) -> Duplicate {
        Duplicate { first, earliest: Time::NEVER, latest: Time::NEVER }
    }

    /// Notes that the message's frame, or its commit, is on its way to a connection.
    pub(crate) fn sent(&mut self, shared: &Shared, pipe: usize) {
        let began = shared.network.pipe(pipe).turn_began;
        self.earliest = began.unwrap_or(shared.clock.get());
    }

    /// The broker is done with it.
    pub(crate) fn confirmed(&mut self, now: Time) {
        self.latest = now;
    }

    /// When it can have been taken by a queue of which this is known.
    pub(crate) fn span(&self, taken: Option<&Taken>) -> Span {
        let latest = taken.map_or(self.latest, |taken| taken.at.min(self.latest));
        Span { earliest: self.earliest, latest }
    }
}

/// Something happened in between.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) earliest: Time,
    latest: Time,
}

impl Span {
    /// Tells whether it may be less than a window before the other.
    pub(crate) fn may_hide(&self, later: &Span, window: Duration) -> bool {
        self.earliest <= later.latest && later.earliest < self.latest.after(window)
    }

    /// Tells whether one is less than a window after the other, whichever came first.
    pub(crate) fn is_within(&self, other: &Span, window: Duration) -> bool {
        let apart_max = self.latest.since(other.earliest).max(other.latest.since(self.earliest));
        apart_max < window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_and_what_must_be_within_a_window() {
        let span = |earliest, latest| Span { earliest: Time(earliest), latest: Time(latest) };
        let window = Duration::from_micros(10);
        for (first, second, may_hide, is_within) in [
            (span(100, 100), span(109, 109), true, true),
            (span(100, 100), span(110, 110), false, false),
            (span(100, 101), span(110, 110), true, false),
            (span(100, 100), span(109, 110), true, false),
            (span(100, 100), span(99, 99), false, true),
            (span(100, 100), span(99, 100), true, true),
            (span(100, u64::MAX), span(500, 500), true, false),
        ] {
            assert_eq!(first.may_hide(&second, window), may_hide, "{first:?} {second:?}");
            assert_eq!(first.is_within(&second, window), is_within, "{first:?} {second:?}");
        }
    }
}
