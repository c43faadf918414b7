//! Schedules the broker's PINGs and the end of a connection when the broker stops.

use std::time::Duration;

use imori_core::inbound::Reading;
use imori_core::time::Time;

/// The action for a deadline that has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// Do nothing.
    Nothing,
    /// Send a PING, as the client has been silent.
    Ping,
    /// Close: the client left too many PINGs unanswered.
    Stale,
    /// Close: the broker is stopping and the grace period is over.
    Stop,
}

/// The deadlines of a connection, without its login timeout.
#[derive(Debug)]
pub(crate) struct Keepalive {
    /// The end of the grace period, once the broker is stopping.
    stop_at: Option<Time>,
    every: Duration,
    next_look: Time,
    pings_out: u32,
    pings_out_max: u32,
}

impl Keepalive {
    pub(crate) fn new(every: Duration, pings_out_max: u32, now: Time) -> Self {
        Self { stop_at: None, every, next_look: now.after(every), pings_out: 0, pings_out_max }
    }

    /// Starts to watch for silence after the login.
    pub(crate) fn logged_in(&mut self, now: Time) {
        self.next_look = now.after(self.every);
    }

    /// Notes that a PONG arrived.
    pub(crate) fn answered(&mut self) {
        self.pings_out = 0;
    }

    /// Sets the end of the grace period when the broker stops.
    pub(crate) fn stop_at(&mut self, at: Time) {
        self.stop_at = Some(at);
    }

    /// Returns the next deadline. Before the login there are no PINGs.
    pub(crate) fn next_deadline(&self, reading: &Reading) -> Option<Time> {
        let look = reading.login_until().is_none().then_some(self.next_look);
        [self.stop_at, look].into_iter().flatten().min()
    }

    /// Returns the action that is due, and schedules the next one.
    pub(crate) fn due(&mut self, now: Time, reading: &Reading) -> Due {
        if self.next_deadline(reading).is_none_or(|at| now < at) {
            return Due::Nothing;
        }
        if self.stop_at.is_some_and(|at| at <= now) {
            return Due::Stop;
        }
        let quiet_since = reading.last_received().after(self.every);
        if reading.is_paused() || now < quiet_since {
            self.next_look = if reading.is_paused() { now.after(self.every) } else { quiet_since };
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

    /// Returns the state of a client that has logged in.
    fn both() -> (Reading, Keepalive) {
        let mut reading = Reading::new(Duration::from_secs(10), Time(0));
        let mut keepalive = Keepalive::new(Duration::from_secs(4), 2, Time(0));
        reading.logged_in();
        keepalive.logged_in(Time(0));
        (reading, keepalive)
    }

    #[test]
    fn nobody_is_pinged_before_the_login() {
        let reading = Reading::new(Duration::from_secs(10), Time(0));
        let mut keepalive = Keepalive::new(Duration::from_secs(4), 2, Time(0));
        for second in 1..20 {
            assert_eq!(keepalive.next_deadline(&reading), None);
            assert_eq!(keepalive.due(Time(second * SECOND), &reading), Due::Nothing);
        }
        keepalive.stop_at(Time(20 * SECOND));
        assert_eq!(keepalive.due(Time(20 * SECOND), &reading), Due::Stop);
    }

    #[test]
    fn silence_is_pinged_and_then_stale() {
        let (mut reading, mut keepalive) = both();
        reading.received(Time(3 * SECOND));
        let mut at = |second: u64| {
            let due = keepalive.due(Time(second * SECOND), &reading);
            (due, keepalive.next_deadline(&reading).unwrap().0 / SECOND)
        };
        assert_eq!(at(4), (Due::Nothing, 7), "it said something 1 s ago");
        assert_eq!(at(7), (Due::Ping, 11));
        assert_eq!(at(9), (Due::Nothing, 11));
        assert_eq!(at(11), (Due::Ping, 15));
        assert_eq!(at(15), (Due::Stale, 19));
    }

    #[test]
    fn a_pong_forgives_all_pings_and_a_pause_is_no_silence() {
        let (mut reading, mut keepalive) = both();
        for second in [4, 8] {
            assert_eq!(keepalive.due(Time(second * SECOND), &reading), Due::Ping);
        }
        reading.received(Time(8 * SECOND));
        keepalive.answered();
        for second in [12, 16] {
            assert_eq!(keepalive.due(Time(second * SECOND), &reading), Due::Ping);
        }
        reading.pause();
        for second in [20, 24, 28] {
            assert_eq!(keepalive.due(Time(second * SECOND), &reading), Due::Nothing);
        }
        reading.received(Time(28 * SECOND));
        assert_eq!(keepalive.due(Time(32 * SECOND), &reading), Due::Stale);
    }
}
