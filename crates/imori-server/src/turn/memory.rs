//! The memory of waiting messages, and the memory and disk alarms that make publishers wait.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use imori_core::id::ConnectionId;
use imori_core::memory::Gauge;
use tracing::{info, warn};

use super::detached::DetachedPublishers;
use super::long_frames::{LongFrames, Rest};
use crate::limits::{LONG_FRAMES_SHARE_OF_MARK, READ_BYTES};

/// The memory gauge, its alarm mark, and the connections parked until the alarm ends.
#[derive(Debug)]
pub struct Memory {
    gauge: Gauge,
    mark_bytes: AtomicUsize,
    is_alarmed: AtomicBool,
    is_disk_alarmed: AtomicBool,
    parked: Mutex<Vec<ConnectionId>>,
    detached: DetachedPublishers,
    long_frames: LongFrames,
}

impl Memory {
    /// Memory with an alarm above `mark_bytes`.
    pub fn new(mark_bytes: usize) -> Memory {
        Memory {
            gauge: Gauge::default(),
            mark_bytes: AtomicUsize::new(mark_bytes),
            is_alarmed: AtomicBool::new(false),
            is_disk_alarmed: AtomicBool::new(false),
            parked: Mutex::new(Vec::new()),
            detached: DetachedPublishers::new(mark_bytes, usize::MAX),
            long_frames: LongFrames::new(mark_bytes / LONG_FRAMES_SHARE_OF_MARK, READ_BYTES),
        }
    }

    /// Returns this memory with limits for this number of connection slots.
    #[must_use]
    pub fn with_places(self, places: usize) -> Memory {
        Memory { detached: DetachedPublishers::new(self.mark_bytes(), places), ..self }
    }

    /// Sets a new memory mark and number of connection slots.
    pub fn set_mark(&self, mark_bytes: usize, places: usize) {
        self.mark_bytes.store(mark_bytes, Ordering::Relaxed);
        self.detached.limit(mark_bytes, places);
        self.long_frames.limit(mark_bytes / LONG_FRAMES_SHARE_OF_MARK);
    }

    /// Returns this memory with another share for long frames, and another number of bytes of each that are not
    /// charged.
    #[must_use]
    pub fn with_long_frames(self, bytes_max: usize, free_bytes: usize) -> Memory {
        Memory { long_frames: LongFrames::new(bytes_max, free_bytes), ..self }
    }

    /// The gauge that is charged with everything that waits.
    pub fn gauge(&self) -> &Gauge {
        &self.gauge
    }

    /// The mark above which there is an alarm.
    pub fn mark_bytes(&self) -> usize {
        self.mark_bytes.load(Ordering::Relaxed)
    }

    /// Tells whether publishes have to wait.
    pub fn is_alarmed(&self) -> bool {
        self.is_alarmed.load(Ordering::Relaxed)
    }

    /// Tells whether publishes that need the disk have to wait.
    pub fn is_disk_alarmed(&self) -> bool {
        self.is_disk_alarmed.load(Ordering::Relaxed)
    }

    /// Raises the disk alarm; `false` if it was raised already.
    pub fn raise_disk_alarm(&self) -> bool {
        !self.is_disk_alarmed.swap(true, Ordering::SeqCst)
    }

    /// Ends the disk alarm and returns the parked connections. Connections that also wait for memory park again.
    pub fn end_disk_alarm(&self) -> Vec<ConnectionId> {
        match self.is_disk_alarmed.swap(false, Ordering::SeqCst) {
            true => std::mem::take(&mut *self.parked.lock().unwrap_or_else(PoisonError::into_inner)),
            false => Vec::new(),
        }
    }

    /// The publishers that continue without their peers.
    pub fn detached(&self) -> &DetachedPublishers {
        &self.detached
    }

    /// The long frames that are not complete yet.
    pub fn long_frames(&self) -> &LongFrames {
        &self.long_frames
    }

    /// Charges a long frame with `bytes` more; `false` if it has to wait, which is not noted.
    pub(super) fn charge_long_frame(&self, id: ConnectionId, bytes: usize) -> bool {
        self.long_frames.charge(id, bytes, self.rest())
    }

    /// Like [`Memory::charge_long_frame`], but puts the connection in line if it has to wait. `may_free` says that the
    /// frames behind this one may free memory.
    pub(super) fn charge_long_frame_or_wait(&self, id: ConnectionId, bytes: usize, may_free: bool) -> bool {
        self.long_frames.charge_or_wait(id, bytes, may_free, self.rest())
    }

    /// The next connection that waits for memory for a long frame, if there is room for it now.
    pub(super) fn next_long_frame(&self) -> Option<ConnectionId> {
        self.long_frames.next(self.rest())
    }

    /// Tells whether others need the memory that long frames hold.
    pub(super) fn is_short_of_long_frames(&self) -> bool {
        self.long_frames.waiting() > 0
            || self.is_alarmed()
            || self.long_frames.bytes() > self.rest().free_bytes
    }

    fn rest(&self) -> Rest {
        let free_bytes = self.mark_bytes().saturating_sub(self.gauge.bytes());
        Rest { free_bytes, is_alarmed: self.is_alarmed(), is_disk_alarmed: self.is_disk_alarmed() }
    }

    /// Raises the memory alarm above the mark. Ends it at 90 % of the mark, and then returns the parked connections.
    pub fn check(&self) -> Vec<ConnectionId> {
        let (bytes, mark_bytes) = (self.gauge.bytes(), self.mark_bytes());
        if !self.is_alarmed() {
            if bytes > mark_bytes && !self.is_alarmed.swap(true, Ordering::SeqCst) {
                warn!(bytes, mark_bytes, "memory mark is reached, publishers wait");
            }
            return Vec::new();
        }
        if bytes > mark_bytes / 10 * 9 || !self.is_alarmed.swap(false, Ordering::SeqCst) {
            return Vec::new();
        }
        info!(bytes, mark_bytes, "memory is below the mark, publishers go on");
        std::mem::take(&mut *self.parked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Parks a connection until an alarm ends; `false` if no alarm is raised.
    pub fn park(&self, connection: ConnectionId) -> bool {
        let mut parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        // Checked under the lock: an alarm clears its flag before the list is taken, so this entry is not missed.
        if !self.is_alarmed.load(Ordering::SeqCst) && !self.is_disk_alarmed.load(Ordering::SeqCst) {
            return false;
        }
        parked.push(connection);
        true
    }
}
