//! The memory charged for incomplete long frames, and the line of connections that wait for it.
//!
//! A frame is charged with its full size before more than one turn's bytes of it are kept. So each frame that has begun
//! can be completed, and input without room stays in the client's socket. Bodies of many AMQP frames are charged to the
//! same account, so neither kind takes the other's share. Uncharged, 76 clients with 15 MiB of a body each held 1.1 GiB
//! above a mark of 241 MiB.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use imori_core::id::ConnectionId;

use crate::slots::unpoisoned;

/// The bytes charged for long frames, and the line of connections that wait for some.
#[derive(Debug)]
pub struct LongFrames {
    /// Share of all frames together, in bytes. One frame at a time may exceed it.
    bytes_max: AtomicUsize,
    /// Bytes of each frame that are not charged.
    free_bytes: usize,
    held: Mutex<Held>,
    /// Length of the line, readable without the lock.
    waiting: AtomicUsize,
}

#[derive(Debug, Default)]
struct Held {
    /// Bytes within the share.
    bytes: usize,
    /// The one frame that exceeds the share, and its bytes beyond it.
    beyond: Option<(ConnectionId, usize)>,
    line: VecDeque<Waiting>,
}

/// A waiting connection, and the bytes that it asks for.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    id: ConnectionId,
    bytes: usize,
    may_free: bool,
}

/// The state of the broker's other memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest {
    /// Bytes left below the memory mark, before long frames take any.
    pub(super) free_bytes: usize,
    /// Publishers wait for memory.
    pub(super) is_alarmed: bool,
    /// Publishers wait for the disk.
    pub(super) is_disk_alarmed: bool,
}

impl LongFrames {
    /// No frames yet. Together they may have `bytes_max`; `free_bytes` of each are not charged.
    pub(super) fn new(bytes_max: usize, free_bytes: usize) -> LongFrames {
        LongFrames {
            bytes_max: AtomicUsize::new(bytes_max),
            free_bytes,
            held: Mutex::default(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Sets the share of all frames together. Frames that have begun are completed.
    pub(super) fn limit(&self, bytes_max: usize) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Bytes of each frame that are not charged.
    pub(super) fn free_bytes(&self) -> usize {
        self.free_bytes
    }

    /// Bytes that are charged now.
    pub fn bytes(&self) -> usize {
        let held = unpoisoned(self.held.lock());
        held.bytes + held.beyond.map_or(0, |(_, bytes)| bytes)
    }

    /// Number of waiting connections.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Charges a connection's frame with `bytes` more, if it is the connection's turn and there is room. `false`
    /// changes nothing.
    pub(super) fn charge(&self, id: ConnectionId, bytes: usize, rest: Rest) -> bool {
        let mut held = unpoisoned(self.held.lock());
        self.charge_in_turn(Waiting { id, bytes, may_free: false }, rest, &mut held)
    }

    /// Like [`LongFrames::charge`], but puts the connection in line if there is no room.
    ///
    /// `may_free` says that the frames behind this one may free memory or room on the disk. Then this frame is read
    /// even in an alarm.
    pub(super) fn charge_or_wait(&self, id: ConnectionId, bytes: usize, may_free: bool, rest: Rest) -> bool {
        let (mut held, asks) = (unpoisoned(self.held.lock()), Waiting { id, bytes, may_free });
        if self.charge_in_turn(asks, rest, &mut held) {
            return true;
        }
        match held.line.iter_mut().find(|waiting| waiting.id == id) {
            Some(waiting) => *waiting = asks,
            None => held.line.push_back(asks),
        }
        self.waiting.store(held.line.len(), Ordering::Relaxed);
        false
    }

    /// Gives back part of a connection's charge, first of all its bytes beyond the share.
    pub(super) fn give_back(&self, id: ConnectionId, bytes: usize) {
        let mut held = unpoisoned(self.held.lock());
        let mut within = bytes;
        if let Some((_, beyond)) = held.beyond.as_mut().filter(|(beyond, _)| *beyond == id) {
            within -= bytes.min(*beyond);
            *beyond -= bytes - within;
        }
        held.beyond.take_if(|(_, bytes)| *bytes == 0);
        held.bytes = held.bytes.saturating_sub(within);
    }

    /// Removes a connection from the line.
    pub(super) fn leave(&self, id: ConnectionId) {
        let mut held = unpoisoned(self.held.lock());
        held.line.retain(|waiting| waiting.id != id);
        self.waiting.store(held.line.len(), Ordering::Relaxed);
    }

    /// The connection whose turn it is, if there is room for it.
    pub(super) fn next(&self, rest: Rest) -> Option<ConnectionId> {
        if self.waiting() == 0 {
            return None;
        }
        let held = unpoisoned(self.held.lock());
        let first = held.first(rest)?;
        self.has_room(first, rest, &held).then_some(first.id)
    }

    fn charge_in_turn(&self, asks: Waiting, rest: Rest, held: &mut Held) -> bool {
        let is_first = || held.is_beyond(asks.id) || held.first(rest).is_none_or(|first| first.id == asks.id);
        if !asks.passes(rest) && (rest.is_alarmed || !is_first() || !self.has_room(asks, rest, held)) {
            return false;
        }
        let is_within = asks.passes(rest) || self.is_within(asks.bytes, rest, held.bytes);
        match (&mut held.beyond, is_within) {
            (_, true) => held.bytes += asks.bytes,
            (Some((_, beyond)), false) => *beyond += asks.bytes,
            (beyond @ None, false) => *beyond = Some((asks.id, asks.bytes)),
        }
        held.line.retain(|waiting| waiting.id != asks.id);
        self.waiting.store(held.line.len(), Ordering::Relaxed);
        true
    }

    /// Tells whether there is room for a frame. One frame at a time may exceed the share; otherwise frames could wait
    /// for each other forever, and a very long one for itself.
    fn has_room(&self, asks: Waiting, rest: Rest, held: &Held) -> bool {
        asks.passes(rest)
            || self.is_within(asks.bytes, rest, held.bytes)
            || held.beyond.is_none()
            || held.is_beyond(asks.id)
    }

    fn is_within(&self, bytes: usize, rest: Rest, held_bytes: usize) -> bool {
        held_bytes.saturating_add(bytes) <= self.bytes_max.load(Ordering::Relaxed).min(rest.free_bytes)
    }
}

impl Held {
    /// The next connection in line: one that passes in an alarm, else the one that exceeds the share, because all
    /// others wait for it, else the one that has waited longest. In a memory alarm only one that passes.
    fn first(&self, rest: Rest) -> Option<Waiting> {
        let find = |is_meant: &dyn Fn(&Waiting) -> bool| self.line.iter().copied().find(is_meant);
        let passes = (rest.is_alarmed || rest.is_disk_alarmed).then(|| find(&|waiting| waiting.passes(rest)));
        if rest.is_alarmed {
            return passes.flatten();
        }
        let beyond = || self.beyond.and_then(|(id, _)| find(&|waiting| waiting.id == id));
        passes.flatten().or_else(beyond).or_else(|| self.line.front().copied())
    }

    fn is_beyond(&self, id: ConnectionId) -> bool {
        self.beyond.is_some_and(|(beyond, _)| beyond == id)
    }
}

impl Waiting {
    /// Tells whether the frame is read regardless of memory: it will be parked, and the frames behind it may end an
    /// alarm.
    fn passes(self, rest: Rest) -> bool {
        self.may_free && (rest.is_alarmed || rest.is_disk_alarmed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: usize = 100;
    const FREE: Rest = Rest { free_bytes: usize::MAX, is_alarmed: false, is_disk_alarmed: false };
    const DISK_ALARM: Rest = Rest { is_disk_alarmed: true, ..FREE };
    const ALARM: Rest = Rest { free_bytes: 0, is_alarmed: true, is_disk_alarmed: false };

    fn connection(slot: u32) -> ConnectionId {
        ConnectionId { cell: 0, slot, generation: 0 }
    }

    /// Lets each connection ask for its bytes, and returns the connections that got them.
    fn asked(frames: &LongFrames, rest: Rest, asks: &[(u32, usize, bool)]) -> Vec<u32> {
        let is_given =
            |(slot, bytes, may_free)| frames.charge_or_wait(connection(slot), bytes, may_free, rest);
        asks.iter().copied().filter(|ask| is_given(*ask)).map(|(slot, ..)| slot).collect()
    }

    #[test]
    fn frames_share_what_there_is_and_one_goes_beyond() {
        // Free bytes, bytes that each of five connections asks for, and the number of connections that get them.
        for (free_bytes, bytes, expected) in [
            (usize::MAX, 50, 3),
            (usize::MAX, 51, 2),
            (usize::MAX, 1000, 1),
            (60, 50, 2),
            (60, 20, 4),
            (0, 1, 1),
        ] {
            let frames = LongFrames::new(SHARE, 0);
            let rest = Rest { free_bytes, ..FREE };
            let given = asked(&frames, rest, &[1, 2, 3, 4, 5].map(|slot| (slot, bytes, false)));
            assert_eq!(given.len(), expected, "{bytes} bytes each, {free_bytes} are free");
            assert_eq!((frames.bytes(), frames.waiting()), (expected * bytes, 5 - expected));
        }
    }

    #[test]
    fn a_part_is_given_back_from_beyond_the_share_first() {
        let frames = LongFrames::new(SHARE, 0);
        assert_eq!(asked(&frames, FREE, &[(1, 90, false), (2, 40, false), (2, 10, false)]), [1, 2, 2]);
        assert_eq!(asked(&frames, FREE, &[(3, 50, false)]), [] as [u32; 0]);
        for (bytes, left, next) in [(30, 110, None), (20, 90, Some(3)), (40, 50, Some(3)), (50, 0, Some(3))] {
            let who = if left >= 90 { 2 } else { 1 };
            frames.give_back(connection(who), bytes);
            assert_eq!((frames.bytes(), frames.next(FREE)), (left, next.map(connection)), "{bytes}");
        }
    }

    #[test]
    fn those_who_wait_come_in_order() {
        let frames = LongFrames::new(SHARE, 0);
        assert_eq!(
            asked(&frames, FREE, &[(1, 90, false), (2, 90, false), (3, 90, false), (4, 5, false)]),
            [1, 2]
        );
        assert_eq!(frames.next(FREE), None);
        assert!(!frames.charge(connection(5), 1, FREE), "others were there before");
        frames.give_back(connection(2), 90);
        assert_eq!(frames.next(FREE), Some(connection(3)));
        assert_eq!(asked(&frames, FREE, &[(4, 5, false), (3, 90, false)]), [3]);
        assert_eq!(frames.next(FREE), Some(connection(4)), "it fits into the share");
        frames.leave(connection(4));
        assert_eq!((frames.next(FREE), frames.waiting()), (None, 0));
        frames.give_back(connection(1), 90);
        frames.give_back(connection(3), 90);
        assert_eq!(frames.bytes(), 0);
    }

    #[test]
    fn frames_that_all_want_more_are_finished_one_by_one() {
        let frames = LongFrames::new(SHARE, 0);
        let asks = [(1, 50, false), (2, 50, false), (3, 50, false)];
        assert_eq!(asked(&frames, FREE, &asks[..2]), [1, 2]);
        for _ in 0..3 {
            assert_eq!(asked(&frames, FREE, &asks), [1], "one has the room beyond");
        }
        assert_eq!(asked(&frames, ALARM, &asks), [] as [u32; 0]);
        assert_eq!((frames.next(FREE), frames.bytes()), (Some(connection(1)), 250), "the others wait for it");
        assert_eq!(asked(&frames, FREE, &asks), [1]);
        frames.give_back(connection(1), 250);
        assert_eq!(asked(&frames, FREE, &asks[1..]), [2, 3], "one has the share, one goes beyond");
        frames.give_back(connection(2), 100);
        frames.give_back(connection(3), 50);
        assert_eq!((frames.bytes(), frames.waiting(), frames.next(FREE)), (0, 0, None));
    }

    #[test]
    fn who_may_end_an_alarm_does_not_wait_for_those_who_wait_for_it() {
        let asks = [(1, 60, false), (2, 60, true), (3, 60, false), (4, 60, true), (5, 60, true)];
        for (rest, expected) in [(FREE, &[1, 2][..]), (DISK_ALARM, &[1, 2, 3, 4, 5]), (ALARM, &[2, 4, 5])] {
            let frames = LongFrames::new(SHARE, 0);
            assert_eq!(asked(&frames, rest, &asks), expected, "{rest:?}");
        }
        let frames = LongFrames::new(SHARE, 0);
        assert_eq!(asked(&frames, FREE, &[(1, 100, false), (2, 100, false)]), [1, 2]);
        assert_eq!(asked(&frames, FREE, &asks[2..]), [] as [u32; 0]);
        for (rest, next) in [(FREE, None), (DISK_ALARM, Some(4)), (ALARM, Some(4))] {
            assert_eq!(
                frames.next(rest),
                next.map(connection),
                "an alarm that has begun meanwhile, {rest:?}"
            );
        }
        assert_eq!(asked(&frames, ALARM, &asks[2..]), [4, 5]);
        assert_eq!(frames.next(ALARM), None);
        frames.give_back(connection(1), 100);
        assert_eq!((frames.next(FREE), frames.bytes()), (None, 220), "they count");
    }
}
