//! Times until the first, the middle and the last subscriber had each message.

use std::collections::VecDeque;

use crate::record::latency::{Latency, LatencyKind, Recorder};

/// The most messages followed at a time; the remaining deliveries of older messages are not timed.
const FOLLOWED_MAX: usize = 1 << 16;

/// The spread of one publisher's messages over its subscribers.
#[derive(Debug)]
pub(crate) struct Spread {
    subscribers: u32,
    /// Number of subscribers that have had each message, from number `first` on.
    had: VecDeque<u32>,
    first: u32,
    recorders: [Recorder; 3],
}

impl Spread {
    /// Creates the spread over this number of subscribers.
    pub(crate) fn new(subscribers: u32) -> Spread {
        let recorders = [Recorder::new(), Recorder::new(), Recorder::new()];
        Spread { subscribers, had: VecDeque::new(), first: 0, recorders }
    }

    /// Records that one more subscriber had the message, `took` nanoseconds after it was due.
    pub(crate) fn note(&mut self, number: u32, took: u64) {
        let Some(place) = number.checked_sub(self.first) else {
            return;
        };
        let place = place as usize;
        if place >= self.had.len() {
            self.had.resize(place.saturating_add(1), 0);
        }
        if let Some(had) = self.had.get_mut(place) {
            *had += 1;
            let due = [1, self.subscribers.div_ceil(2), self.subscribers];
            for (recorder, _) in self.recorders.iter_mut().zip(due).filter(|(_, due)| due == had) {
                recorder.record(took);
            }
        }
        while self.had.front() == Some(&self.subscribers) || self.had.len() > FOLLOWED_MAX {
            self.had.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }

    /// Clears the times at the end of the warm-up.
    pub(crate) fn clear(&mut self) {
        self.recorders.iter_mut().for_each(Recorder::clear);
    }

    /// Latencies of the first, the middle and the last subscriber.
    pub(crate) fn summary(&self, kind: LatencyKind) -> Vec<(String, Latency)> {
        let names = ["first subscriber", "middle subscriber", "last subscriber"];
        names
            .into_iter()
            .zip(&self.recorders)
            .map(|(name, times)| (name.to_owned(), times.summary(kind)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_the_middle_and_the_last_are_timed() {
        let mut spread = Spread::new(4);
        for (number, took) in [(1, 100), (0, 10), (0, 20), (1, 200), (0, 30), (0, 40), (1, 300), (1, 400)] {
            spread.note(number, took);
        }
        let max: Vec<_> = spread
            .summary(LatencyKind::Queueing)
            .iter()
            .map(|(_, latency)| (latency.samples, (latency.max_us.unwrap() * 1_000.0).round()))
            .collect();
        assert_eq!(max, [(2, 100.0), (2, 200.0), (2, 400.0)]);
        assert!(spread.had.is_empty());
    }
}
