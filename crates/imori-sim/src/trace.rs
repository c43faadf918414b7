//! The trace of a run: a hash that equal runs share, and lines for people.

use std::cell::Cell;

/// A function that receives each line of a trace, without its line break.
pub type TraceReader = fn(&str);

/// The trace of one run.
#[derive(Debug)]
pub(crate) struct Trace {
    hash: Cell<u64>,
    reader: Option<TraceReader>,
}

impl Trace {
    pub(crate) fn new(reader: Option<TraceReader>) -> Trace {
        Trace { hash: Cell::new(0xcbf2_9ce4_8422_2325), reader }
    }

    /// Notes an event: the words enter the hash; the text is only produced for a reader.
    pub(crate) fn note(&self, words: &[u64], text: impl FnOnce() -> String) {
        for word in words {
            self.mix(*word);
        }
        if let Some(read) = self.reader {
            read(&text());
        }
    }

    /// Adds bytes to the hash.
    pub(crate) fn note_bytes(&self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            self.mix(u64::from_le_bytes(*chunk.first_chunk().expect("chunks have eight bytes")));
        }
        let rest =
            chunks.remainder().iter().fold(bytes.len() as u64, |word, byte| word << 8 | u64::from(*byte));
        self.mix(rest);
    }

    /// The hash that equal runs share.
    pub(crate) fn hash(&self) -> u64 {
        self.hash.get()
    }

    fn mix(&self, word: u64) {
        let hash = (self.hash.get() ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.hash.set(hash.rotate_left(23));
    }
}
