//! Delayed messages, and messages with an id that others share.

use std::time::Duration;

use crate::random::Random;

/// The delays of a run's messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delays {
    /// Delayed messages among eight.
    share: usize,
    min_ms: usize,
    max_ms: usize,
}

impl Delays {
    /// Picks delays: some end during other activity, some at rest, and some later still. With
    /// `passes` none is that long, because delayed messages may keep up a memory alarm.
    pub(crate) fn new(random: &Random, passes: bool) -> Delays {
        let spans = [(1, 40), (1, 40), (2_000, 5_000), (20_000, 60_000), (20_000, 60_000)];
        let of = if passes { 3 } else { spans.len() };
        let (min_ms, max_ms) = *random.pick(spans.get(..of).unwrap_or(&spans));
        Delays { share: *random.pick(&[1, 4, 7]), min_ms, max_ms }
    }

    /// The delay of the next message, if it is delayed.
    pub(crate) fn next_ms(&self, random: &Random) -> Option<u64> {
        random.chance(self.share, 8).then(|| random.between(self.min_ms, self.max_ms) as u64)
    }
}

/// The ids that a run's messages share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Repeats {
    /// Messages among eight that bear an id which others may share.
    share: usize,
    pub(crate) window: Duration,
}

impl Repeats {
    /// Picks a window: most end while clients are active, some only during a long rest. With
    /// `passes` none is that long, because its ids may keep up a memory alarm.
    pub(crate) fn new(random: &Random, passes: bool) -> Repeats {
        let windows = [10, 40, 200, 60_000];
        let of = if passes { 3 } else { windows.len() };
        let window_ms = *random.pick(windows.get(..of).unwrap_or(&windows));
        Repeats { share: *random.pick(&[3, 7]), window: Duration::from_millis(window_ms) }
    }

    /// Whether the next message bears an id that others may share.
    pub(crate) fn is_next(&self, random: &Random) -> bool {
        random.chance(self.share, 8)
    }

    /// Whether the window outlasts everything but a long rest.
    pub(crate) fn is_long(&self) -> bool {
        self.window > Duration::from_secs(1)
    }
}
