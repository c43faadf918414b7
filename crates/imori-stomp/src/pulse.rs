//! The deadlines of a connection: login, and heart-beats both ways.

use std::time::Duration;

use imori_core::time::Time;

use crate::heart_beat::Agreed;

/// What is due.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    /// The client has not logged in.
    pub(crate) login: bool,
    /// The client has sent nothing for too long: this long.
    pub(crate) silence: Option<Duration>,
    /// It is time to see whether something was sent.
    pub(crate) beat: bool,
}

/// When what is due.
#[derive(Debug)]
pub(crate) struct Pulse {
    login_until: Option<Time>,
    /// Half of what was agreed on, so that with a look at each the pause is never longer.
    look_every: Option<Duration>,
    next_look: Time,
    /// Twice what was agreed on: the margin that the specification asks for.
    silence_max: Option<Duration>,
    last_received: Time,
    is_paused: bool,
    /// What the outbound half had appended at the last look.
    appended: u64,
}

impl Pulse {
    pub(crate) fn new(login_until: Time, now: Time) -> Self {
        Self {
            login_until: Some(login_until),
            look_every: None,
            next_look: now,
            silence_max: None,
            last_received: now,
            is_paused: false,
            appended: 0,
        }
    }

    /// The client is in, and these heart-beats are agreed on.
    pub(crate) fn logged_in(&mut self, agreed: Agreed, now: Time) {
        self.login_until = None;
        self.look_every = agreed.send_every.map(|every| every / 2);
        self.silence_max = agreed.receive_every.map(|every| every.saturating_mul(2));
        self.last_received = now;
        self.look_next(now);
    }

    /// Bytes came, or reading goes on.
    pub(crate) fn received(&mut self, now: Time) {
        self.last_received = now;
        self.is_paused = false;
    }

    /// Nothing is read for now, so that silence is not the client's.
    pub(crate) fn pause(&mut self) {
        self.is_paused = true;
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused
    }

    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let look = self.look_every.map(|_| self.next_look);
        [self.login_until, look, self.silent_at()].into_iter().flatten().min()
    }

    /// What is due now. A look is due once.
    pub(crate) fn due(&mut self, now: Time) -> Due {
        let beat = self.look_every.is_some() && self.next_look <= now;
        if beat {
            self.look_next(now);
        }
        Due {
            login: self.login_until.is_some_and(|until| until <= now),
            silence: self.silence_max.filter(|_| self.silent_at().is_some_and(|at| at <= now)),
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

    fn silent_at(&self) -> Option<Time> {
        self.silence_max.filter(|_| !self.is_paused).map(|max| self.last_received.after(max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    #[test]
    fn login_is_due_whatever_comes() {
        let mut pulse = Pulse::new(Time(10 * SECOND), Time(0));
        for second in 1..10 {
            pulse.received(Time(second * SECOND));
            assert_eq!(pulse.next_deadline(), Some(Time(10 * SECOND)));
            assert_eq!(pulse.due(Time(second * SECOND)), Due::default());
        }
        assert!(pulse.due(Time(10 * SECOND)).login);
    }

    #[test]
    fn looks_come_twice_an_interval_and_silence_after_two() {
        let mut pulse = Pulse::new(Time(10 * SECOND), Time(0));
        let agreed =
            Agreed { send_every: Some(Duration::from_secs(4)), receive_every: Some(Duration::from_secs(3)) };
        pulse.logged_in(agreed, Time(0));
        for (at, beat, silent, next) in [
            (1, false, false, 2),
            (2, true, false, 4),
            (5, true, false, 6),
            (6, false, true, 6),
            (7, true, true, 6),
        ] {
            let due = pulse.due(Time(at * SECOND));
            assert_eq!((due.beat, due.silence.is_some()), (beat, silent), "at {at}");
            assert_eq!(pulse.next_deadline(), Some(Time(next * SECOND)), "at {at}");
        }
        pulse.pause();
        assert_eq!(pulse.due(Time(8 * SECOND)).silence, None, "who is not read from is not silent");
    }

    #[test]
    fn without_heart_beats_nothing_is_due() {
        let mut pulse = Pulse::new(Time(10), Time(0));
        pulse.logged_in(Agreed { send_every: None, receive_every: None }, Time(0));
        assert_eq!(pulse.next_deadline(), None);
        assert_eq!(pulse.due(Time(u64::MAX)), Due::default());
    }
}
