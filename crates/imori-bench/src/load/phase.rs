//! Runs event loops until a phase is over.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::amount::Amount;
use crate::interrupt;
use crate::limits::{BLOCKED_AFTER, TICK};
use crate::load::event_loop::{EventLoop, Role};

/// The reason why a phase is over; of several loops, the variant listed last wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ended {
    /// Everything that was due has happened.
    Done,
    /// Its time has elapsed.
    TimeOver,
    /// Nothing moved for too long.
    Blocked,
    /// Stopped by hand.
    Stopped,
    /// A connection broke.
    Broken,
}

/// Limits of a phase.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The longest time that it may take.
    pub(crate) time: Option<Duration>,
    /// The longest time without movement.
    pub(crate) quiet: Duration,
    /// Whether written bytes count as movement; otherwise only frames read do.
    pub(crate) writes_count: bool,
}

impl Bounds {
    /// Limits of a phase that measures this amount.
    pub(crate) fn of(amount: Amount, writes_count: bool) -> Bounds {
        let time = match amount {
            Amount::Count(_) => None,
            Amount::Time(time) => Some(time),
        };
        Bounds { time, quiet: BLOCKED_AFTER, writes_count }
    }

    /// Limits of a wait for stragglers.
    pub(crate) fn quiet(quiet: Duration) -> Bounds {
        Bounds { time: None, quiet, writes_count: true }
    }
}

/// Turns a loop until the phase is over.
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

/// Turns several loops until the phase is over for each; all but the first get a thread of their own.
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
