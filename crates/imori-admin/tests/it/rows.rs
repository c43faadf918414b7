//! Lists that many readers follow.

use std::collections::BTreeMap;

use imori_admin::for_tests::{FEED_CHUNK_ROWS_MAX, FEED_REMOVED_MAX, Position, Rows};
use serde_json::Value;

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
    /// The last chunk is to be continued.
    is_within: bool,
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
        assert_eq!(chunk.is_continued, self.is_within);
        self.is_within = !chunk.is_last;
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
    // The list remembers the removals of its last pass, but not the one before these.
    let mut later = Reader::default();
    list.objects.extend((100..101 + FEED_REMOVED_MAX as u64).map(|id| (id, 0)));
    list.pass();
    reader.catch_up(&list);
    list.objects.remove(&100);
    list.pass();
    list.pass();
    later.catch_up(&list);
    list.objects.retain(|id, _| *id < 100);
    list.pass();
    later.catch_up(&list);
    assert_eq!((&later.rows, later.resets), (&list.objects, 1), "these removals are remembered");
    reader.catch_up(&list);
    assert_eq!((&reader.rows, reader.resets), (&list.objects, 2), "a removal is forgotten");
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
