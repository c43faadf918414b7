//! Heart-beats, both ways.

use std::time::Duration;

use imori_core::inbound::Reading;
use imori_core::time::Time;

use crate::heart_beat::Agreed;

/// Deadlines that have passed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    /// The client has sent nothing for too long: this long.
    pub(crate) silence: Option<Duration>,
    /// The time has come to see whether something was sent.
    pub(crate) beat: bool,
}

/// Deadlines of the heart-beats that were agreed on.
#[derive(Debug)]
pub(crate) struct Keepalive {
    /// Half of what was agreed on, so that with a look at each the pause is never longer.
    look_every: Option<Duration>,
    next_look: Time,
    /// Twice what was agreed on: the margin that the specification asks for.
    silence_max: Option<Duration>,
    /// The bytes that the outbound half had appended at the last look.
    appended: u64,
}

impl Keepalive {
    pub(crate) fn new(now: Time) -> Self {
        Self { look_every: None, next_look: now, silence_max: None, appended: 0 }
    }

    /// The client is in, and these heart-beats are agreed on.
    pub(crate) fn logged_in(&mut self, agreed: Agreed, now: Time) {
        self.look_every = agreed.send_every.map(|every| every / 2);
        self.silence_max = agreed.receive_every.map(|every| every.saturating_mul(2));
        self.look_next(now);
    }

    pub(crate) fn next_deadline(&self, reading: &Reading) -> Option<Time> {
        let look = self.look_every.map(|_| self.next_look);
        [look, self.silent_at(reading)].into_iter().flatten().min()
    }

    /// Gives the deadlines that have passed. A look is due once.
    pub(crate) fn due(&mut self, now: Time, reading: &Reading) -> Due {
        let beat = self.look_every.is_some() && self.next_look <= now;
        if beat {
            self.look_next(now);
        }
        Due {
            silence: self.silence_max.filter(|_| self.silent_at(reading).is_some_and(|at| at <= now)),
            beat,
        }
    }

    /// Notes how much was ever appended; says whether nothing was since the last look.
    pub(crate) fn is_idle(&mut self, appended: u64) -> bool {
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

    #[test]
    fn looks_come_twice_an_interval_and_silence_after_two() {
        let mut reading = Reading::new(Duration::from_secs(10), Time(0));
        let mut keepalive = Keepalive::new(Time(0));
        let agreed =
            Agreed { send_every: Some(Duration::from_secs(4)), receive_every: Some(Duration::from_secs(3)) };
        keepalive.logged_in(agreed, Time(0));
        for (at, beat, silent, next) in [
            (1, false, false, 2),
            (2, true, false, 4),
            (5, true, false, 6),
            (6, false, true, 6),
            (7, true, true, 6),
        ] {
            let due = keepalive.due(Time(at * SECOND), &reading);
            assert_eq!((due.beat, due.silence.is_some()), (beat, silent), "at {at}");
            assert_eq!(keepalive.next_deadline(&reading), Some(Time(next * SECOND)), "at {at}");
        }
        reading.pause();
        let due = keepalive.due(Time(8 * SECOND), &reading);
        assert_eq!(due.silence, None, "who is not read from is not silent");
    }

    #[test]
    fn without_heart_beats_nothing_is_due() {
        let reading = Reading::new(Duration::from_secs(10), Time(0));
        let mut keepalive = Keepalive::new(Time(10));
        keepalive.logged_in(Agreed { send_every: None, receive_every: None }, Time(0));
        assert_eq!(keepalive.next_deadline(&reading), None);
        assert_eq!(keepalive.due(Time(u64::MAX), &reading), Due::default());
    }
}
