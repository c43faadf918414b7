use proptest::prelude::*;

use super::*;
use crate::seal::StoreId;
use crate::segment::row::{PageFacts, SubjectDigest};

fn seal() -> Seal {
    Seal::new(StoreId([1; 16]))
}

fn entry(lsn: u64, sequence: u64, payload: &[u8]) -> PageEntry {
    PageEntry { lsn: Lsn(lsn), sequence, payload: Bytes::copy_from_slice(payload) }
}

/// The row of a page with these entries, as far as reading it needs.
fn row(entries: &[PageEntry]) -> Row {
    let lsns = || entries.iter().map(|entry| entry.lsn);
    let facts = PageFacts {
        owner: 5,
        level: 4,
        page: PageRef::new(2, 3),
        count: entries.len() as u32,
        bytes: 0,
        first_sequence: 0,
        last_sequence: 0,
        first: lsns().min().unwrap_or(Lsn(0)),
        last: lsns().max().unwrap_or(Lsn(0)),
        times: PageTimes::default(),
        subjects: SubjectDigest::NONE,
    };
    let rises = entries.is_sorted_by(|one, next| one.lsn < next.lsn);
    Row { facts, page_count: 4, rises, offset: 4096, len: page_bytes(entries) as u32 }
}

fn encoded(entries: &[PageEntry], seal: Seal) -> Vec<u8> {
    let mut out = Vec::new();
    let pushed: Result<(), ()> = encode(entries, &row(entries), seal, |piece| {
        out.extend_from_slice(piece);
        Ok(())
    });
    assert_eq!((pushed, out.len() as u64), (Ok(()), page_bytes(entries)));
    out
}

fn sample() -> Vec<PageEntry> {
    vec![entry(10, 1, b"first"), entry(20, 2, b""), entry(30, 3, &[7; 100]), entry(40, 4, b"fourth")]
}

fn ranges(pairs: &[(u64, u64)]) -> Vec<LsnRange> {
    pairs.iter().map(|&(first, last)| LsnRange { first: Lsn(first), last: Lsn(last) }).collect()
}

#[test]
fn the_format_is_this() {
    let entries = [entry(77, 9, b"three")];
    let bytes = encoded(&entries, seal());
    let rest = &bytes[ROW_BYTES..];
    assert_eq!(rest[..4], [5, 0, 0, 0]);
    assert_eq!(rest[8..24], [9, 0, 0, 0, 0, 0, 0, 0, 77, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(rest[28..], *b"three\0\0\0\0\0\0\0");
    assert_eq!(rest.len(), entry_bytes(5));
}

#[test]
fn a_flipped_bit_loses_one_entry_and_names_it() {
    let entries = sample();
    let bytes = encoded(&entries, seal());
    let mut lost_by_byte = Vec::new();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let page = decode(&flipped.into(), &row(&entries), seal());
        let lost: Vec<&PageEntry> = entries.iter().filter(|entry| !page.entries.contains(entry)).collect();
        let kept = entries.iter().filter(|entry| page.entries.contains(entry));
        assert!(page.entries.iter().eq(kept), "bit {bit}: nothing else, in the same order");
        assert!(lost.len() <= 1, "bit {bit}");
        let damage = page.damage;
        if bit / 8 < ROW_BYTES {
            assert_eq!(damage.expect("its row is damaged").lost, 0, "bit {bit}");
            continue;
        }
        assert_eq!(damage.as_ref().map_or(0, |damage| damage.lost), lost.len() as u32, "bit {bit}");
        if let (Some(damage), [lost]) = (damage, lost.as_slice()) {
            let is_named = damage.lsns.iter().any(|lsns| (lsns.first..=lsns.last).contains(&lost.lsn));
            assert!(is_named, "bit {bit}: {:?}", damage.lsns);
            lost_by_byte.push(bit / 8);
        }
    }
    lost_by_byte.dedup();
    let pads: usize =
        entries.iter().map(|entry| entry_bytes(entry.payload.len()) - 28 - entry.payload.len()).sum();
    assert_eq!(lost_by_byte.len(), bytes.len() - ROW_BYTES - pads, "only what fills up is not covered");
}

#[test]
fn what_is_lost_is_told_as_exactly_as_is_known() {
    let entries = sample();
    let bytes = encoded(&entries, seal());
    let third = ROW_BYTES + entry_bytes(5) + entry_bytes(0);
    for (what, damaged, expected) in [
        ("a payload", third + 50..third + 51, vec![(30, 30)]),
        ("a head", third..third + 1, vec![(21, 39)]),
        ("the first head", ROW_BYTES..ROW_BYTES + 1, vec![(10, 19)]),
        ("two heads", third..bytes.len() - 20, vec![(21, 40)]),
        ("everything", 0..bytes.len(), vec![(10, 40)]),
    ] {
        let mut hurt = bytes.clone();
        hurt[damaged].iter_mut().for_each(|byte| *byte ^= 0x55);
        let damage = decode(&hurt.into(), &row(&entries), seal()).damage.expect(what);
        assert_eq!(damage.lsns, ranges(&expected), "{what}");
        assert_eq!(damage.page, PageRef::new(2, 3));
    }
}

#[test]
fn without_an_order_a_lost_head_may_be_any_of_the_page() {
    let mut entries = sample();
    entries.swap(0, 3);
    let mut bytes = encoded(&entries, seal());
    bytes[ROW_BYTES] ^= 1;
    let damage = decode(&bytes.into(), &row(&entries), seal()).damage.expect("an entry is lost");
    assert_eq!((damage.lost, damage.lsns), (1, ranges(&[(10, 40)])));
}

#[test]
fn a_page_that_is_cut_off_gives_what_is_whole() {
    let entries = sample();
    let bytes = encoded(&entries, seal());
    let mut ends = vec![ROW_BYTES];
    for entry in &entries {
        ends.push(ends[ends.len() - 1] + entry_bytes(entry.payload.len()));
    }
    for len in 0..bytes.len() {
        let page = decode(&Bytes::copy_from_slice(&bytes[..len]), &row(&entries), seal());
        // An entry's padding may be missing.
        let whole = ends[1..].iter().zip(&entries).filter(|(end, entry)| {
            *end - entry_bytes(entry.payload.len()) + HEAD_BYTES + entry.payload.len() <= len
        });
        assert_eq!(page.entries.len(), whole.count(), "{len} bytes");
        let damage = page.damage.map_or(0, |damage| damage.lost) as usize;
        assert_eq!(damage, entries.len() - page.entries.len(), "{len} bytes");
    }
}

#[test]
fn an_entry_verifies_in_its_place_alone() {
    for (fault, is_caught) in [(None, true), (Some(Fault::EntryWithoutPlace), false)] {
        let mut seal = seal();
        seal.planted.0 = fault;
        let entries = [entry(1, 1, &[1; 36]), entry(2, 2, &[2; 36])];
        let bytes = encoded(&entries, seal);
        let (first, second) = (ROW_BYTES..ROW_BYTES + 64, ROW_BYTES + 64..ROW_BYTES + 128);
        let mut misplaced = bytes.clone();
        misplaced.copy_within(first, second.start);
        let page = decode(&misplaced.into(), &row(&entries), seal);
        let is_twice = page.entries == [entries[0].clone(), entries[0].clone()];
        assert_eq!(!is_twice, is_caught, "{fault:?}: {:?}", page.entries);
        let mut elsewhere = row(&entries);
        elsewhere.facts.page = PageRef::new(2, 2);
        assert_eq!(decode(&bytes.into(), &elsewhere, seal).entries.is_empty(), is_caught, "{fault:?}");
    }
}

#[test]
fn another_store_reads_nothing() {
    let entries = sample();
    let bytes = encoded(&entries, seal());
    let page = decode(&bytes.into(), &row(&entries), Seal::new(StoreId([2; 16])));
    assert!(page.entries.is_empty() && page.damage.is_some_and(|damage| damage.lost == 4));
}

fn entries() -> impl Strategy<Value = Vec<PageEntry>> {
    let payload = proptest::collection::vec(any::<u8>(), 0..200);
    let fields = (any::<u64>(), any::<u64>(), payload);
    let one = fields.prop_map(|(lsn, sequence, payload)| entry(lsn, sequence, &payload));
    proptest::collection::vec(one, 1..20)
}

proptest! {
    #[test]
    fn decode_after_encode_is_identity(entries in entries()) {
        let bytes = Bytes::from(encoded(&entries, seal()));
        let row = row(&entries);
        let lsns = entries.iter().map(|entry| entry.lsn).collect();
        prop_assert_eq!(decode_lsns(&bytes, &row, seal()), Page { entries: lsns, damage: None });
        prop_assert_eq!(decode(&bytes, &row, seal()), Page { entries, damage: None });
    }

    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..500), count: u32) {
        let mut row = row(&sample());
        row.facts.count = count;
        prop_assert_eq!(decode(&bytes.into(), &row, seal()).entries, vec![]);
    }
}
