//! A run of consecutive entries in memory. It grows and is cut in pieces, so that a long run never moves all
//! of its entries at once.

use std::collections::VecDeque;

use super::entry::Entry;

/// Entries of a piece: large enough that pieces are few, small enough that memory is soon given back.
const PIECE_LEN: usize = 256;

/// Entries for which an empty queue keeps room: many queues are empty most of the time.
const PIECE_KEPT: usize = 32;

/// The place of an entry in a run: its piece, and its index in that piece.
pub(crate) type RunPlace = (usize, usize);

/// Entries in order.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pieces: VecDeque<Piece>,
    len: usize,
    memory: usize,
}

#[derive(Debug, Default)]
struct Piece {
    entries: VecDeque<Entry>,
    memory: usize,
}

impl Piece {
    fn of(entries: VecDeque<Entry>) -> Piece {
        let memory = entries.iter().map(Entry::memory).sum();
        Piece { entries, memory }
    }
}

impl Run {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory that the entries occupy.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    pub(crate) fn push_back(&mut self, entry: Entry) {
        let memory = entry.memory();
        self.len += 1;
        self.memory += memory;
        match self.pieces.back_mut() {
            Some(last) if last.entries.len() < PIECE_LEN => {
                last.entries.push_back(entry);
                last.memory += memory;
            }
            // The first piece grows with its queue; later pieces are allocated whole.
            Some(_) => {
                let mut entries = VecDeque::with_capacity(PIECE_LEN);
                entries.push_back(entry);
                self.pieces.push_back(Piece { entries, memory });
            }
            None => self.pieces.push_back(Piece { entries: VecDeque::from([entry]), memory }),
        }
    }

    pub(crate) fn front(&self) -> Option<&Entry> {
        self.pieces.front()?.entries.front()
    }

    pub(crate) fn pop_front(&mut self) -> Option<Entry> {
        let is_last = self.pieces.len() == 1;
        let first = self.pieces.front_mut()?;
        let entry = first.entries.pop_front()?;
        let memory = entry.memory();
        first.memory -= memory;
        if first.entries.is_empty() && (!is_last || first.entries.capacity() > PIECE_KEPT) {
            self.pieces.pop_front();
        }
        self.len -= 1;
        self.memory -= memory;
        Some(entry)
    }

    /// The entries from sequence number `mark` on, each with its place. Numbers rise in a run.
    pub(crate) fn from(&self, mark: u64) -> impl Iterator<Item = (RunPlace, &Entry)> {
        let is_before = |entry: &Entry| entry.envelope.sequence < mark;
        let first = self.pieces.partition_point(|piece| piece.entries.back().is_none_or(is_before));
        let skip = self.pieces.get(first).map_or(0, |piece| piece.entries.partition_point(is_before));
        self.pieces.iter().enumerate().skip(first).flat_map(move |(at, piece)| {
            let entries = piece.entries.iter().enumerate();
            entries.skip(if at == first { skip } else { 0 }).map(move |(index, entry)| ((at, index), entry))
        })
    }

    /// The place of the first entry.
    pub(crate) fn first_place(&self) -> Option<RunPlace> {
        self.pieces.iter().position(|piece| !piece.entries.is_empty()).map(|piece| (piece, 0))
    }

    /// Takes out the entry at this place.
    pub(crate) fn take_at(&mut self, (piece, index): RunPlace) -> Option<Entry> {
        let is_last = self.pieces.len() == 1;
        let of = self.pieces.get_mut(piece)?;
        let entry = of.entries.remove(index)?;
        let memory = entry.memory();
        of.memory -= memory;
        if of.entries.is_empty() && !is_last {
            self.pieces.remove(piece);
        }
        self.len -= 1;
        self.memory -= memory;
        Some(entry)
    }

    /// Finds an entry by its sequence number.
    pub(crate) fn find(&self, sequence: u64) -> Option<&Entry> {
        self.iter().find(|entry| entry.envelope.sequence == sequence)
    }

    /// Takes out an entry, wherever it stands.
    pub(crate) fn take_out(&mut self, sequence: u64) -> Option<Entry> {
        let is_it = |entry: &Entry| entry.envelope.sequence == sequence;
        let mut pieces = self.pieces.iter_mut().enumerate();
        let (piece, entry) = pieces.find_map(|(piece, of)| {
            let at = of.entries.iter().position(is_it)?;
            of.entries.remove(at).map(|entry| (piece, entry))
        })?;
        let memory = entry.memory();
        self.len -= 1;
        self.memory -= memory;
        let is_last = self.pieces.len() == 1;
        if let Some(of) = self.pieces.get_mut(piece) {
            of.memory -= memory;
            if of.entries.is_empty() && !is_last {
                self.pieces.remove(piece);
            }
        }
        Some(entry)
    }

    /// Appends `later`.
    pub(crate) fn append(&mut self, later: Run) {
        self.len += later.len;
        self.memory += later.memory;
        self.pieces.retain(|piece| !piece.entries.is_empty());
        self.pieces.extend(later.pieces.into_iter().filter(|piece| !piece.entries.is_empty()));
    }

    /// Cuts off the first entries, until they occupy at least `memory` bytes.
    pub(crate) fn cut(&mut self, memory: usize) -> Run {
        let mut first = Run::default();
        while first.memory < memory {
            let Some(piece) = self.pieces.pop_front() else { break };
            let missing = memory - first.memory;
            if piece.memory <= missing {
                first.take(self, piece);
                continue;
            }
            let (mut entries, mut taken) = (piece.entries, 0);
            let count = entries.iter().take_while(|entry| {
                let is_missing = taken < missing;
                taken += entry.memory();
                is_missing
            });
            let count = count.count();
            let rest = Piece::of(entries.split_off(count));
            first.take(self, Piece::of(entries));
            if !rest.entries.is_empty() {
                self.pieces.push_front(rest);
            }
        }
        first
    }

    /// Cuts off the entries below sequence number `mark`. Numbers rise in a run.
    pub(crate) fn cut_before(&mut self, mark: u64) -> Run {
        let mut first = Run::default();
        let is_before = |entry: &Entry| entry.envelope.sequence < mark;
        while let Some(mut piece) = self.pieces.pop_front() {
            let count = piece.entries.partition_point(is_before);
            if count == piece.entries.len() {
                first.take(self, piece);
                continue;
            }
            let rest = Piece::of(piece.entries.split_off(count));
            if count > 0 {
                first.take(self, Piece::of(piece.entries));
            }
            self.pieces.push_front(rest);
            break;
        }
        first
    }

    fn take(&mut self, from: &mut Run, piece: Piece) {
        from.len -= piece.entries.len();
        from.memory -= piece.memory;
        self.len += piece.entries.len();
        self.memory += piece.memory;
        self.pieces.push_back(piece);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.pieces.iter().flat_map(|piece| &piece.entries)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.pieces.iter_mut().flat_map(|piece| &mut piece.entries)
    }

    pub(crate) fn into_entries(self) -> impl Iterator<Item = Entry> {
        self.pieces.into_iter().flat_map(|piece| piece.entries)
    }

    /// Number of entries that fit without growing.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.pieces.iter().map(|piece| piece.entries.capacity()).sum()
    }
}

impl Extend<Entry> for Run {
    fn extend<I: IntoIterator<Item = Entry>>(&mut self, entries: I) {
        entries.into_iter().for_each(|entry| self.push_back(entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confirm::Lsn;
    use crate::queue::entry;

    /// A run of `len` messages of one size, with records from `first` on.
    fn run(first: u64, len: u64) -> Run {
        let mut run = Run::default();
        run.extend((first..first + len).map(|lsn| entry(Lsn(lsn), b"body")));
        run
    }

    fn lsns(run: &Run) -> Vec<u64> {
        run.iter().map(|entry| entry.envelope.lsn.0).collect()
    }

    /// Checks the sums of a run against its entries.
    fn check(run: &Run) {
        assert_eq!(run.len(), run.iter().count());
        assert_eq!(run.memory(), run.iter().map(Entry::memory).sum::<usize>());
        for piece in &run.pieces {
            assert_eq!(piece.memory, piece.entries.iter().map(Entry::memory).sum::<usize>());
            assert!(piece.entries.len() <= PIECE_LEN, "{} would move at once", piece.entries.len());
        }
    }

    #[test]
    fn a_cut_takes_just_enough_from_the_front() {
        let one = entry(Lsn(1), b"body").memory();
        // Number of messages, bytes to cut off, and the number of messages that takes.
        for (len, memory, expected) in [
            (3, 0, 0),
            (3, 1, 1),
            (3, one - 1, 1),
            (3, one, 1),
            (3, one + 1, 2),
            (3, 3 * one, 3),
            (3, usize::MAX, 3),
            (600, 256 * one, 256),
            (600, 256 * one + 1, 257),
            (600, 300 * one, 300),
            (600, 599 * one + 1, 600),
        ] {
            let mut rest = run(1, len);
            let cut = rest.cut(memory);
            let row = format!("{memory} bytes of {len}, {one} each");
            assert_eq!(lsns(&cut), (1..=expected).collect::<Vec<_>>(), "{row}");
            assert_eq!(lsns(&rest), (expected + 1..=len).collect::<Vec<_>>(), "{row}");
            check(&cut);
            check(&rest);
        }
    }

    #[test]
    fn what_is_taken_from_the_front_is_in_it_no_more() {
        for appended in [0, 1, 300] {
            let mut run = run(1, 300);
            run.append(self::run(301, appended));
            for lsn in 1..=300 + appended {
                check(&run);
                assert_eq!(run.front().map(|entry| entry.envelope.lsn), Some(Lsn(lsn)));
                assert_eq!(run.pop_front().map(|entry| entry.envelope.lsn), Some(Lsn(lsn)));
            }
            check(&run);
            assert!(run.is_empty() && run.pop_front().is_none());
        }
    }

    #[test]
    fn an_empty_run_keeps_room_for_a_few() {
        for (len, is_kept) in [(1, true), (PIECE_KEPT, true), (PIECE_KEPT + 1, false), (PIECE_LEN + 1, false)]
        {
            let mut run = run(1, len as u64);
            while run.pop_front().is_some() {}
            assert_eq!(run.capacity() >= len, is_kept, "{} after {len}", run.capacity());
        }
    }
}
