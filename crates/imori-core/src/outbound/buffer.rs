//! Bytes that wait to be written, in pieces, so that a long buffer is never copied to grow.

use std::collections::VecDeque;

/// Bytes of a piece; one write takes about one piece.
const PIECE_BYTES: usize = 256 * 1024;

/// Measures written bytes: how many bytes they stand for.
pub(super) type Weight = fn(&[u8]) -> usize;

/// A queue of bytes with one writer at a time.
///
/// With a weight, the bytes are tickets for deliveries that are kept elsewhere, and what counts as unsent and
/// appended are the deliveries.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    weight: Option<Weight>,
    pieces: VecDeque<Vec<u8>>,
    /// Bytes of the first piece that are already written.
    written: usize,
    /// Bytes in all pieces, including the written ones of the first.
    len: usize,
    /// Total bytes ever appended.
    appended: u64,
    /// Bytes of the piece that the writer has.
    with_writer: Option<usize>,
    /// Bytes not known to be written, here and with the writer; a field, because every delivery reads it.
    unsent: usize,
}

impl Buffer {
    /// Bytes not known to be written.
    #[inline]
    pub(super) fn unsent(&self) -> usize {
        debug_assert!(
            self.weight.is_some() || self.unsent == self.len - self.written + self.with_writer.unwrap_or(0)
        );
        self.unsent
    }

    /// Sets how the bytes are measured; nothing was appended yet, or nothing that has a weight.
    pub(super) fn set_weight(&mut self, weight: Option<Weight>) {
        self.weight = weight;
    }

    fn measure(&self, bytes: &[u8]) -> usize {
        self.weight.map_or(bytes.len(), |weight| weight(bytes))
    }

    pub(super) fn has_storage(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// Accepts an empty vector to write into.
    pub(super) fn lend(&mut self, storage: Vec<u8>) {
        debug_assert!(storage.is_empty());
        self.pieces.push_back(storage);
    }

    pub(super) fn appended(&self) -> u64 {
        self.appended
    }

    /// Appends what `write` writes.
    #[inline(always)]
    pub(super) fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.pieces.back().is_none_or(|last| last.len() >= PIECE_BYTES) {
            self.begin_piece();
        }
        let last = self.pieces.back_mut().expect("there is a piece, or one was pushed");
        let before = last.len();
        write(last);
        let mut added = last.len() - before;
        self.len += added;
        if let Some(weight) = self.weight {
            added = weight(last.get(before..).unwrap_or_default());
        }
        self.unsent += added;
        self.appended += added as u64;
    }

    #[cold]
    fn begin_piece(&mut self) {
        self.pieces.push_back(Vec::new());
    }

    /// Takes the next piece for the writer, and the number of its bytes that are written; `None` while a
    /// writer has a piece, or if there is nothing to write.
    pub(super) fn take(&mut self) -> Option<(Vec<u8>, usize)> {
        if self.with_writer.is_some() || self.len == self.written {
            return None;
        }
        while self.pieces.front().is_some_and(Vec::is_empty) {
            self.pieces.pop_front();
        }
        let piece = self.pieces.pop_front()?;
        let written = std::mem::take(&mut self.written);
        self.len -= piece.len();
        self.with_writer = Some(self.measure(piece.get(written..).unwrap_or_default()));
        Some((piece, written))
    }

    /// Puts back the piece that was taken; returns it emptied if all of it is written.
    pub(super) fn put_back(&mut self, mut piece: Vec<u8>, written: usize) -> Option<Vec<u8>> {
        self.unsent -= self.with_writer.take().unwrap_or(0);
        if written >= piece.len() {
            piece.clear();
            return Some(piece);
        }
        self.unsent += self.measure(piece.get(written..).unwrap_or_default());
        self.len += piece.len();
        self.written = written;
        self.pieces.push_front(piece);
        None
    }

    /// Discards everything that waits, but keeps the total of appended bytes.
    pub(super) fn discard(&mut self) {
        *self = Buffer { weight: self.weight, appended: self.appended, ..Buffer::default() };
    }

    /// Takes back a lent vector that was not written into.
    pub(super) fn reclaim(&mut self) -> Option<Vec<u8>> {
        if self.pieces.back()?.is_empty() { self.pieces.pop_back() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_backlog_waits_in_pieces() {
        let mut buffer = Buffer::default();
        for _ in 0..10 {
            buffer.append(|out| out.extend_from_slice(&[7; PIECE_BYTES / 2]));
        }
        let mut pieces = Vec::new();
        while let Some((piece, written)) = buffer.take() {
            assert_eq!(written, 0);
            pieces.push(piece.len());
            buffer.put_back(piece, PIECE_BYTES);
        }
        assert_eq!(pieces, [PIECE_BYTES; 5]);
        assert_eq!((buffer.unsent(), buffer.appended()), (0, 5 * PIECE_BYTES as u64));
    }

    #[derive(Debug, Clone)]
    enum Step {
        Append(usize),
        Lend,
        Reclaim,
        Take,
        PutBack(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => prop_oneof![0..40_usize, PIECE_BYTES - 1..PIECE_BYTES + 2].prop_map(Step::Append),
            1 => Just(Step::Lend),
            1 => Just(Step::Reclaim),
            3 => Just(Step::Take),
            3 => prop_oneof![0..60_usize, Just(usize::MAX)].prop_map(Step::PutBack),
        ]
    }

    proptest! {
        #[test]
        fn a_buffer_does_what_a_vector_does(steps in prop::collection::vec(step(), 1..60)) {
            let mut buffer = Buffer::default();
            let (mut appended, mut sent) = (Vec::<u8>::new(), Vec::<u8>::new());
            let mut taken: Option<(Vec<u8>, usize)> = None;
            for step in steps {
                match step {
                    Step::Append(len) => {
                        let bytes: Vec<u8> = (appended.len()..appended.len() + len).map(|at| at as u8).collect();
                        buffer.append(|out| out.extend_from_slice(&bytes));
                        appended.extend(bytes);
                    }
                    Step::Lend if !buffer.has_storage() => buffer.lend(Vec::with_capacity(9)),
                    Step::Lend => {}
                    Step::Reclaim => prop_assert!(buffer.reclaim().is_none_or(|storage| storage.is_empty())),
                    Step::Take => {
                        let has_more = buffer.unsent() > 0 && taken.is_none();
                        let next = buffer.take();
                        prop_assert_eq!(next.is_some(), has_more);
                        taken = next.or(taken);
                    }
                    Step::PutBack(more) => {
                        if let Some((piece, written)) = taken.take() {
                            let now = written.saturating_add(more).min(piece.len());
                            sent.extend_from_slice(&piece[written..now]);
                            let is_whole = now == piece.len();
                            prop_assert_eq!(buffer.put_back(piece, now).is_some(), is_whole);
                        }
                    }
                }
                prop_assert_eq!(buffer.unsent(), appended.len() - sent.len());
                prop_assert_eq!(buffer.appended(), appended.len() as u64);
                prop_assert_eq!(&appended[..sent.len()], &sent[..]);
            }
        }
    }
}
