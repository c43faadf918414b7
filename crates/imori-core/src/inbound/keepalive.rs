//! Heart-beats in both directions, for the protocols that negotiate them.

use std::time::Duration;

use super::intake::Reading;
use crate::time::Time;

/// The deadlines that have passed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// The client has been silent for longer than this.
    pub silence: Option<Duration>,
    /// It is time to check whether anything was sent.
    pub beat: bool,
}

/// The deadlines of the negotiated heart-beats.
#[derive(Debug)]
pub struct Keepalive {
    /// Half the negotiated interval, so that checking at each deadline never leaves a longer gap.
    look_every: Option<Duration>,
    next_look: Time,
    /// Twice the negotiated interval: the margin that STOMP 1.2 asks for, and the two intervals of
    /// AMQP 0-9-1, 4.2.7.
    silence_max: Option<Duration>,
    /// The total bytes appended to the outbound half as of the last check.
    appended: u64,
}

impl Keepalive {
    /// A state without negotiated heart-beats.
    pub fn new(now: Time) -> Self {
        Self { look_every: None, next_look: now, silence_max: None, appended: 0 }
    }

    /// Sets the negotiated intervals; `None` where a direction has no heart-beats.
    pub fn agreed(&mut self, send_every: Option<Duration>, receive_every: Option<Duration>, now: Time) {
        self.look_every = send_every.map(|every| every / 2);
        self.silence_max = receive_every.map(|every| every.saturating_mul(2));
        self.look_next(now);
    }

    /// The next deadline, if there is one.
    pub fn next_deadline(&self, reading: &Reading) -> Option<Time> {
        let look = self.look_every.map(|_| self.next_look);
        [look, self.silent_at(reading)].into_iter().flatten().min()
    }

    /// The deadlines that have passed. A check is reported once.
    pub fn due(&mut self, now: Time, reading: &Reading) -> Due {
        let beat = self.look_every.is_some() && self.next_look <= now;
        if beat {
            self.look_next(now);
        }
        Due {
            silence: self.silence_max.filter(|_| self.silent_at(reading).is_some_and(|at| at <= now)),
            beat,
        }
    }

    /// Records the total bytes appended; returns whether nothing was appended since the last check.
    pub fn is_idle(&mut self, appended: u64) -> bool {
        std::mem::replace(&mut self.appended, appended) == appended
    }

    fn look_next(&mut self, now: Time) {
        self.next_look = now.after(self.look_every.unwrap_or_default());
    }

    fn silent_at(&self, reading: &Reading) -> Option<Time> {
        self.silence_max.filter(|_| !reading.is_paused()).map(|max| reading.last_received().after(max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    fn seconds(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    #[test]
    fn looks_come_twice_an_interval_and_silence_after_two() {
        // Seconds, whether a beat and a silence are due then, and the time of the next check.
        let apart = [
            (1, false, false, 2),
            (2, true, false, 4),
            (5, true, false, 6),
            (6, false, true, 6),
            (7, true, true, 6),
        ];
        let alike = [(1, false, false, 2), (2, true, false, 4), (5, true, false, 7), (8, true, true, 8)];
        for (receive_every, looks) in [(3, &apart[..]), (4, &alike[..])] {
            let mut reading = Reading::new(Duration::from_secs(10), Time(0));
            let mut keepalive = Keepalive::new(Time(0));
            keepalive.agreed(seconds(4), seconds(receive_every), Time(0));
            for &(at, beat, silent, next) in looks {
                let due = keepalive.due(Time(at * SECOND), &reading);
                assert_eq!((due.beat, due.silence.is_some()), (beat, silent), "at {at}");
                assert_eq!(keepalive.next_deadline(&reading), Some(Time(next * SECOND)), "at {at}");
            }
            reading.pause();
            let due = keepalive.due(Time(9 * SECOND), &reading);
            assert_eq!(due.silence, None, "who is not read from is not silent");
        }
    }

    #[test]
    fn without_heart_beats_nothing_is_due() {
        let reading = Reading::new(Duration::from_secs(10), Time(0));
        let mut keepalive = Keepalive::new(Time(10));
        keepalive.agreed(None, None, Time(0));
        assert_eq!(keepalive.next_deadline(&reading), None);
        assert_eq!(keepalive.due(Time(u64::MAX), &reading), Due::default());
    }
}
