//! A thread that interrupts the VMs whose slice lasts too long.
//!
//! It looks at all running VMs every few milliseconds and sleeps while none runs, so that a slice costs two stores.
//! It measures the time that passes; the VM measures its CPU time once it is interrupted.

use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// How often running VMs are looked at; a slice may be longer by this.
const TICK: Duration = Duration::from_millis(5);

/// Looks without a running VM after which the thread sleeps.
const IDLE_TICKS_MAX: u32 = 100;

type Interrupt = Box<dyn Fn() + Send>;

/// The watch over one VM.
pub(crate) struct Watch {
    /// Nanoseconds after the start of the watchdog; 0 while nothing runs.
    deadline_ns: AtomicU64,
    interrupt: Mutex<Option<Interrupt>>,
}

impl Watch {
    /// Registers a VM that does not run yet.
    pub(crate) fn new() -> Arc<Self> {
        let watch = Arc::new(Self { deadline_ns: AtomicU64::new(0), interrupt: Mutex::new(None) });
        lock(&watchdog().watches).push(Arc::downgrade(&watch));
        watch
    }

    /// Sets what interrupts the VM; `None` once there is no VM, after which the old one is not called any more.
    pub(crate) fn connect(&self, interrupt: Option<Interrupt>) {
        *lock(&self.interrupt) = interrupt;
    }

    /// Has the VM interrupted this time after `now`, and again and again until it is armed anew or disarmed.
    pub(crate) fn arm(&self, now: Instant, after: Duration) {
        if after.is_zero()
            && let Some(interrupt) = &*lock(&self.interrupt)
        {
            interrupt();
        }
        let watchdog = watchdog();
        let deadline = now.saturating_duration_since(watchdog.started) + after;
        let deadline_ns = u64::try_from(deadline.as_nanos()).unwrap_or(u64::MAX).max(1);
        // Either this sees that the thread sleeps, or the thread sees the deadline before it does.
        self.deadline_ns.store(deadline_ns, Ordering::SeqCst);
        if watchdog.is_asleep.load(Ordering::SeqCst) {
            drop(lock(&watchdog.watches));
            watchdog.wake.notify_one();
        }
    }

    /// Ends the watch over a slice.
    pub(crate) fn disarm(&self) {
        self.deadline_ns.store(0, Ordering::SeqCst);
    }
}

struct Watchdog {
    started: Instant,
    watches: Mutex<Vec<Weak<Watch>>>,
    wake: Condvar,
    is_asleep: AtomicBool,
}

impl Watchdog {
    fn run(&self) {
        let mut idle_ticks = 0;
        let mut watches = lock(&self.watches);
        loop {
            idle_ticks = if self.look(&mut watches) { 0 } else { idle_ticks + 1 };
            if idle_ticks > IDLE_TICKS_MAX {
                self.is_asleep.store(true, Ordering::SeqCst);
                if !self.look(&mut watches) {
                    watches = self.wake.wait(watches).unwrap_or_else(PoisonError::into_inner);
                }
                self.is_asleep.store(false, Ordering::SeqCst);
                idle_ticks = 0;
            } else {
                watches = self.wake.wait_timeout(watches, TICK).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    /// Interrupts the VMs over their deadline; returns whether any VM runs.
    fn look(&self, watches: &mut Vec<Weak<Watch>>) -> bool {
        let now_ns = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut is_any_running = false;
        watches.retain(|watch| {
            let Some(watch) = watch.upgrade() else { return false };
            let deadline_ns = watch.deadline_ns.load(Ordering::SeqCst);
            is_any_running |= deadline_ns != 0;
            if deadline_ns != 0
                && deadline_ns <= now_ns
                && let Some(interrupt) = &*lock(&watch.interrupt)
            {
                interrupt();
            }
            true
        });
        is_any_running
    }
}

fn watchdog() -> &'static Watchdog {
    static WATCHDOG: OnceLock<&'static Watchdog> = OnceLock::new();
    WATCHDOG.get_or_init(|| {
        let watchdog: &'static Watchdog = Box::leak(Box::new(Watchdog {
            started: Instant::now(),
            watches: Mutex::new(Vec::new()),
            wake: Condvar::new(),
            is_asleep: AtomicBool::new(false),
        }));
        thread::Builder::new()
            .name("ruby-watchdog".to_owned())
            .spawn(move || watchdog.run())
            .expect("the system starts one more thread");
        watchdog
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
