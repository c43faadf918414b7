//! Counts that a connection and a queue keep of themselves.
//!
//! Each is changed under the lock of what it counts for, by plain additions. Readers take a copy under that lock too.

use std::time::Duration;

use crate::confirm::Level;
use crate::delivery::{Outcome, Taken};
use crate::time::Time;

/// Counts of one connection since it began.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionActivity {
    /// Deliveries to consumers that settle them.
    pub delivered_unsettled: u64,
    /// Messages for a client that asked for one at a time and settles it.
    pub got_unsettled: u64,
    /// Messages for a client that asked for one at a time and does not settle it.
    pub got_settled: u64,
    /// Times that such a client found its queue empty.
    pub got_nothing: u64,
    /// Those deliveries of queues that had been given out before.
    pub redelivered: u64,
    /// Deliveries that the client accepted.
    pub accepted: u64,
    /// Deliveries that the client gave back.
    pub released: u64,
    /// Deliveries that the client rejected.
    pub rejected: u64,
    /// Confirms that left, by [`Level::ALL`].
    pub confirmed: [u64; Level::ALL.len()],
    /// Sessions that were opened, without the first.
    pub sessions_opened: u64,
    /// Those of them that have ended.
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

    /// Counts confirms that left.
    pub(crate) fn confirmed(&mut self, level: Level, confirms: usize) {
        if let Some(count) = self.confirmed.get_mut(level as usize) {
            *count += confirms as u64;
        }
    }

    /// Adds the counts of another connection.
    pub fn add(&mut self, other: &ConnectionActivity) {
        let mut other = *other;
        self.each().into_iter().zip(other.each()).for_each(|(sum, more)| *sum += *more);
    }

    /// Raises each count to that of `other` where this is more.
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

/// Counts of one queue since the broker began, or the queue did.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct QueueActivity {
    /// Messages that the queue took.
    pub published: u64,
    /// Deliveries to consumers that settle them.
    pub delivered_unsettled: u64,
    /// Deliveries to consumers that do not.
    pub delivered_settled: u64,
    /// Messages for a client that asked for one at a time and settles it.
    pub got_unsettled: u64,
    /// Messages for a client that asked for one at a time and does not settle it.
    pub got_settled: u64,
    /// Those of all deliveries that had been given out before.
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

    /// Counts a message that a client asked for and took.
    pub(crate) fn got(&mut self, taken: Taken, is_redelivered: bool) {
        match taken {
            Taken::Unsettled => self.got_unsettled += 1,
            Taken::Settled => self.got_settled += 1,
            Taken::Full | Taken::Gone => return,
        }
        self.redelivered += u64::from(is_redelivered);
    }

    /// All deliveries, of whatever kind.
    #[must_use]
    pub fn deliveries(&self) -> u64 {
        self.delivered_unsettled + self.delivered_settled + self.got_unsettled + self.got_settled
    }
}

/// Follows one waiting message of a queue at a time, to tell how long messages wait.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaitSample(Option<(u64, Time)>);

impl WaitSample {
    /// A message begins to wait; it is followed if no other is.
    #[inline]
    pub(crate) fn begin(&mut self, sequence: u64, now: Time, is_only_one: bool) {
        if self.0.is_none() || is_only_one {
            self.0 = Some((sequence, now));
        }
    }

    /// A message is given out; the time that it waited, if it was followed. One that came later ends the sample, as the
    /// followed one is gone, or will be given out again.
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
