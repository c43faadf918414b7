//! Bytes that wait to be written, in pieces, so that a long backlog is never copied to grow.

use std::collections::VecDeque;

/// Bytes of a piece: one write takes about one.
const PIECE_BYTES: usize = 256 * 1024;

/// A queue of bytes with one writer at a time.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    pieces: VecDeque<Vec<u8>>,
    /// Bytes of the first piece that are written.
    written: usize,
    /// Bytes in all pieces, the written ones of the first included.
    len: usize,
    /// Bytes that were ever appended.
    appended: u64,
    /// Bytes of the piece that is with the writer.
    with_writer: Option<usize>,
}

impl Buffer {
    /// Bytes that are not known to be written.
    pub(super) fn unsent(&self) -> usize {
        self.len - self.written + self.with_writer.unwrap_or(0)
    }

    pub(super) fn has_storage(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// Takes an empty vector to write into.
    pub(super) fn lend(&mut self, storage: Vec<u8>) {
        debug_assert!(storage.is_empty());
        self.pieces.push_back(storage);
    }

    pub(super) fn appended(&self) -> u64 {
        self.appended
    }

    /// Appends what `write` writes.
    pub(super) fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.pieces.back().is_none_or(|last| last.len() >= PIECE_BYTES) {
            self.pieces.push_back(Vec::new());
        }
        let last = self.pieces.back_mut().expect("there is a piece, or one was pushed");
        let before = last.len();
        write(last);
        let added = last.len() - before;
        self.len += added;
        self.appended += added as u64;
    }

    /// The next piece for the writer, and how much of it is written; `None` while another
    /// writer has one, or when there is nothing to write.
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
        self.with_writer = Some(piece.len() - written);
        Some((piece, written))
    }

    /// Puts back the piece that was taken, or gives it emptied where all of it is written.
    pub(super) fn put_back(&mut self, mut piece: Vec<u8>, written: usize) -> Option<Vec<u8>> {
        self.with_writer = None;
        if written >= piece.len() {
            piece.clear();
            return Some(piece);
        }
        self.len += piece.len();
        self.written = written;
        self.pieces.push_front(piece);
        None
    }

    /// Takes back a vector that was lent and not written into.
    pub(super) fn reclaim(&mut self) -> Option<Vec<u8>> {
        if self.pieces.back()?.is_empty() { self.pieces.pop_back() } else { None }
    }
}
