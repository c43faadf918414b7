//! The pace of a consumer's deliveries: what its reader has not confirmed yet, how many bytes a second it may get, and
//! the intervals at which the messages were stored.

use std::time::Duration;

use super::settings::ConsumerSettings;
use crate::time::Time;

/// Bytes that a consumer delivers before its reader has to have answered a request of flow control, once the reader has
/// answered often enough. Same as in nats-server.
const WINDOW_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// The window of a reader that has answered nothing yet. Same as in nats-server.
const WINDOW_BYTES_FIRST: u64 = WINDOW_BYTES_MAX / 16;

/// Bytes that a consumer with a limit of bytes a second sends at once, unless its stream limits the size of messages.
const BURST_BYTES: u64 = 1024 * 1024;

/// Intervals up to this are not kept. Same as in nats-server.
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// What slows a consumer down.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    flow: Option<Flow>,
    rate: Option<Rate>,
    replay: Option<Replay>,
    /// When the next message may be delivered.
    pub(crate) held_until: Option<Time>,
}

/// The window of flow control.
#[derive(Debug)]
struct Flow {
    window: u64,
    /// Bytes that were delivered and not confirmed.
    unconfirmed: u64,
    /// Number of requests so far.
    requests: u64,
    asked: Option<Asked>,
}

/// The request of flow control that waits for its answer.
#[derive(Debug, Clone, Copy)]
struct Asked {
    /// Bytes that the answer confirms.
    bytes: u64,
    /// The last delivery before it.
    up_to: u64,
}

/// A limit of bytes a second.
#[derive(Debug)]
struct Rate {
    bytes_a_second: u64,
    burst: u64,
    /// When everything that was delivered would have been, at an even pace.
    paid: Time,
}

/// The intervals of stored messages.
#[derive(Debug)]
struct Replay {
    /// The last message that has an interval before it.
    last: u64,
    /// When the previous message was stored, and when it was delivered.
    previous: Option<(Time, Time)>,
}

impl Pace {
    /// The pace of a consumer with these settings; `None` if nothing slows it down. `last` is the stream's last message,
    /// `message_bytes_max` its limit for the size of messages.
    pub(crate) fn of(
        settings: &ConsumerSettings,
        last: u64,
        message_bytes_max: Option<u64>,
    ) -> Option<Box<Pace>> {
        let push = settings.push.as_ref();
        let flow = push.filter(|push| push.has_flow_control).map(|_| Flow {
            window: WINDOW_BYTES_FIRST,
            unconfirmed: 0,
            requests: 0,
            asked: None,
        });
        let rate = push.and_then(|push| push.bytes_a_second_max).map(|bytes_a_second| Rate {
            bytes_a_second: bytes_a_second.max(1),
            burst: message_bytes_max.unwrap_or(BURST_BYTES),
            paid: Time(0),
        });
        let replay = settings.keeps_intervals.then_some(Replay { last, previous: None });
        let is_any = flow.is_some() || rate.is_some() || replay.is_some();
        is_any.then(|| Box::new(Pace { flow, rate, replay, held_until: None }))
    }

    /// Whether the reader has to answer before it gets more.
    pub(crate) fn is_stalled(&self) -> bool {
        self.flow.as_ref().is_some_and(|flow| flow.unconfirmed > flow.window)
    }

    /// When a message of `bytes` bytes, stored at `stored`, may be delivered; `None` if that is now.
    pub(crate) fn due(&self, sequence: u64, bytes: u64, stored: Time, now: Time) -> Option<Time> {
        let rate = self.rate.as_ref().map_or(Time(0), |rate| rate.due(bytes, now));
        let replay = self.replay.as_ref().map_or(Time(0), |replay| replay.due(sequence, stored));
        Some(rate.max(replay)).filter(|due| *due > now)
    }

    /// Notes a delivery. Returns the number of the request of flow control that is to follow, if one is.
    pub(crate) fn delivered(&mut self, sequence: u64, bytes: u64, stored: Time, now: Time) -> Option<u64> {
        self.held_until = None;
        if let Some(rate) = &mut self.rate {
            rate.paid = rate.paid.max(now).after(rate.cost(bytes));
        }
        if let Some(replay) = &mut self.replay {
            replay.previous = Some((stored, now));
        }
        if self.replay.as_ref().is_some_and(|replay| sequence >= replay.last) {
            self.replay = None;
        }
        let flow = self.flow.as_mut()?;
        flow.unconfirmed += bytes;
        if flow.asked.is_none() && flow.unconfirmed > flow.window / 2 {
            return self.ask(sequence);
        }
        // A reader that answers late confirms what it got meanwhile too.
        if let Some(asked) = &mut flow.asked
            && flow.unconfirmed - asked.bytes >= flow.window
        {
            asked.bytes += bytes;
        }
        None
    }

    /// The number of a new request of flow control, unless one waits for its answer.
    pub(crate) fn ask(&mut self, up_to: u64) -> Option<u64> {
        let flow = self.flow.as_mut().filter(|flow| flow.asked.is_none())?;
        flow.requests += 1;
        flow.asked = Some(Asked { bytes: flow.unconfirmed, up_to });
        Some(flow.requests)
    }

    /// The number of the request that waits for its answer.
    pub(crate) fn unanswered(&self) -> Option<u64> {
        self.flow.as_ref().filter(|flow| flow.asked.is_some()).map(|flow| flow.requests)
    }

    /// Notes an answer; returns the last delivery that it speaks for. An answer to an earlier request changes nothing.
    pub(crate) fn answered(&mut self, number: u64) -> Option<u64> {
        let flow = self.flow.as_mut().filter(|flow| flow.requests == number)?;
        let asked = flow.asked.take()?;
        flow.window = (flow.window * 2).min(WINDOW_BYTES_MAX);
        flow.unconfirmed = flow.unconfirmed.saturating_sub(asked.bytes);
        Some(asked.up_to)
    }

    /// Forgets what the last reader has not confirmed, since another one will come.
    pub(crate) fn reader_is_gone(&mut self) {
        if let Some(flow) = &mut self.flow {
            (flow.unconfirmed, flow.asked) = (0, None);
        }
    }
}

impl Rate {
    /// The time that `bytes` take. A message larger than the burst costs no more than that, or it would never go.
    fn cost(&self, bytes: u64) -> Duration {
        let micros = bytes.saturating_mul(1_000_000) / self.bytes_a_second;
        Duration::from_micros(micros)
    }

    fn due(&self, bytes: u64, now: Time) -> Time {
        let behind = self.cost(self.burst.saturating_sub(bytes));
        Time(self.paid.max(now).0.saturating_sub(u64::try_from(behind.as_micros()).unwrap_or(u64::MAX)))
    }
}

impl Replay {
    fn due(&self, sequence: u64, stored: Time) -> Time {
        let Some((before, delivered)) = self.previous.filter(|_| sequence <= self.last) else {
            return Time(0);
        };
        let interval = stored.since(before);
        if interval > INTERVAL_MIN { delivered.after(interval) } else { Time(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Name;
    use crate::stream::Push;

    const MIB: u64 = 1024 * 1024;

    fn pace(has_flow_control: bool, bytes_a_second_max: Option<u64>, keeps_intervals: bool) -> Box<Pace> {
        let push = Push {
            subject: Name::from("d"),
            group: None,
            has_flow_control,
            is_acked_by_flow: false,
            bytes_a_second_max,
            heartbeat: None,
        };
        let settings = ConsumerSettings { push: Some(push), keeps_intervals, ..ConsumerSettings::plain() };
        Pace::of(&settings, 3, Some(1000)).expect("something slows the consumer down")
    }

    #[test]
    fn a_reader_that_does_not_answer_stalls_and_an_answer_doubles_the_window() {
        let mut pace = pace(true, None, false);
        let at = Time(0);
        assert_eq!(pace.delivered(1, MIB, at, at), None);
        assert_eq!(pace.delivered(2, 1, at, at), Some(1), "more than half of the window is unconfirmed");
        assert_eq!(pace.delivered(3, MIB - 1, at, at), None);
        assert!(!pace.is_stalled());
        assert_eq!(pace.delivered(4, 1, at, at), None);
        assert!(pace.is_stalled());
        assert_eq!(pace.unanswered(), Some(1));
        assert_eq!(pace.answered(7), None, "it was not asked");
        assert_eq!(pace.answered(1), Some(2));
        assert!(!pace.is_stalled());
        assert_eq!((pace.unanswered(), pace.answered(1)), (None, None));
        assert_eq!(pace.delivered(5, MIB, at, at), None, "the window is 4 MiB now");
        assert_eq!(pace.delivered(6, 1, at, at), Some(2));
        pace.reader_is_gone();
        assert_eq!(pace.delivered(7, 2 * MIB, at, at), None);
    }

    #[test]
    fn bytes_a_second_are_limited_behind_a_burst() {
        let mut pace = pace(false, Some(1000), false);
        let start = Time(5_000_000);
        assert_eq!(pace.due(1, 1000, start, start), None);
        pace.delivered(1, 1000, start, start);
        assert_eq!(pace.due(2, 1000, start, start), Some(Time(6_000_000)));
        assert_eq!(pace.due(2, 500, start, start), Some(Time(5_500_000)));
        assert_eq!(pace.due(2, 1000, start, Time(6_000_000)), None);
        assert_eq!(pace.due(2, 9000, start, Time(9_000_000)), None, "a message beyond the burst goes too");
    }

    #[test]
    fn intervals_are_kept_up_to_the_last_message_that_was_there() {
        let mut pace = pace(false, None, true);
        let (first, second, third) = (Time(1_000_000), Time(1_000_500), Time(3_000_000));
        let now = Time(9_000_000);
        assert_eq!(pace.due(1, 1, first, now), None);
        pace.delivered(1, 1, first, now);
        assert_eq!(pace.due(2, 1, second, now), None, "half a millisecond is not worth a timer");
        pace.delivered(2, 1, second, now);
        assert_eq!(pace.due(3, 1, third, now), Some(Time(10_999_500)));
        pace.delivered(3, 1, third, Time(10_999_500));
        assert_eq!(pace.due(4, 1, Time(9_900_000), Time(10_999_500)), None);
    }
}
