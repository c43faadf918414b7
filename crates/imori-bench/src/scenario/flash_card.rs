//! A model of a broker that freezes for 1 s in every 45 s, like a flash card that won every
//! comparison of averages.
//!
//! One server takes 0.2 ms ± 20 % per operation, for ten minutes of simulated time. An open loop
//! shows the freezes from the 99th percentile on; a closed loop does not, whatever its pace.

use crate::load::schedule::Schedule;
use crate::options::Arrival;
use crate::record::Timeline;

const S: u64 = 1_000_000_000;
const END: u64 = 600 * S;
const PERIOD: u64 = 45 * S;
/// Start of the first freeze.
const PHASE: u64 = 20 * S;
const FREEZE: u64 = S;

/// The server: the time at which it is next free, and its random numbers.
struct Card {
    free: u64,
    state: u64,
}

impl Card {
    fn new() -> Card {
        Card { free: 0, state: 42 }
    }

    /// The completion time of an operation that arrives at `arrived`.
    fn done(&mut self, arrived: u64) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let took = 160_000 + (self.state >> 33) % 80_000;
        let mut begin = arrived.max(self.free);
        let into = (begin + PERIOD - PHASE) % PERIOD;
        if into < FREEZE {
            begin += FREEZE - into;
        }
        self.free = begin + took;
        self.free
    }
}

fn open_loop() -> Timeline {
    let (mut card, mut timeline) = (Card::new(), Timeline::new());
    timeline.start(0);
    let mut schedule = Schedule::new(Arrival::Poisson, 1_000.0, 1, (0, 1), (0, END));
    while let Some(due) = schedule.peek() {
        timeline.sent_due(due, due);
        timeline.response(due, Some(0), card.done(due));
        schedule.advance();
    }
    timeline.finish();
    timeline
}

/// One operation in flight, and a gap before the next.
fn closed_loop(gap: u64) -> Timeline {
    let (mut card, mut timeline) = (Card::new(), Timeline::new());
    timeline.start(0);
    let mut now = 0;
    while now < END {
        let done = card.done(now);
        timeline.sent(now, 1);
        timeline.response(now, None, done);
        now = done.max(now + gap);
    }
    timeline.finish();
    timeline
}

#[test]
fn an_open_loop_sees_the_freezes_where_a_closed_one_does_not() {
    let at = |timeline: &Timeline, quantile| timeline.total().quantile_us(quantile).unwrap() / 1_000.0;
    for (name, timeline, p99, p999) in [
        ("closed, flat out", closed_loop(0), 0.239, 0.239),
        ("closed, each ms", closed_loop(1_000_000), 0.239, 0.239),
        ("open", open_loop(), 631.0, 964.0),
    ] {
        assert!((at(&timeline, 0.5) - 0.2).abs() < 0.03, "{name}: the median tells nothing");
        for (quantile, expected) in [(0.99, p99), (0.999, p999)] {
            let found = at(&timeline, quantile);
            assert!((found / expected - 1.0).abs() < 0.02, "{name}: p{quantile} is {found} ms");
        }
        let max = timeline.total().max_us().unwrap() / 1e6;
        assert!((max - 1.0).abs() < 0.01, "{name}: each sees the longest, {max} s");
    }
}
