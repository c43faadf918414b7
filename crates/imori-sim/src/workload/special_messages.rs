//! Messages that nobody may have at once, and such that come twice.

use std::time::Duration;

use crate::random::Random;

/// Messages that nobody may have at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delays {
    /// How many of eight messages.
    share: usize,
    min_ms: usize,
    max_ms: usize,
}

impl Delays {
    /// Some are over while other things happen, others when all is still, and some outlive that too. With `passes`
    /// none do: what waits for its time may keep a memory alarm on.
    pub(crate) fn new(random: &Random, passes: bool) -> Delays {
        let spans = [(1, 40), (1, 40), (2_000, 5_000), (20_000, 60_000), (20_000, 60_000)];
        let of = if passes { 3 } else { spans.len() };
        let (min_ms, max_ms) = *random.pick(spans.get(..of).unwrap_or(&spans));
        Delays { share: *random.pick(&[1, 4, 7]), min_ms, max_ms }
    }

    /// For how long the next message is delayed, if it is.
    pub(crate) fn next_ms(&self, random: &Random) -> Option<u64> {
        random.chance(self.share, 8).then(|| random.between(self.min_ms, self.max_ms) as u64)
    }
}

/// Messages that come twice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Repeats {
    /// How many of eight messages bear an id that others will bear.
    share: usize,
    pub(crate) window: Duration,
}

impl Repeats {
    /// Most windows end while clients go on, some only when these have a long rest. With `passes` none does: its ids
    /// may keep a memory alarm on.
    pub(crate) fn new(random: &Random, passes: bool) -> Repeats {
        let windows = [10, 40, 200, 60_000];
        let of = if passes { 3 } else { windows.len() };
        let window_ms = *random.pick(windows.get(..of).unwrap_or(&windows));
        Repeats { share: *random.pick(&[3, 7]), window: Duration::from_millis(window_ms) }
    }

    /// Tells whether the next message bears an id that others may bear.
    pub(crate) fn is_next(&self, random: &Random) -> bool {
        random.chance(self.share, 8)
    }

    /// Clients come to its end only by a long rest.
    pub(crate) fn is_long(&self) -> bool {
        self.window > Duration::from_secs(1)
    }
}
