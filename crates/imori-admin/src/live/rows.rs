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
pub(crate) struct Rows<S, N> {
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
pub(crate) struct Position {
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
pub(crate) struct Chunk {
    /// It begins the list anew.
    pub(crate) is_reset: bool,
    /// It continues what an earlier chunk began.
    is_continued: bool,
    /// No further chunk follows until the next pass.
    pub(crate) is_last: bool,
    /// The rows, as the items of a JSON list.
    pub(crate) rows: String,
    /// Ids of rows that are gone, as the items of a JSON list.
    pub(crate) removed: String,
}

impl Chunk {
    /// Whether a reader has no use for the chunk: it has no rows, and ends nothing.
    pub(crate) fn is_empty(&self) -> bool {
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
    pub(super) fn clear(&mut self) {
        if !self.rows.is_empty() || self.passed > 0 {
            *self = Rows { forgotten: self.passed + 1, passed: self.passed + 1, ..Rows::default() };
        }
    }

    /// Whether a pass has filled the list since it was cleared.
    pub(super) fn is_filled(&self) -> bool {
        self.passed > self.forgotten
    }

    /// Begins a pass over all objects.
    pub(super) fn begin(&mut self) {
        self.changing.clear();
        self.met = 0;
    }

    /// Meets an object in the pass: `numbers` makes its numbers from those of the pass before. `make` makes its scope
    /// and the part of its row that never changes, or nothing if the object is gone; `write` adds the numbers.
    pub(super) fn meet(
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
    pub(super) fn end(&mut self) {
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
    pub(crate) fn next(&self, position: &mut Position, sees: impl Fn(&S) -> bool) -> Option<Chunk> {
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
    pub(crate) fn reset(&mut self) {
        *self = Position::default();
    }

    /// Whether the reader has got everything of its present round.
    #[cfg(test)]
    fn is_whole(self) -> bool {
        self.round.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;

    /// A list whose rows are `[id, number]`; the scope is the id's last bit.
    #[derive(Default)]
    struct List {
        rows: Rows<u64, u64>,
        objects: BTreeMap<u64, u64>,
    }

    impl List {
        fn pass(&mut self) {
            self.rows.begin();
            for (id, number) in &self.objects {
                self.rows.meet(
                    *id,
                    |_| *number,
                    || Some((id % 2, format!("[{id},"))),
                    |number, text| text.push_str(&format!("{number}]")),
                );
            }
            self.rows.end();
        }
    }

    /// A reader that applies what it gets.
    #[derive(Default)]
    struct Reader {
        position: Position,
        rows: BTreeMap<u64, u64>,
        resets: usize,
        chunks: usize,
    }

    impl Reader {
        /// Gets one chunk; false if there is none.
        fn step(&mut self, list: &List, sees: impl Fn(&u64) -> bool) -> bool {
            let Some(chunk) = list.rows.next(&mut self.position, sees) else { return false };
            self.chunks += 1;
            if chunk.is_reset {
                self.rows.clear();
                self.resets += 1;
            }
            let rows: Vec<(u64, u64)> = serde_json::from_str(&format!("[{}]", chunk.rows)).unwrap();
            assert!(rows.len() <= FEED_CHUNK_ROWS_MAX);
            self.rows.extend(rows);
            let removed: Vec<Value> = serde_json::from_str(&format!("[{}]", chunk.removed)).unwrap();
            for id in removed {
                self.rows.remove(&id.as_u64().unwrap());
            }
            assert_eq!(chunk.is_last, self.position.is_whole());
            true
        }

        fn catch_up(&mut self, list: &List) {
            while self.step(list, |_| true) {}
        }
    }

    #[test]
    fn a_reader_gets_all_rows_and_then_changes() {
        let (mut list, mut reader) = (List::default(), Reader::default());
        assert!(!reader.step(&list, |_| true), "there is no pass yet");
        list.objects = (1..=4).map(|id| (id, 0)).collect();
        list.pass();
        reader.catch_up(&list);
        assert_eq!((reader.rows.clone(), reader.resets, reader.chunks), (list.objects.clone(), 1, 1));
        list.objects.insert(2, 7);
        list.objects.remove(&3);
        list.objects.insert(9, 1);
        list.pass();
        let chunk = list.rows.next(&mut reader.position.clone(), |_| true).unwrap();
        assert_eq!((chunk.rows.as_str(), chunk.removed.as_str()), ("[2,7],[9,1]", "3"));
        reader.catch_up(&list);
        assert_eq!((&reader.rows, reader.resets), (&list.objects, 1));
        list.pass();
        assert!(list.rows.next(&mut reader.position, |_| true).unwrap().is_empty(), "nothing has changed");
    }

    #[test]
    fn a_reader_sees_only_its_own_rows() {
        let (mut list, mut reader) = (List::default(), Reader::default());
        list.objects = (1..=4).map(|id| (id, 0)).collect();
        list.pass();
        reader.step(&list, |scope| *scope == 1);
        assert_eq!(reader.rows.keys().copied().collect::<Vec<_>>(), [1, 3]);
        list.objects = BTreeMap::from([(1, 5), (2, 5)]);
        list.pass();
        let chunk = list.rows.next(&mut reader.position, |scope| *scope == 1).unwrap();
        assert_eq!((chunk.rows.as_str(), chunk.removed.as_str()), ("[1,5]", "3"));
        reader.position.reset();
        reader.step(&list, |scope| *scope == 0);
        assert_eq!((reader.rows.keys().copied().collect::<Vec<_>>(), reader.resets), (vec![2], 2));
    }

    #[test]
    fn a_long_list_comes_in_chunks_that_agree_with_changes_meanwhile() {
        let (mut list, mut reader) = (List::default(), Reader::default());
        let count = 3 * FEED_CHUNK_ROWS_MAX as u64 + 1;
        list.objects = (1..=count).map(|id| (id, 0)).collect();
        list.pass();
        for round in 0..4 {
            assert!(reader.step(&list, |_| true));
            list.objects.insert(1, round);
            list.objects.insert(count - 1, round);
            list.objects.remove(&(2 + round));
            list.pass();
        }
        reader.catch_up(&list);
        assert_eq!((&reader.rows, reader.resets), (&list.objects, 1));
        assert!(reader.chunks <= 6, "{}", reader.chunks);
        list.objects.values_mut().for_each(|number| *number += 1);
        list.pass();
        reader.catch_up(&list);
        assert_eq!((&reader.rows, reader.resets), (&list.objects, 1));
    }

    #[test]
    fn a_slow_reader_gets_each_changed_row_once_or_begins_anew() {
        let (mut list, mut reader) = (List::default(), Reader::default());
        list.objects = (1..=10).map(|id| (id, 0)).collect();
        list.pass();
        reader.catch_up(&list);
        for number in 1..100 {
            list.objects.insert(3, number);
            list.pass();
        }
        let before = reader.chunks;
        reader.catch_up(&list);
        assert_eq!((&reader.rows, reader.resets, reader.chunks - before), (&list.objects, 1, 1));
        for _ in 0..2 {
            list.objects.extend((100..100 + FEED_REMOVED_MAX as u64).map(|id| (id, 0)));
            list.pass();
            list.objects.retain(|id, _| *id < 100);
            list.pass();
        }
        assert_eq!(list.rows.removed.len(), FEED_REMOVED_MAX);
        reader.catch_up(&list);
        assert_eq!((&reader.rows, reader.resets), (&list.objects, 2), "removals are forgotten");
    }

    #[test]
    fn a_list_that_was_forgotten_begins_anew() {
        let (mut list, mut reader) = (List::default(), Reader::default());
        list.objects = BTreeMap::from([(1, 1)]);
        list.pass();
        reader.catch_up(&list);
        list.rows.clear();
        assert!(!list.rows.is_filled() && !reader.step(&list, |_| true));
        list.objects = BTreeMap::from([(2, 1)]);
        list.pass();
        reader.catch_up(&list);
        assert_eq!((&reader.rows, reader.resets), (&list.objects, 2));
    }
}
