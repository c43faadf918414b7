//! The deadlines of a connection: login, and the broker's PINGs.

use std::time::Duration;

use imori_core::time::Time;

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing.
    Nothing,
    /// The client has not logged in.
    Login,
    /// The client has said nothing for so long that it is asked for a PONG.
    Ping,
    /// The client has left too many PINGs unanswered.
    Stale,
    /// The broker stops, and the client has had its time to leave.
    Stop,
}

/// When what is due.
#[derive(Debug)]
pub(crate) struct Pulse {
    login_until: Option<Time>,
    /// The broker stops; the client may stay until then.
    stop_at: Option<Time>,
    every: Duration,
    next_look: Time,
    last_received: Time,
    pings_out: u32,
    pings_out_max: u32,
    is_paused: bool,
}

impl Pulse {
    pub(crate) fn new(login_until: Time, every: Duration, pings_out_max: u32, now: Time) -> Self {
        Self {
            login_until: Some(login_until),
            stop_at: None,
            every,
            next_look: now.after(every),
            last_received: now,
            pings_out: 0,
            pings_out_max,
            is_paused: false,
        }
    }

    /// The client is in.
    pub(crate) fn logged_in(&mut self, now: Time) {
        self.login_until = None;
        self.next_look = now.after(self.every);
    }

    /// Bytes came, or reading goes on.
    pub(crate) fn received(&mut self, now: Time) {
        self.last_received = now;
        self.is_paused = false;
    }

    /// A PONG came.
    pub(crate) fn answered(&mut self) {
        self.pings_out = 0;
    }

    /// Nothing is read for now, so that silence is not the client's.
    pub(crate) fn pause(&mut self) {
        self.is_paused = true;
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// The broker stops.
    pub(crate) fn stop_at(&mut self, at: Time) {
        self.stop_at = Some(at);
    }

    pub(crate) fn next_deadline(&self) -> Time {
        let next = self.login_until.unwrap_or(self.next_look);
        self.stop_at.map_or(next, |at| at.min(next))
    }

    /// What is due now; it is due once.
    pub(crate) fn due(&mut self, now: Time) -> Due {
        if now < self.next_deadline() {
            return Due::Nothing;
        }
        if self.stop_at.is_some_and(|at| at <= now) {
            return Due::Stop;
        }
        if self.login_until.is_some() {
            return Due::Login;
        }
        let quiet_since = self.last_received.after(self.every);
        if self.is_paused || now < quiet_since {
            self.next_look = if self.is_paused { now.after(self.every) } else { quiet_since };
            return Due::Nothing;
        }
        self.next_look = now.after(self.every);
        if self.pings_out >= self.pings_out_max {
            return Due::Stale;
        }
        self.pings_out += 1;
        Due::Ping
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    fn pulse() -> Pulse {
        Pulse::new(Time(10 * SECOND), Duration::from_secs(4), 2, Time(0))
    }

    #[test]
    fn login_is_due_whatever_comes() {
        let mut pulse = pulse();
        for second in 1..10 {
            pulse.received(Time(second * SECOND));
            assert_eq!(pulse.next_deadline(), Time(10 * SECOND));
            assert_eq!(pulse.due(Time(second * SECOND)), Due::Nothing);
        }
        assert_eq!(pulse.due(Time(10 * SECOND)), Due::Login);
    }

    #[test]
    fn silence_is_pinged_and_then_stale() {
        let mut pulse = pulse();
        pulse.logged_in(Time(0));
        let at = |pulse: &mut Pulse, second: u64| {
            (pulse.due(Time(second * SECOND)), pulse.next_deadline().0 / SECOND)
        };
        pulse.received(Time(3 * SECOND));
        assert_eq!(at(&mut pulse, 4), (Due::Nothing, 7), "it said something 1 s ago");
        assert_eq!(at(&mut pulse, 7), (Due::Ping, 11));
        assert_eq!(at(&mut pulse, 9), (Due::Nothing, 11));
        assert_eq!(at(&mut pulse, 11), (Due::Ping, 15));
        assert_eq!(at(&mut pulse, 15), (Due::Stale, 19));
    }

    #[test]
    fn a_pong_forgives_all_pings_and_a_pause_is_no_silence() {
        let mut pulse = pulse();
        pulse.logged_in(Time(0));
        for second in [4, 8] {
            assert_eq!(pulse.due(Time(second * SECOND)), Due::Ping);
        }
        pulse.received(Time(8 * SECOND));
        pulse.answered();
        for second in [12, 16] {
            assert_eq!(pulse.due(Time(second * SECOND)), Due::Ping);
        }
        pulse.pause();
        for second in [20, 24, 28] {
            assert_eq!(pulse.due(Time(second * SECOND)), Due::Nothing);
        }
        pulse.received(Time(28 * SECOND));
        assert_eq!(pulse.due(Time(32 * SECOND)), Due::Stale);
    }
}
