//! A list that many readers follow: rows as JSON, each written once for all readers when it changes.
//!
//! Passes over the objects are numbered, and each row notes the last pass that changed it. A reader notes the last pass
//! that it has, and gets the rows changed since: each once, in its present state, so nothing queues up for a slow
//! reader. A reader that missed a removal that the list no longer remembers gets the whole list again.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use crate::limits::{FEED_CHUNK_BYTES, FEED_CHUNK_ROWS_MAX, FEED_REMOVED_MAX, FEED_SCANNED_MAX};

/// Rows by their id. `S` tells who sees a row, `N` are the numbers that may change.
#[derive(Debug)]
pub struct Rows<S, N> {
    rows: BTreeMap<u64, Row<S, N>>,
    /// The number of the last whole pass; 0 before the first.
    passed: u64,
    /// Rows that changed or are new in the last whole pass, by rising id.
    changed: Vec<u64>,
    /// The same of the pass in progress.
    changing: Vec<u64>,
    /// Rows that the pass in progress has met.
    met: usize,
    removed: VecDeque<Removed<S>>,
    /// The pass of the last removal that is forgotten.
    forgotten: u64,
}

#[derive(Debug)]
struct Row<S, N> {
    scope: S,
    numbers: N,
    /// The pass in which it changed last.
    changed: u64,
    /// The last pass that met its object.
    met: u64,
    /// The row as JSON.
    text: String,
    /// Length of the part of the text that never changes.
    fixed: usize,
}

#[derive(Debug)]
struct Removed<S> {
    id: u64,
    scope: S,
    pass: u64,
}

/// The position of a reader in a list.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The pass up to which the reader has the list; 0 for nothing.
    synced: u64,
    /// What the reader is getting now, if that takes several chunks.
    round: Option<Round>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Round {
    /// The pass up to which the reader has the list afterwards.
    target: u64,
    after: Option<u64>,
    /// The reader gets all rows.
    is_reset: bool,
    is_begun: bool,
}

/// A part of a list for one reader.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// It begins the list anew.
    pub is_reset: bool,
    /// It continues what an earlier chunk began.
    pub is_continued: bool,
    /// No further chunk follows until the next pass.
    pub is_last: bool,
    /// The rows, as the items of a JSON list.
    pub rows: String,
    /// Ids of rows that are gone, as the items of a JSON list.
    pub removed: String,
}

impl Chunk {
    /// Whether a reader has no use for the chunk: it has no rows, and ends nothing.
    pub fn is_empty(&self) -> bool {
        let ends_another = self.is_last && self.is_continued;
        !self.is_reset && !ends_another && self.rows.is_empty() && self.removed.is_empty()
    }
}

impl<S, N> Default for Rows<S, N> {
    fn default() -> Rows<S, N> {
        Rows {
            rows: BTreeMap::new(),
            passed: 0,
            changed: Vec::new(),
            changing: Vec::new(),
            met: 0,
            removed: VecDeque::new(),
            forgotten: 0,
        }
    }
}

impl<S: Clone, N: PartialEq + Copy> Rows<S, N> {
    /// Forgets all rows, for a list without followers. A later reader gets the whole list.
    pub fn clear(&mut self) {
        if !self.rows.is_empty() || self.passed > 0 {
            *self = Rows { forgotten: self.passed + 1, passed: self.passed + 1, ..Rows::default() };
        }
    }

    /// Whether a pass has filled the list since it was cleared.
    pub fn is_filled(&self) -> bool {
        self.passed > self.forgotten
    }

    /// Begins a pass over all objects.
    pub fn begin(&mut self) {
        self.changing.clear();
        self.met = 0;
    }

    /// Meets an object in the pass: `numbers` makes its numbers from those of the pass before. `make` makes its scope
    /// and the part of its row that never changes, or nothing if the object is gone; `write` adds the numbers.
    pub fn meet(
        &mut self,
        id: u64,
        numbers: impl FnOnce(Option<&N>) -> N,
        make: impl FnOnce() -> Option<(S, String)>,
        write: impl FnOnce(&N, &mut String),
    ) {
        let pass = self.passed + 1;
        match self.rows.get_mut(&id) {
            Some(row) => {
                self.met += 1;
                row.met = pass;
                let numbers = numbers(Some(&row.numbers));
                if numbers != row.numbers {
                    row.text.truncate(row.fixed);
                    write(&numbers, &mut row.text);
                    row.changed = pass;
                    self.changing.push(id);
                }
                // Equal numbers may hold other counts, from which the next rates follow.
                row.numbers = numbers;
            }
            None => {
                let Some((scope, mut text)) = make() else { return };
                let numbers = numbers(None);
                self.met += 1;
                let fixed = text.len();
                write(&numbers, &mut text);
                self.rows.insert(id, Row { scope, numbers, changed: pass, met: pass, text, fixed });
                self.changing.push(id);
            }
        }
    }

    /// Ends the pass: removes the rows whose objects it did not meet, and shows the pass to readers.
    pub fn end(&mut self) {
        let pass = self.passed + 1;
        if self.rows.len() > self.met {
            let removed = &mut self.removed;
            self.rows.retain(|id, row| {
                let is_kept = row.met == pass;
                if !is_kept {
                    removed.push_back(Removed { id: *id, scope: row.scope.clone(), pass });
                }
                is_kept
            });
            while self.removed.len() > FEED_REMOVED_MAX {
                self.forgotten = self.removed.pop_front().map_or(self.forgotten, |removed| removed.pass);
            }
        }
        self.changing.sort_unstable();
        std::mem::swap(&mut self.changed, &mut self.changing);
        self.passed = pass;
    }

    /// The next chunk for a reader who sees the rows of some scopes; `None` if it has the list as it is.
    pub fn next(&self, position: &mut Position, sees: impl Fn(&S) -> bool) -> Option<Chunk> {
        let mut round = match position.round {
            Some(round) => round,
            None if !self.is_filled() || position.synced == self.passed => return None,
            None => {
                let is_reset = position.synced == 0 || position.synced <= self.forgotten;
                Round { target: self.passed, after: None, is_reset, is_begun: false }
            }
        };
        let mut chunk = Chunk {
            is_reset: round.is_reset && !round.is_begun,
            is_continued: round.is_begun,
            is_last: true,
            ..Chunk::default()
        };
        let after = round.after.map_or(Bound::Unbounded, Bound::Excluded);
        let (mut rows, mut scanned) = (0, 0);
        // Usually a reader misses just the last pass, whose changes are known.
        let is_next = !round.is_reset && !round.is_begun && position.synced + 1 == self.passed;
        let mut take = |id: u64, row: &Row<S, N>| {
            if rows == FEED_CHUNK_ROWS_MAX
                || chunk.rows.len() >= FEED_CHUNK_BYTES
                || scanned == FEED_SCANNED_MAX
            {
                return false;
            }
            scanned += 1;
            round.after = Some(id);
            if (round.is_reset || row.changed > position.synced) && sees(&row.scope) {
                if rows > 0 {
                    chunk.rows.push(',');
                }
                chunk.rows.push_str(&row.text);
                rows += 1;
            }
            true
        };
        let is_whole = if is_next && self.changed.len() <= FEED_CHUNK_ROWS_MAX {
            let mut changed = self.changed.iter().filter_map(|id| Some((*id, self.rows.get(id)?)));
            changed.all(|(id, row)| take(id, row))
        } else {
            self.rows.range((after, Bound::Unbounded)).all(|(id, row)| take(*id, row))
        };
        round.is_begun = true;
        if !is_whole {
            chunk.is_last = false;
            position.round = Some(round);
            return Some(chunk);
        }
        if !round.is_reset {
            let gone = self.removed.iter().rev().take_while(|removed| removed.pass > position.synced);
            for removed in gone.filter(|removed| sees(&removed.scope)) {
                let separator = if chunk.removed.is_empty() { "" } else { "," };
                chunk.removed.push_str(separator);
                chunk.removed.push_str(&removed.id.to_string());
            }
        }
        *position = Position { synced: round.target, round: None };
        Some(chunk)
    }
}

impl Position {
    /// Begins anew with the next chunk, because the reader sees other rows now.
    pub fn reset(&mut self) {
        *self = Position::default();
    }
}
