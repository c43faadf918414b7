//! Progress through the runs of a comparison, on standard error: a line redrawn in place on a
//! terminal, elsewhere a line for each run.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Interval at which the line is redrawn on a terminal.
const REDRAW_EVERY: Duration = Duration::from_secs(1);
/// Erases the current line of a terminal.
const ERASE: &str = "\r\x1b[K";

/// Progress through the runs of all rounds.
#[derive(Debug)]
pub struct Progress {
    rounds: u32,
    runs: usize,
    done: usize,
    begun: Instant,
    /// When the latest run ended.
    ended: Instant,
    /// The round, the peer and the job of the current run.
    current: String,
    is_terminal: bool,
    drawn: Option<Instant>,
}

impl Progress {
    /// Creates the progress of `rounds` rounds with `runs` runs in all.
    pub fn new(rounds: u32, runs: usize) -> Progress {
        let now = Instant::now();
        Progress {
            rounds,
            runs,
            done: 0,
            begun: now,
            ended: now,
            current: String::new(),
            is_terminal: std::io::stderr().is_terminal(),
            drawn: None,
        }
    }

    /// Begins a run, whose job is named if there are several.
    pub fn begin(&mut self, round: u32, peer: &str, job: Option<&str>) {
        let job = job.map_or_else(String::new, |job| format!(", {job}"));
        self.current = format!("round {round} of {}, {peer}{job}", self.rounds);
        let now = Instant::now();
        match self.is_terminal {
            true => self.draw(now),
            false => put(&format!("{}\n", self.line(now))),
        }
    }

    /// Redraws the line on a terminal if a second has passed.
    pub fn tick(&mut self) {
        let now = Instant::now();
        let is_due = self.drawn.is_none_or(|drawn| now.duration_since(drawn) >= REDRAW_EVERY);
        if self.is_terminal && is_due {
            self.draw(now);
        }
    }

    /// Counts runs as done until `done` of them are.
    pub fn done(&mut self, done: usize) {
        self.done = done;
        self.ended = Instant::now();
    }

    /// Number of runs that are done.
    pub fn runs_done(&self) -> usize {
        self.done
    }

    /// Erases the line from a terminal.
    pub fn clear(&self) {
        if self.is_terminal {
            put(ERASE);
        }
    }

    fn draw(&mut self, now: Instant) {
        self.drawn = Some(now);
        // Without wrapping, a narrow terminal cuts off the end of the line.
        put(&format!("\x1b[?7l{ERASE}{}\x1b[?7h", self.line(now)));
    }

    fn line(&self, now: Instant) -> String {
        let left = self.left(now).map_or_else(String::new, |left| format!(", about {} left", in_words(left)));
        format!("{}: run {} of {}{left}", self.current, (self.done + 1).min(self.runs), self.runs)
    }

    /// Estimates the remaining time from the runs so far; `None` before the first has ended.
    fn left(&self, now: Instant) -> Option<Duration> {
        if self.done == 0 {
            return None;
        }
        let each = self.ended.duration_since(self.begun).as_secs_f64() / self.done as f64;
        let left = each * self.runs.saturating_sub(self.done) as f64;
        Some(Duration::from_secs_f64(left).saturating_sub(now.duration_since(self.ended)))
    }
}

/// Formats a duration with the precision that a person waits by.
pub fn in_words(time: Duration) -> String {
    // Rounded up, so that nothing is left only at the end.
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// Ignores errors, because a closed standard error is no reason to stop.
fn put(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_names_round_peer_run_and_remaining_time() {
        let mut progress = Progress::new(3, 12);
        let begun = progress.begun;
        progress.current = "round 2 of 3, nats-server, durable".to_owned();
        let now = |seconds| begun + Duration::from_secs(seconds);
        assert_eq!(progress.line(now(9)), "round 2 of 3, nats-server, durable: run 1 of 12");
        progress.done = 3;
        progress.ended = now(30);
        for (seconds, expected) in [(30, "90 s"), (35, "85 s"), (500, "0 s")] {
            assert_eq!(
                progress.line(now(seconds)),
                format!("round 2 of 3, nats-server, durable: run 4 of 12, about {expected} left")
            );
        }
        progress.done = 12;
        assert!(progress.line(now(120)).contains("run 12 of 12"));
    }

    #[test]
    fn times_are_told_as_precisely_as_people_wait() {
        for (millis, expected) in [
            (0, "0 s"),
            (400, "1 s"),
            (119_000, "119 s"),
            (121_000, "3 min"),
            (7_200_000, "2 h 0 min"),
            (28_790_000, "7 h 59 min"),
        ] {
            assert_eq!(in_words(Duration::from_millis(millis)), expected);
        }
    }
}
