//! Statistics that each connection and each queue keeps of itself.
//!
//! They are plain counters, changed and copied under the lock of their owner.

use std::time::Duration;

use crate::confirm::Level;
use crate::delivery::{Outcome, Taken};
use crate::time::Time;

/// Statistics of one connection since it was opened.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionActivity {
    /// Deliveries to consumers that settle them.
    pub delivered_unsettled: u64,
    /// Messages delivered by a get with settlement.
    pub got_unsettled: u64,
    /// Messages delivered by a get without settlement.
    pub got_settled: u64,
    /// Gets that found the queue empty.
    pub got_nothing: u64,
    /// Deliveries from queues of messages that had been delivered before.
    pub redelivered: u64,
    /// Deliveries that the client accepted.
    pub accepted: u64,
    /// Deliveries that the client released.
    pub released: u64,
    /// Deliveries that the client rejected.
    pub rejected: u64,
    /// Confirms sent, indexed as [`Level::ALL`].
    pub confirmed: [u64; Level::ALL.len()],
    /// Sessions opened, not counting the first.
    pub sessions_opened: u64,
    /// Sessions ended, of those.
    pub sessions_ended: u64,
}

impl ConnectionActivity {
    /// Counts deliveries that the client settled.
    pub(crate) fn settled(&mut self, outcome: Outcome, deliveries: usize) {
        let count = match outcome {
            Outcome::Accept => &mut self.accepted,
            Outcome::Release { .. } | Outcome::Refuse { .. } => &mut self.released,
            Outcome::Reject => &mut self.rejected,
        };
        *count += deliveries as u64;
    }

    /// Counts confirms that were sent.
    pub(crate) fn confirmed(&mut self, level: Level, confirms: usize) {
        if let Some(count) = self.confirmed.get_mut(level as usize) {
            *count += confirms as u64;
        }
    }

    /// Adds the statistics of another connection.
    pub fn add(&mut self, other: &ConnectionActivity) {
        let mut other = *other;
        self.each().into_iter().zip(other.each()).for_each(|(sum, more)| *sum += *more);
    }

    /// Raises each counter to at least its value in `other`.
    pub fn raise_to(&mut self, other: &ConnectionActivity) {
        let mut other = *other;
        self.each().into_iter().zip(other.each()).for_each(|(count, least)| *count = (*count).max(*least));
    }

    fn each(&mut self) -> [&mut u64; 13] {
        let [memory, os, disk] = &mut self.confirmed;
        [
            &mut self.delivered_unsettled,
            &mut self.got_unsettled,
            &mut self.got_settled,
            &mut self.got_nothing,
            &mut self.redelivered,
            &mut self.accepted,
            &mut self.released,
            &mut self.rejected,
            memory,
            os,
            disk,
            &mut self.sessions_opened,
            &mut self.sessions_ended,
        ]
    }
}

/// Statistics of one queue since the broker was started or the queue was declared.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct QueueActivity {
    /// Messages that the queue accepted.
    pub published: u64,
    /// Deliveries to consumers that settle them.
    pub delivered_unsettled: u64,
    /// Deliveries to consumers that do not settle them.
    pub delivered_settled: u64,
    /// Messages delivered by a get with settlement.
    pub got_unsettled: u64,
    /// Messages delivered by a get without settlement.
    pub got_settled: u64,
    /// Deliveries of any kind of messages that had been delivered before.
    pub redelivered: u64,
    /// Deliveries that were accepted.
    pub accepted: u64,
}

impl QueueActivity {
    /// Counts a delivery that a consumer took.
    pub(crate) fn delivered(&mut self, taken: Taken, is_redelivered: bool) {
        match taken {
            Taken::Unsettled => self.delivered_unsettled += 1,
            Taken::Settled => self.delivered_settled += 1,
            Taken::Full | Taken::Gone => return,
        }
        self.redelivered += u64::from(is_redelivered);
    }

    /// Counts a message that a client got on request.
    pub(crate) fn got(&mut self, taken: Taken, is_redelivered: bool) {
        match taken {
            Taken::Unsettled => self.got_unsettled += 1,
            Taken::Settled => self.got_settled += 1,
            Taken::Full | Taken::Gone => return,
        }
        self.redelivered += u64::from(is_redelivered);
    }

    /// The number of deliveries of every kind.
    #[must_use]
    pub fn deliveries(&self) -> u64 {
        self.delivered_unsettled + self.delivered_settled + self.got_unsettled + self.got_settled
    }
}

/// Samples the waiting time of messages in a queue, by following one at a time.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaitSample(Option<(u64, Time)>);

impl WaitSample {
    /// Notes that a message starts to wait; it is followed if no other is.
    #[inline]
    pub(crate) fn begin(&mut self, sequence: u64, now: Time, is_only_one: bool) {
        if self.0.is_none() || is_only_one {
            self.0 = Some((sequence, now));
        }
    }

    /// Notes that a message is delivered; returns its waiting time if it was followed. A message
    /// that arrived later than the followed one ends the sample, because the followed one has left
    /// or will be redelivered.
    #[inline]
    pub(crate) fn end(&mut self, sequence: u64, now: Time) -> Option<Duration> {
        let (followed, since) = self.0?;
        if sequence < followed {
            return None;
        }
        self.0 = None;
        (sequence == followed).then(|| now.since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_message_at_a_time_is_followed() {
        let mut sample = WaitSample::default();
        sample.begin(5, Time(100), true);
        sample.begin(6, Time(150), false);
        assert_eq!(sample.end(4, Time(200)), None, "an earlier one, given out again");
        assert_eq!(sample.end(5, Time(1_100)), Some(Duration::from_millis(1)));
        assert_eq!(sample.end(6, Time(1_100)), None, "it was not followed");
        sample.begin(7, Time(2_000), false);
        assert_eq!(sample.end(9, Time(2_500)), None, "the followed one is gone");
        assert_eq!(sample, WaitSample::default());
    }

    #[test]
    fn counts_are_added_up() {
        let (mut sum, mut one) = (ConnectionActivity::default(), ConnectionActivity::default());
        one.settled(Outcome::Accept, 3);
        one.settled(Outcome::Release { failed: true }, 2);
        one.settled(Outcome::Reject, 1);
        one.confirmed(Level::Disk, 4);
        sum.add(&one);
        sum.add(&one);
        assert_eq!((sum.accepted, sum.released, sum.rejected, sum.confirmed), (6, 4, 2, [0, 0, 8]));
        one.raise_to(&ConnectionActivity { accepted: 2, released: 9, ..ConnectionActivity::default() });
        assert_eq!((one.accepted, one.released), (3, 9));
    }
}
