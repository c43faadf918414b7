//! Any bytes as the header, a row and a page of a segment, and pages in which bytes are changed.
//!
//! Held: nothing panics; what verifies reads the same once it is written anew; of a changed page nothing
//! is read but what was written, in its order, and what is missing is told.

use std::convert::Infallible;

use bytes::Bytes;
use imori_store::lsn::Lsn;
use imori_store::seal::{Seal, StoreId};
use imori_store::segment::{
    self, PageEntry, PageFacts, PageRef, PageTimes, Row, RowPlacement, SegmentHeader, SubjectDigest,
};

use crate::planted::fail_if_planted;

/// Runs one input.
pub(crate) fn test_one_input(data: &[u8]) {
    let [choice, input @ ..] = data else { return };
    let seal = Seal::new(StoreId([1; 16]));
    match choice % 2 {
        0 => anything(input, seal),
        _ => changed(input, seal),
    }
}

fn anything(input: &[u8], seal: Seal) {
    if let Ok(header) = SegmentHeader::decode(input) {
        assert_eq!(SegmentHeader::decode(&header.encode()), Ok(header), "what was read can be written");
    }
    for place in [RowPlacement::Table, RowPlacement::Page] {
        if let Some(row) = Row::decode(input, seal, place) {
            assert_eq!(Row::decode(&row.encode(seal, place), seal, place), Some(row));
        }
    }
    let page = segment::decode(&Bytes::copy_from_slice(input), &row(u32::MAX, 0), seal);
    assert!(page.entries.is_empty(), "nobody guesses a checksum that follows from the store's id");
}

/// Pairs of bytes change a page of entries, whose payloads are pieces of the rest.
fn changed(input: &[u8], seal: Seal) {
    let [count, piece, input @ ..] = input else { return };
    let (changes, rest) = input.split_at(usize::from(count % 16).min(input.len()));
    let pieces = rest.chunks(1 + usize::from(*piece));
    let entries: Vec<PageEntry> = (1..)
        .zip(pieces)
        .map(|(number, piece)| PageEntry {
            lsn: Lsn(number * 2),
            sequence: number,
            payload: Bytes::copy_from_slice(piece),
        })
        .collect();
    let count = entries.len() as u32;
    let row = row(count, u64::from(count));
    let mut bytes = Vec::new();
    let pushed = segment::encode(&entries, &row, seal, |piece| {
        bytes.extend_from_slice(piece);
        Ok::<(), Infallible>(())
    });
    assert_eq!(pushed, Ok(()));
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
        bytes[at] ^= change[2];
    }
    let page = segment::decode(&Bytes::from(bytes), &row, seal);
    page.entries.iter().for_each(|entry| planted(&entry.payload));
    let mut written = entries.iter();
    for entry in &page.entries {
        assert!(written.any(|written| written == entry), "what was not written is read: {entry:?}");
    }
    let lost = page.damage.as_ref().map_or(0, |damage| damage.lost);
    assert_eq!(page.entries.len() + lost as usize, entries.len(), "what is missing is told");
    for entry in entries.iter().filter(|entry| !page.entries.contains(entry)) {
        let ranges = page.damage.iter().flat_map(|damage| &damage.lsns);
        let is_named = ranges.into_iter().any(|lsns| (lsns.first..=lsns.last).contains(&entry.lsn));
        assert!(is_named, "{} is lost and not named", entry.lsn);
    }
}

fn row(count: u32, last: u64) -> Row {
    let facts = PageFacts {
        owner: 1,
        level: 4,
        page: PageRef::new(3, 0),
        count,
        bytes: 0,
        first_sequence: 1,
        last_sequence: last,
        first: Lsn(2),
        last: Lsn(last * 2),
        times: PageTimes::default(),
        subjects: SubjectDigest::NONE,
    };
    Row { facts, page_count: 1, rises: true, offset: 4096, len: 0 }
}

/// Does nothing unless a fault is planted: then a payload that begins with 0, 0, 1 is one too many.
fn planted(payload: &[u8]) {
    let is_found = payload.starts_with(&[0, 0, 1]);
    fail_if_planted(is_found);
}
