//! Flow control between publishers and consumers: messages in flight, and room for more.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Total number of lags kept, and the least and most per publisher.
const LAGS: usize = 1 << 20;
const LAGS_MIN: usize = 1 << 8;
const LAGS_MAX: usize = 1 << 16;

/// State shared by publishers and consumers, also across threads.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Messages handed to the sockets.
    pub(crate) published: AtomicU64,
    /// Deliveries that are not waited for: arrived, or overtaken by a later one.
    pub(crate) passed: AtomicU64,
    /// Messages published before the last re-opening of a connection; none of them is waited for.
    written_off: AtomicU64,
    /// Deliveries per message.
    pub(crate) fan_out: u64,
    /// The most messages in flight.
    pub(crate) window: u64,
    /// Per publisher: how late its latest messages were sent, in an open loop.
    lags: Vec<Vec<AtomicU64>>,
    /// The current phase, which limits what publishers may send.
    phase: Mutex<Phase>,
    /// Set by a publisher that the window has stopped and that wants to be woken.
    pub(crate) is_waiting: AtomicBool,
    /// Publishers with operations left in their schedule, in an open loop.
    pub(crate) scheduled: AtomicU64,
    /// Messages that were due and never sent.
    pub(crate) unsent: AtomicU64,
    /// Messages awaiting the confirm that was requested.
    pub(crate) unconfirmed: AtomicU64,
}

/// The messages that publishers may send in the current phase.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Phase {
    pub(crate) number: u64,
    /// Messages of each publisher in this phase.
    pub(crate) share: u64,
    /// Time from which messages are measured, in nanoseconds of the run's clock.
    pub(crate) measured_from: u64,
    /// Start and end of the schedule, in an open loop.
    pub(crate) span: Option<(u64, u64)>,
}

impl Flow {
    /// Creates the flow of a closed loop; nothing may be sent yet.
    pub(crate) fn new(fan_out: u64, window: u64) -> Flow {
        Flow {
            published: AtomicU64::new(0),
            passed: AtomicU64::new(0),
            written_off: AtomicU64::new(0),
            fan_out,
            window,
            lags: Vec::new(),
            phase: Mutex::new(Phase::default()),
            is_waiting: AtomicBool::new(false),
            scheduled: AtomicU64::new(0),
            unsent: AtomicU64::new(0),
            unconfirmed: AtomicU64::new(0),
        }
    }

    /// Creates the flow of an open loop for this number of publishers.
    pub(crate) fn open(fan_out: u64, window: u64, publishers: usize) -> Flow {
        let kept = (LAGS / publishers.max(1)).clamp(LAGS_MIN, LAGS_MAX);
        let lags = || std::iter::repeat_with(|| AtomicU64::new(u64::MAX)).take(kept).collect();
        Flow { lags: std::iter::repeat_with(lags).take(publishers).collect(), ..Flow::new(fan_out, window) }
    }

    /// Begins a phase in which each publisher may send `share` more messages.
    pub(crate) fn begin(&self, share: u64, measured_from: u64) {
        let mut phase = self.phase();
        *phase = Phase { number: phase.number + 1, share, measured_from, span: None };
    }

    /// Begins a phase in which each publisher sends by its schedule.
    pub(crate) fn begin_open(&self, span: (u64, u64), measured_from: u64) {
        let mut phase = self.phase();
        self.scheduled.store(self.lags.len() as u64, Ordering::SeqCst);
        *phase = Phase { number: phase.number + 1, share: u64::MAX, measured_from, span: Some(span) };
    }

    /// Records how late a message was sent, in nanoseconds.
    pub(crate) fn note_lag(&self, publisher: u16, number: u32, lag: u64) {
        let lags = self.lags.get(usize::from(publisher)).map(Vec::as_slice).unwrap_or_default();
        if let Some(place) = lags.get(number as usize % lags.len().max(1)) {
            let micros = u32::try_from(lag / 1_000).unwrap_or(u32::MAX);
            place.store(u64::from(number) << 32 | u64::from(micros), Ordering::Relaxed);
        }
    }

    /// The delay in nanoseconds with which a message was sent; `None` in a closed loop, and for a
    /// message whose entry has been overwritten.
    pub(crate) fn lag(&self, publisher: u16, number: u32) -> Option<u64> {
        let lags = self.lags.get(usize::from(publisher))?;
        let noted = lags.get(number as usize % lags.len().max(1))?.load(Ordering::Relaxed);
        (noted >> 32 == u64::from(number)).then_some((noted & u64::from(u32::MAX)) * 1_000)
    }

    /// Stops all publishers; when this returns, `published` is final.
    pub(crate) fn stop(&self) {
        self.phase().share = 0;
    }

    /// Locks the phase; a publisher holds the lock while it sends.
    pub(crate) fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes off everything published so far, after a connection was re-opened: deliveries that
    /// may never arrive must not close the window.
    pub(crate) fn write_off(&self) {
        self.written_off.fetch_max(self.published.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// Deliveries that are no longer waited for.
    pub(crate) fn over(&self) -> u64 {
        let written_off = self.written_off.load(Ordering::SeqCst).saturating_mul(self.fan_out);
        self.passed.load(Ordering::SeqCst).max(written_off)
    }

    /// Number of messages that may be sent now.
    pub(crate) fn room(&self) -> u64 {
        let passed = self.over() / self.fan_out;
        let under_way = self.published.load(Ordering::SeqCst).saturating_sub(passed);
        self.window.saturating_sub(under_way)
    }

    /// Whether a publisher waits and the window has opened far enough to wake it; clears the request.
    pub(crate) fn takes_waiting(&self) -> bool {
        self.is_waiting.load(Ordering::SeqCst)
            && self.room() >= self.window / 4
            && self.is_waiting.swap(false, Ordering::SeqCst)
    }

    /// Deliveries due for all messages published so far.
    pub(crate) fn due(&self) -> u64 {
        self.published.load(Ordering::SeqCst).saturating_mul(self.fan_out)
    }
}
