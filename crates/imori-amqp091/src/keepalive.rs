//! Heartbeats, both ways.

use std::time::Duration;

use imori_core::inbound::Reading;
use imori_core::time::Time;

/// Deadlines that have passed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    /// The client has sent nothing for too long: this long.
    pub(crate) silence: Option<Duration>,
    /// The time has come to see whether something was sent.
    pub(crate) beat: bool,
}

/// Deadlines of the heartbeat that was agreed on.
#[derive(Debug)]
pub(crate) struct Keepalive {
    /// The time that was agreed on; nothing where there are no heartbeats.
    every: Option<Duration>,
    next_look: Time,
    /// The bytes that the outbound half had appended at the last look.
    appended: u64,
}

impl Keepalive {
    /// Nothing is agreed on.
    pub(crate) fn new(now: Time) -> Keepalive {
        Keepalive { every: None, next_look: now, appended: 0 }
    }

    /// A heartbeat is agreed on; none if it is zero.
    pub(crate) fn agreed(&mut self, every: Duration, now: Time) {
        self.every = (!every.is_zero()).then_some(every);
        self.look_next(now);
    }

    pub(crate) fn next_deadline(&self, reading: &Reading) -> Option<Time> {
        let look = self.every.map(|_| self.next_look);
        [look, self.silent_at(reading)].into_iter().flatten().min()
    }

    /// Gives the deadlines that have passed. A look is due once.
    pub(crate) fn due(&mut self, now: Time, reading: &Reading) -> Due {
        let beat = self.every.is_some() && self.next_look <= now;
        if beat {
            self.look_next(now);
        }
        let is_silent = self.silent_at(reading).is_some_and(|at| at <= now);
        Due { silence: self.silence_max().filter(|_| is_silent), beat }
    }

    /// Notes how much was ever appended; says whether nothing was since the last look.
    pub(crate) fn is_idle(&mut self, appended: u64) -> bool {
        std::mem::replace(&mut self.appended, appended) == appended
    }

    /// With a look at each half of the time, the pause between two bytes is never longer than agreed.
    fn look_next(&mut self, now: Time) {
        self.next_look = now.after(self.every.unwrap_or_default() / 2);
    }

    /// AMQP 0-9-1, 4.2.7: two intervals without a byte, and the peer is gone.
    fn silence_max(&self) -> Option<Duration> {
        self.every.map(|every| every * 2)
    }

    fn silent_at(&self, reading: &Reading) -> Option<Time> {
        self.silence_max().filter(|_| !reading.is_paused()).map(|max| reading.last_received().after(max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    #[test]
    fn looks_come_twice_an_interval_and_silence_after_two() {
        let mut reading = Reading::new(Duration::from_secs(10), Time(0));
        let mut keepalive = Keepalive::new(Time(0));
        keepalive.agreed(Duration::from_secs(4), Time(0));
        for (at, beat, silent, next) in
            [(1, false, false, 2), (2, true, false, 4), (5, true, false, 7), (8, true, true, 8)]
        {
            let due = keepalive.due(Time(at * SECOND), &reading);
            assert_eq!((due.beat, due.silence.is_some()), (beat, silent), "at {at}");
            assert_eq!(keepalive.next_deadline(&reading), Some(Time(next * SECOND)), "at {at}");
        }
        reading.pause();
        let due = keepalive.due(Time(9 * SECOND), &reading);
        assert_eq!(due.silence, None, "who is not read from is not silent");
    }

    #[test]
    fn without_heartbeats_nothing_is_due() {
        let reading = Reading::new(Duration::from_secs(10), Time(0));
        let mut keepalive = Keepalive::new(Time(10));
        keepalive.agreed(Duration::ZERO, Time(0));
        assert_eq!(keepalive.next_deadline(&reading), None);
        assert_eq!(keepalive.due(Time(u64::MAX), &reading), Due::default());
    }
}
