//! An event loop on a thread of its own, for the connections of one side.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use anyhow::{Result, anyhow};

use crate::limits::TICK;
use crate::load::event_loop::{EventLoop, Role};

/// Handle of an event loop that runs on another thread until it is stopped or fails.
pub(crate) struct OtherThread<R: Role> {
    is_stopped: Arc<AtomicBool>,
    waker: Arc<mio::Waker>,
    thread: JoinHandle<(R::Board, Result<()>)>,
}

impl<R: Role<Board: Send + 'static> + Send + 'static> OtherThread<R> {
    /// Starts the thread.
    pub(crate) fn start(mut event_loop: EventLoop<R>) -> OtherThread<R> {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_stopped);
        let waker = event_loop.waker();
        let thread = std::thread::spawn(move || {
            let turned = turn(&mut event_loop, &seen);
            (event_loop.board, turned)
        });
        OtherThread { is_stopped, waker, thread }
    }

    /// Ends a wait of the loop, because the condition that it waits for may have changed.
    pub(crate) fn wake(&self) {
        // A lost wake-up costs at most one tick.
        let _ = self.waker.wake();
    }

    /// Whether the thread has ended early, because the loop failed.
    pub(crate) fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Stops the thread; returns the counts of its connections, and the loop's error if it failed.
    pub(crate) fn stop(self) -> Result<(R::Board, Result<()>)> {
        self.is_stopped.store(true, Ordering::SeqCst);
        self.wake();
        self.thread.join().map_err(|_| anyhow!("a load thread panicked"))
    }
}

fn turn<R: Role>(event_loop: &mut EventLoop<R>, is_stopped: &AtomicBool) -> Result<()> {
    let mut last_tick = Instant::now();
    while !is_stopped.load(Ordering::SeqCst) {
        event_loop.turn(TICK)?;
        if last_tick.elapsed() >= TICK {
            last_tick = Instant::now();
            event_loop.tick()?;
        }
    }
    Ok(())
}
