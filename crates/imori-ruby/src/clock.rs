//! The CPU time of slices, measured with few system calls.
//!
//! The kernel is asked for a thread's CPU time, which takes as long as a short script. So a short slice counts as long as it
//! lasts, as it was hardly interrupted, and a long one by the CPU time that the thread has used since it was last asked for.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};

/// A slice up to this counts as long as it lasts: the scheduler gives a thread longer turns.
const SHORT_SLICE_MAX: Duration = Duration::from_micros(500);

/// The age of a reading before a slice. A long slice may count this much too much.
pub const READING_AGE_MAX: Duration = Duration::from_millis(1);

/// The clock of the slices of one thread.
#[derive(Debug)]
pub struct SliceClock {
    started: Cell<Instant>,
    /// The thread's CPU time, and when it was read: before the slice.
    reading: Cell<(Instant, Duration)>,
}

impl Default for SliceClock {
    /// A clock of this thread.
    fn default() -> Self {
        let now = Instant::now();
        Self { started: Cell::new(now), reading: Cell::new((now, thread_cpu())) }
    }
}

impl SliceClock {
    /// Begins a slice; returns the time of its beginning.
    pub fn start(&self) -> Instant {
        let now = Instant::now();
        let (read_at, _) = self.reading.get();
        if now.saturating_duration_since(read_at) > READING_AGE_MAX {
            self.reading.set((now, thread_cpu()));
        }
        self.started.set(now);
        now
    }

    /// The CPU time of the slice so far, and the present.
    pub fn used(&self) -> (Duration, Instant) {
        let now = Instant::now();
        let lasted = now.saturating_duration_since(self.started.get());
        if lasted <= SHORT_SLICE_MAX {
            return (lasted, now);
        }
        let (_, before) = self.reading.get();
        (lasted.min(thread_cpu().saturating_sub(before)), now)
    }
}

/// The CPU time of this thread.
pub fn thread_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(now.tv_sec).expect("CPU time is not negative");
    Duration::new(seconds, u32::try_from(now.tv_nsec).expect("nanoseconds of a second fit"))
}
