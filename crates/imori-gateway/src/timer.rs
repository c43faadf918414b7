//! Sleeps that are exact to about a tenth of a millisecond.
//!
//! tokio's timers are up to a millisecond late, because they count in milliseconds. Here a worker has one timerfd, which
//! its reactor watches like a socket, set to the first of all sleeps; the kernel's high-resolution timers wake it.

use std::{
    collections::BTreeMap,
    future::Future,
    io,
    os::fd::OwnedFd,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::{io::unix::AsyncFd, task::JoinHandle};

use crate::lock::lock;

/// The timer of one worker; clones share it.
#[derive(Clone)]
pub struct Timer(Arc<Driven>);

/// Ends the task that watches the timer with the last clone.
struct Driven {
    sleeps: Arc<Sleeps>,
    task: JoinHandle<()>,
}

struct Sleeps {
    file: AsyncFd<OwnedFd>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    last: u64,
    wakers: BTreeMap<(Instant, u64), Waker>,
}

impl Timer {
    /// Starts a timer on the current runtime.
    ///
    /// # Errors
    /// The process has no more file descriptors.
    pub fn start() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        #[allow(
            deprecated,
            reason = "an OwnedFd is one open file for its life, and the successor is `unsafe`"
        )]
        let file = AsyncFd::new(timerfd_create(TimerfdClockId::Monotonic, flags)?)?;
        let sleeps = Arc::new(Sleeps { file, waiting: Mutex::default() });
        let task = tokio::spawn(Arc::clone(&sleeps).wake_all());
        Ok(Self(Arc::new(Driven { sleeps, task })))
    }

    /// A future that is ready after this time.
    pub fn sleep(&self, time: Duration) -> Sleep {
        // A sleep whose end no clock can say is one without end.
        let deadline = Instant::now().checked_add(time);
        Sleep { timer: self.clone(), deadline, number: None }
    }

    /// Whether no sleep waits.
    pub fn is_idle(&self) -> bool {
        self.0.sleeps.lock().wakers.is_empty()
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Sleeps {
    /// Wakes sleeps whenever the file is readable.
    async fn wake_all(self: Arc<Self>) {
        loop {
            let Ok(mut ready) = self.file.readable().await else { return };
            let mut expirations = [0; 8];
            let _ = ready.try_io(|file| Ok(rustix::io::read(file.get_ref(), &mut expirations)?));
            self.wake_due();
        }
    }

    fn wake_due(&self) {
        let mut waiting = self.lock();
        let now = Instant::now();
        while let Some(first) = waiting.wakers.first_entry() {
            if first.key().0 > now {
                let deadline = first.key().0;
                self.set(deadline, now);
                return;
            }
            first.remove().wake();
        }
    }

    /// Has the file be readable at `deadline`.
    fn set(&self, deadline: Instant, now: Instant) {
        // Zero would disarm it.
        let left = deadline.saturating_duration_since(now).max(Duration::from_nanos(1));
        let it_value = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let new = Itimerspec { it_interval, it_value };
        // The arguments are valid, which is all that can be wrong with them.
        let _ = timerfd_settime(self.file.get_ref(), TimerfdTimerFlags::empty(), &new);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        lock(&self.waiting)
    }
}

/// A sleep of a [`Timer`].
pub struct Sleep {
    timer: Timer,
    /// `None` is never.
    deadline: Option<Instant>,
    /// Its number among those that wait.
    number: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.deadline else { return Poll::Pending };
        let now = Instant::now();
        if deadline <= now {
            return Poll::Ready(());
        }
        let sleeps = Arc::clone(&self.timer.0.sleeps);
        let mut waiting = sleeps.lock();
        let number = match self.number {
            Some(number) => number,
            None => {
                waiting.last += 1;
                waiting.last
            }
        };
        self.number = Some(number);
        let is_first = waiting.wakers.first_key_value().is_none_or(|(first, _)| deadline < first.0);
        waiting.wakers.insert((deadline, number), context.waker().clone());
        if is_first {
            sleeps.set(deadline, now);
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let (Some(deadline), Some(number)) = (self.deadline, self.number) {
            self.timer.0.sleeps.lock().wakers.remove(&(deadline, number));
        }
    }
}
