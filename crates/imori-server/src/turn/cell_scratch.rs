//! The memory and lists that the turns of a cell share; a cell runs one turn at a time.

use std::cell::{Cell, RefCell};

use imori_core::confirm::{Confirm, Level, Progress};
use imori_core::id::{ConnectionId, QueueId};
use imori_core::stream::LateAnswer;
use imori_core::time::Time;
use imori_core::turn::Budget;

use crate::limits::{BESIDE_OTHERS, SPARE_BUFFER_BYTES_MAX, SPARE_BUFFERS_MAX};
use crate::protocols::Scratch;

/// The buffers that turns share, and the lists of connections to flush or to tell about the journal.
#[derive(Debug)]
pub struct CellScratch {
    read_bytes: usize,
    /// The buffer that a connection reads into, behind its carried-over bytes: used within a turn only.
    pub(super) buffer: RefCell<Vec<u8>>,
    /// The notes that protocols make of a frame while they read it: used within a turn only.
    scratch: RefCell<Scratch>,
    touched: RefCell<Vec<ConnectionId>>,
    touched_since: Cell<Time>,
    /// The connection of the current turn, or of the last one.
    turn_of: Cell<Option<ConnectionId>>,
    /// When the turn last passed from one connection to another.
    changed_at: Cell<Time>,
    /// The connection in whose turn all of `touched` were touched; `None` if there were several.
    touched_in: Cell<Option<ConnectionId>>,
    /// Connections of this cell with answers that wait for the journal.
    awaiting: RefCell<Vec<ConnectionId>>,
    /// Streams whose messages wait for the journal.
    streams: RefCell<Vec<(QueueId, Confirm)>>,
    /// Answers about streams that are gone, which wait for the journal.
    late: RefCell<Vec<(Confirm, LateAnswer)>>,
    /// Some of these answers wait only for the journal's write, not for its sync.
    awaits_write: Cell<bool>,
    /// The progress of the journal that these connections were last told.
    journal_told: Cell<Progress>,
    /// A connection joined the list since then and was told nothing.
    has_untold: Cell<bool>,
    /// The sampled confirm, and when it began to wait. One sample at a time is enough to measure latency.
    confirm_sample: Cell<Option<(Confirm, Time)>>,
    /// When the connection of this turn may publish again, if it exceeded a publish rate.
    rate_wait: Cell<Option<Time>>,
    /// Empty buffers for outbound halves to write into.
    spare: RefCell<Vec<Vec<u8>>>,
}

/// Scratch memory of a protocol that a cell can lend.
pub trait Lent: Default {
    /// Lends the memory for a turn: the cell's own if the cell has this type, otherwise a new one.
    fn lend<R>(_: &CellScratch, f: impl FnOnce(&mut Self) -> R) -> R {
        f(&mut Self::default())
    }
}

/// For protocols that need no scratch memory.
impl Lent for () {}

impl Lent for Scratch {
    fn lend<R>(cell_scratch: &CellScratch, f: impl FnOnce(&mut Scratch) -> R) -> R {
        f(&mut cell_scratch.scratch.borrow_mut())
    }
}

impl CellScratch {
    /// Scratch memory for a cell that reads `read_bytes` from a connection in a turn.
    pub fn new(read_bytes: usize) -> CellScratch {
        CellScratch {
            read_bytes,
            buffer: RefCell::new(vec![0; 2 * read_bytes]),
            scratch: RefCell::default(),
            touched: RefCell::default(),
            touched_since: Cell::default(),
            turn_of: Cell::default(),
            changed_at: Cell::default(),
            touched_in: Cell::default(),
            awaiting: RefCell::default(),
            streams: RefCell::default(),
            late: RefCell::default(),
            awaits_write: Cell::new(false),
            journal_told: Cell::default(),
            has_untold: Cell::new(false),
            confirm_sample: Cell::default(),
            rate_wait: Cell::default(),
            spare: RefCell::default(),
        }
    }

    /// Bytes read from a connection in a turn.
    pub fn read_bytes(&self) -> usize {
        self.read_bytes
    }

    /// Number of connections with bytes to write.
    pub fn touched_len(&self) -> usize {
        self.touched.borrow().len()
    }

    /// When the first of them was touched.
    pub fn touched_since(&self) -> Time {
        self.touched_since.get()
    }

    /// Notes that a connection has bytes to write.
    pub fn note_touched(&self, id: ConnectionId, now: Time) {
        let mut touched = self.touched.borrow_mut();
        if touched.is_empty() {
            self.touched_since.set(now);
            self.touched_in.set(self.turn_of.get());
        } else if self.touched_in.get() != self.turn_of.get() {
            self.touched_in.set(None);
        }
        touched.push(id);
    }

    /// Notes that a connection's turn begins.
    pub(super) fn begin_turn_of(&self, id: ConnectionId, now: Time) {
        if self.turn_of.replace(Some(id)) != Some(id) {
            self.changed_at.set(now);
        }
    }

    /// Tells whether the current turn, or the last one, is this connection's.
    pub fn is_turn_of(&self, id: ConnectionId) -> bool {
        self.turn_of.get() == Some(id)
    }

    /// The connection whose turn is the current one, or was the last one.
    pub fn turn_of(&self) -> Option<ConnectionId> {
        self.turn_of.get()
    }

    /// Notes when the connection of the current turn may publish again.
    pub fn note_rate_wait(&self, until: Time) {
        self.rate_wait.set(Some(until));
    }

    /// Takes the time noted by [`CellScratch::note_rate_wait`].
    pub(super) fn take_rate_wait(&self) -> Option<Time> {
        self.rate_wait.take()
    }

    /// The budget of the current turn, which is smaller while other connections have turns too.
    pub(super) fn budget(&self, now: Time) -> Budget {
        match now.since(self.changed_at.get()) < BESIDE_OTHERS {
            true => Budget::beside_others(),
            false => Budget::default(),
        }
    }

    /// Tells whether connections were touched in other turns than this connection's.
    pub(super) fn is_touched_by_others_than(&self, id: ConnectionId) -> bool {
        !self.touched.borrow().is_empty() && self.touched_in.get() != Some(id)
    }

    /// Takes the list of connections with bytes to write.
    pub fn take_touched(&self) -> Vec<ConnectionId> {
        std::mem::take(&mut self.touched.borrow_mut())
    }

    /// Returns a used list, so that the next one needs no allocation.
    pub(super) fn recycle_touched(&self, mut list: Vec<ConnectionId>) {
        let mut touched = self.touched.borrow_mut();
        if touched.capacity() == 0 {
            list.clear();
            *touched = list;
        }
    }

    /// Tells whether answers wait for the journal.
    pub fn awaits_journal(&self) -> bool {
        !self.awaiting.borrow().is_empty()
            || !self.streams.borrow().is_empty()
            || !self.late.borrow().is_empty()
    }

    /// Tells whether some of them wait only for the journal's write, and clears the note.
    pub(super) fn take_write_awaited(&self) -> bool {
        self.awaits_write.take()
    }

    /// Notes an answer that waits only for the journal's write, not for its sync.
    pub(super) fn note_write_awaited(&self) {
        self.awaits_write.set(true);
    }

    /// Notes a connection with answers that begin to wait for the journal.
    pub(super) fn note_awaiting(&self, id: ConnectionId) {
        self.has_untold.set(true);
        self.awaiting.borrow_mut().push(id);
    }

    /// Notes a stream whose messages wait for the journal.
    pub fn note_stream(&self, id: QueueId, confirm: Confirm) {
        self.has_untold.set(true);
        if confirm.level() == Level::Os {
            self.awaits_write.set(true);
        }
        self.streams.borrow_mut().push((id, confirm));
    }

    /// Keeps an answer that waits for the journal.
    pub fn note_late_answer(&self, confirm: Confirm, answer: LateAnswer) {
        self.has_untold.set(true);
        if confirm.level() == Level::Os {
            self.awaits_write.set(true);
        }
        self.late.borrow_mut().push((confirm, answer));
    }

    /// Takes the late answers that this progress of the journal reaches.
    pub(super) fn take_late_answers(&self, journal: Progress) -> Vec<LateAnswer> {
        let reached = |(confirm, _): &mut (Confirm, LateAnswer)| confirm.is_reached(journal);
        self.late.borrow_mut().extract_if(.., reached).map(|(_, answer)| answer).collect()
    }

    /// Takes the streams whose messages this progress of the journal reaches.
    pub(super) fn take_streams(&self, journal: Progress) -> Vec<QueueId> {
        let reached = |(_, confirm): &mut (QueueId, Confirm)| confirm.is_reached(journal);
        self.streams.borrow_mut().extract_if(.., reached).map(|(id, _)| id).collect()
    }

    /// Notes a confirm that begins to wait, and samples it unless another is being sampled.
    pub(super) fn begin_confirm_sample(&self, confirm: Confirm, now: Time) {
        if self.confirm_sample.get().is_none() {
            self.confirm_sample.set(Some((confirm, now)));
        }
    }

    /// Ends the sample if the journal has reached its confirm; returns when the confirm began to wait.
    pub(super) fn end_confirm_sample(&self, journal: Progress) -> Option<Time> {
        let (confirm, since) = self.confirm_sample.get()?;
        if !confirm.is_reached(journal) {
            return None;
        }
        self.confirm_sample.set(None);
        Some(since)
    }

    /// Notes a connection whose answers still wait after it was told about the journal.
    pub(super) fn note_awaiting_on(&self, id: ConnectionId) {
        self.awaiting.borrow_mut().push(id);
    }

    /// Tells whether some waiting connection has not been told of this progress.
    pub(super) fn is_behind(&self, journal: Progress) -> bool {
        self.has_untold.get() || self.journal_told.get() != journal
    }

    /// Takes the list of waiting connections, to tell them this progress.
    pub(super) fn take_awaiting(&self, journal: Progress) -> Vec<ConnectionId> {
        self.journal_told.set(journal);
        self.has_untold.set(false);
        std::mem::take(&mut self.awaiting.borrow_mut())
    }

    /// An empty buffer, if one is at hand.
    pub(super) fn spare(&self) -> Option<Vec<u8>> {
        self.spare.borrow_mut().pop()
    }

    /// Keeps an empty buffer for later use.
    pub(super) fn recycle(&self, buffer: Vec<u8>) {
        let mut spare = self.spare.borrow_mut();
        if spare.len() < SPARE_BUFFERS_MAX && (1..=SPARE_BUFFER_BYTES_MAX).contains(&buffer.capacity()) {
            spare.push(buffer);
        }
    }

    /// Takes back an unused buffer from [`CellScratch::spare`] without checking the limits, as it had room there
    /// before.
    pub(super) fn give_back(&self, buffer: Option<Vec<u8>>) {
        self.spare.borrow_mut().extend(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(slot: u32) -> ConnectionId {
        ConnectionId { cell: 0, slot, generation: 0 }
    }

    #[test]
    fn what_a_connection_caused_itself_is_not_of_others() {
        // The connections in whose turns something was touched, the one with the next turn, and the result.
        let rows: [(&[u32], u32, bool); 6] = [
            (&[], 1, false),
            (&[1], 1, false),
            (&[1, 1, 1], 1, false),
            (&[2], 1, true),
            (&[1, 2], 1, true),
            (&[2, 1], 1, true),
        ];
        for (turns, comes_back, expected) in rows {
            let cell_scratch = CellScratch::new(0);
            for (turn, touched) in turns.iter().zip(10..) {
                cell_scratch.begin_turn_of(connection(*turn), Time(0));
                cell_scratch.note_touched(connection(touched), Time(0));
            }
            cell_scratch.begin_turn_of(connection(comes_back), Time(0));
            let is_of_others = cell_scratch.is_touched_by_others_than(connection(comes_back));
            assert_eq!(is_of_others, expected, "{turns:?} {comes_back}");
            cell_scratch.recycle_touched(cell_scratch.take_touched());
            assert!(!cell_scratch.is_touched_by_others_than(connection(comes_back)), "it is written");
        }
    }

    #[test]
    fn a_turn_is_short_while_others_have_theirs() {
        let cell_scratch = CellScratch::new(0);
        let micros = |millis: u64| Time(millis * 1000);
        // The connection with a turn, the millisecond, and whether the turn is short.
        let rows = [
            (1, 100, true),
            (1, 105, true),
            (1, 111, false),
            (1, 500, false),
            (2, 501, true),
            (1, 502, true),
        ];
        for (connection_slot, millis, is_short) in rows {
            cell_scratch.begin_turn_of(connection(connection_slot), micros(millis));
            let expected = if is_short { Budget::beside_others() } else { Budget::default() };
            assert_eq!(cell_scratch.budget(micros(millis)), expected, "{connection_slot} at {millis}");
        }
    }
}
