//! Runs a loop until a phase is over, and measures what it cost meanwhile.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::amount::Amount;
use crate::interrupt;
use crate::limits::{BLOCKED_AFTER, SAMPLE_EVERY, TICK};
use crate::load::event_loop::{EventLoop, Role};
use crate::options::BrokerOptions;
use crate::watch::cost::Cost;
use crate::watch::process::{Usage, own_usage, usage};

/// Why a phase is over; of several loops the last of these counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ended {
    /// Everything has happened.
    Done,
    /// Its time is over.
    TimeOver,
    /// Nothing moved for too long.
    Blocked,
    /// It was stopped by hand.
    Stopped,
    /// A connection broke.
    Broken,
}

/// When a phase is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// How long it may take.
    pub(crate) time: Option<Duration>,
    /// How long nothing may move.
    pub(crate) quiet: Duration,
    /// Whether bytes that are written count as movement; else only frames that are read.
    pub(crate) writes_count: bool,
}

impl Bounds {
    /// Those of a phase that goes on for this amount.
    pub(crate) fn of(amount: Amount, writes_count: bool) -> Bounds {
        let time = match amount {
            Amount::Count(_) => None,
            Amount::Time(time) => Some(time),
        };
        Bounds { time, quiet: BLOCKED_AFTER, writes_count }
    }

    /// Those of waiting for stragglers.
    pub(crate) fn quiet(quiet: Duration) -> Bounds {
        Bounds { time: None, quiet, writes_count: true }
    }
}

/// Turns the loop until the phase is over.
pub(crate) fn drive<R: Role>(
    event_loop: &mut EventLoop<R>,
    bounds: Bounds,
    mut is_done: impl FnMut(&mut R::Board) -> bool,
    mut show: impl FnMut(&R::Board),
) -> Result<Ended> {
    let start = Instant::now();
    let mut last_tick = start;
    let mut last_move = start;
    let mut moved = 0;
    event_loop.kick();
    loop {
        if is_done(&mut event_loop.board) {
            return Ok(Ended::Done);
        }
        if interrupt::is_asked_for() {
            return Ok(Ended::Stopped);
        }
        let left = bounds.time.map_or(TICK, |time| time.saturating_sub(start.elapsed()));
        event_loop.turn(left.min(TICK).min(bounds.quiet))?;
        let now = Instant::now();
        if bounds.time.is_some_and(|time| now.duration_since(start) >= time) {
            return Ok(Ended::TimeOver);
        }
        if now.duration_since(last_tick) < TICK.min(bounds.quiet) {
            continue;
        }
        last_tick = now;
        event_loop.tick()?;
        show(&event_loop.board);
        let written = if bounds.writes_count { event_loop.bytes_written } else { 0 };
        let movement = event_loop.frames_read.wrapping_add(written);
        if movement != moved {
            moved = movement;
            last_move = now;
        } else if now.duration_since(last_move) >= bounds.quiet {
            return Ok(Ended::Blocked);
        }
    }
}

/// Turns several loops until the phase is over for each, with a thread for each but the first.
pub(crate) fn drive_all<R: Role<Board: Send> + Send>(
    loops: &mut [EventLoop<R>],
    bounds: Bounds,
    is_done: impl Fn(usize, &R::Board) -> bool + Sync,
    show: impl FnMut(&R::Board),
) -> Result<Ended> {
    let Some((first, others)) = loops.split_first_mut() else {
        return Ok(Ended::Done);
    };
    std::thread::scope(|scope| {
        let is_done = &is_done;
        let others: Vec<_> = (1..)
            .zip(others)
            .map(|(index, event_loop)| {
                scope.spawn(move || drive(event_loop, bounds, |board| is_done(index, board), |_| {}))
            })
            .collect();
        let mut ended = drive(first, bounds, |board| is_done(0, board), show)?;
        for other in others {
            ended = ended.max(other.join().map_err(|_| anyhow!("a load thread panicked"))??);
        }
        Ok(ended)
    })
}

/// A measurement under way.
pub(crate) struct Meter {
    start: Instant,
    pids: Vec<u32>,
    broker_before: Usage,
    client_before: Usage,
    sampler: Sampler,
}

impl Meter {
    /// Begins to measure these processes.
    pub(crate) fn start(pids: &[u32]) -> Result<Meter> {
        Ok(Meter {
            pids: pids.to_vec(),
            sampler: Sampler::start(pids.to_vec()),
            broker_before: usage(pids)?,
            client_before: own_usage()?,
            start: Instant::now(),
        })
    }

    /// Ends the measurement.
    pub(crate) fn stop(self) -> Result<Cost> {
        let elapsed = self.start.elapsed();
        let client_after = own_usage()?;
        let broker_after = usage(&self.pids)?;
        let peak = self.sampler.stop();
        Ok(Cost {
            elapsed,
            broker_before: self.broker_before,
            broker_after,
            broker_rss_peak: peak.max(self.broker_before.rss_bytes).max(broker_after.rss_bytes),
            client_before: self.client_before,
            client_after,
        })
    }
}

/// A thread of its own that looks at the broker's memory, so that the load thread need not.
struct Sampler {
    stop: Sender<()>,
    thread: JoinHandle<u64>,
}

impl Sampler {
    fn start(pids: Vec<u32>) -> Sampler {
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            let mut peak = 0;
            if pids.is_empty() {
                return peak;
            }
            // A process that is gone is reported by the measurement itself.
            while stopped.recv_timeout(SAMPLE_EVERY) == Err(RecvTimeoutError::Timeout) {
                peak = peak.max(usage(&pids).map_or(0, |usage| usage.rss_bytes));
            }
            peak
        });
        Sampler { stop, thread }
    }

    fn stop(self) -> u64 {
        drop(self.stop);
        self.thread.join().unwrap_or(0)
    }
}

/// A line on standard error that says how far a run is.
pub(crate) struct Progress {
    is_shown: bool,
    start: Instant,
}

impl Progress {
    /// Shown on a terminal, or if it is asked for.
    pub(crate) fn new(options: &BrokerOptions) -> Progress {
        let is_shown = !options.is_quiet && (options.progress || std::io::stderr().is_terminal());
        Progress { is_shown, start: Instant::now() }
    }

    /// Shows how much has happened, of how much if that is known.
    pub(crate) fn show(&self, phase: &str, done: u64, of: Option<u64>) {
        if !self.is_shown {
            return;
        }
        let seconds = self.start.elapsed().as_secs();
        let line = match of.filter(|of| *of > 0) {
            Some(of) => {
                let filled = (done.min(of).saturating_mul(30) / of) as usize;
                format!("\r{phase:>8} [{:<30}] {done} of {of}, {seconds} s ", "#".repeat(filled))
            }
            None => format!("\r{phase:>8} {done}, {seconds} s "),
        };
        // Progress that nobody can see is no reason to end a run.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        if self.is_shown {
            let _ = std::io::stderr().write_all(b"\r\x1b[2K");
        }
    }
}
