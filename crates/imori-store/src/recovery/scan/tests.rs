//! Tests which records are salvaged from batches that do not verify.

use bytes::Bytes;

use crate::disk::sim_disk::State;
use crate::journal::crash::settings;
use crate::limits::WINDOW_BYTES;
use crate::records::Record;
use crate::recovery::written::{Unit, hurt, message, scan, written};

use super::{ALIGN_BYTES, BLOCK_BYTES, Lsn, LsnRange, RecordType, Scanned, batch, record};

/// Numbers of the first file: in whole batches, salvaged, and announced by broken batches.
type Seen = (Vec<u64>, Vec<u64>, Vec<(u64, u64)>);

fn seen(state: &State) -> Seen {
    let scan = scan(state, "journal-0000000001");
    let numbers = |records: &[Scanned]| records.iter().map(|record| record.lsn.0).collect();
    let broken = scan.broken.iter().map(|range| (range.first.0, range.last.0)).collect();
    (numbers(&scan.records), numbers(&scan.salvaged), broken)
}

fn each(marks: impl IntoIterator<Item = u8>) -> Unit {
    Unit::Each(marks.into_iter().map(|mark| message(mark, 100 + usize::from(mark))).collect())
}

fn group(marks: impl IntoIterator<Item = u8>) -> Unit {
    Unit::Group(marks.into_iter().map(|mark| message(mark, 100 + usize::from(mark))).collect())
}

#[test]
fn a_damaged_record_takes_no_other_of_its_batch_with_it() {
    for (hurts, expected) in [
        (vec![], (vec![1, 2, 3, 4, 5, 6, 7, 8], vec![], vec![])),
        (vec![4], (vec![1, 2, 7, 8], vec![3, 5, 6], vec![(3, 6)])),
        (vec![3, 6], (vec![1, 2, 7, 8], vec![4, 5], vec![(3, 6)])),
        (vec![2, 8], (vec![3, 4, 5, 6], vec![1, 7], vec![(1, 2), (7, 8)])),
        (vec![2, 5], (vec![7, 8], vec![1, 3, 4, 6], vec![(1, 2), (3, 6)])),
    ] {
        let mut state = written(vec![each(1..=2), each(3..=6), each(7..=8)]);
        hurts.iter().for_each(|mark| hurt(&mut state, *mark));
        assert_eq!(seen(&state), expected, "{hurts:?} are hurt");
    }
}

#[test]
fn a_group_of_which_something_is_missing_is_kept_in_no_part() {
    // A group also uses a number each for its begin and end: 1, then 2 to 5, 6 to 10, and 11.
    let units = || vec![each([1]), group([2, 3]), group([4, 5, 6]), each([7])];
    for (joined, hurts, saved) in [
        (false, vec![3], vec![]),
        (true, vec![7], vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
        (true, vec![2], vec![1, 6, 7, 8, 9, 10, 11]),
        (true, vec![3], vec![1, 6, 7, 8, 9, 10, 11]),
        (true, vec![5], vec![1, 2, 3, 4, 5, 11]),
        (true, vec![3, 6], vec![1, 11]),
        (true, vec![1, 4], vec![2, 3, 4, 5, 11]),
    ] {
        let mut state = if joined { in_one_batch(units()) } else { written(units()) };
        hurts.iter().for_each(|mark| hurt(&mut state, *mark));
        assert_eq!(seen(&state).1, saved, "{hurts:?} are hurt");
    }
}

/// The records of a group in one batch.
fn in_one_batch(units: Vec<Unit>) -> State {
    let (mut lsn, mut records) = (0, Vec::new());
    for unit in units {
        let (news, flags) = match unit {
            Unit::Each(news) => (news, 0),
            Unit::Group(news) => (news, record::FLAG_IN_GROUP),
        };
        let end = |kind| crate::journal::NewRecord { kind, payload: Bytes::new() };
        let (begin, end) = (end(RecordType::GroupBegin), end(RecordType::GroupEnd));
        let all = match flags {
            0 => news,
            _ => [vec![begin], news, vec![end]].concat(),
        };
        for crate::journal::NewRecord { kind, payload } in all {
            lsn += 1;
            records.push(Record { lsn: Lsn(lsn), kind, flags, payload });
        }
    }
    let mut state = written(vec![each([1])]);
    let lsns = LsnRange { first: Lsn(1), last: Lsn(lsn) };
    let mut bytes = Vec::new();
    batch::push(&mut bytes, settings(None).seal, 1, lsns, records.iter());
    state.damage("journal-0000000001", |file| {
        file[BLOCK_BYTES..BLOCK_BYTES + bytes.len()].copy_from_slice(&bytes);
    });
    state
}

/// A file long enough to be read in pieces, with these records at these offsets and no batch.
fn long(places: &[(u64, usize, usize)]) -> Seen {
    let mut state = written(vec![each([1])]);
    state.damage("journal-0000000001", |file| {
        file.truncate(BLOCK_BYTES);
        file.resize(2 * WINDOW_BYTES + 3 * BLOCK_BYTES, 0);
        for (number, at, len) in places {
            let (lsn, kind, payload) = (Lsn(*number), RecordType::Message, &*vec![3; *len]);
            let mut record = Vec::new();
            let view = record::RecordView { lsn, kind, flags: 0, generation: 1, payload };
            record::push(&mut record, settings(None).seal, &view);
            file[*at..*at + record.len()].copy_from_slice(&record);
        }
    });
    seen(&state)
}

#[test]
fn a_record_is_found_wherever_it_stands() {
    let end = 2 * WINDOW_BYTES + 3 * BLOCK_BYTES;
    // The search reads one window of bytes at a time, from the first block on.
    for edge in [BLOCK_BYTES, BLOCK_BYTES + WINDOW_BYTES, 2 * WINDOW_BYTES, end] {
        for len in [0, 10, 100] {
            let bytes = record::encoded_bytes(len);
            for at in (edge.saturating_sub(bytes + 16)..=edge + 16).step_by(ALIGN_BYTES) {
                if (BLOCK_BYTES..=end - bytes).contains(&at) {
                    assert_eq!(long(&[(7, at, len)]).1, [7], "{len} bytes at {at}");
                }
            }
        }
    }
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_searched_to_its_end() {
    let mut state = written(vec![each([1])]);
    hurt(&mut state, 1);
    state.damage("journal-0000000001", |file| file[BLOCK_BYTES] ^= 1);
    let at = BLOCK_BYTES + batch::HEADER_BYTES;
    for bytes in at..at + 200 {
        let mut state = state.clone();
        state.damage("journal-0000000001", |file| {
            file.truncate(bytes);
            file[at..].fill(0);
        });
        assert_eq!(seen(&state), (vec![], vec![], vec![]), "{bytes} bytes");
    }
}

#[test]
fn a_record_is_found_behind_what_looks_like_one() {
    let at = BLOCK_BYTES + 40;
    for (what, places, expected) in [
        ("side by side", vec![(7, at, 2), (8, at + 24, 2), (9, at + 48, 0)], vec![7, 8, 9]),
        ("with one that a later overwrote", vec![(7, at, 90), (8, at + 24, 2), (9, at + 200, 0)], vec![8, 9]),
        ("with one whose beginning is overwritten", vec![(7, at + 8, 90), (8, at, 2)], vec![8]),
    ] {
        assert_eq!(long(&places).1, expected, "{what}");
    }
}

#[test]
fn without_a_header_a_file_is_of_the_latest_use_that_left_a_batch() {
    let seal = settings(None).seal;
    let mut bytes = vec![0; 5 * BLOCK_BYTES];
    let uses = [(1, 6u32, 10), (2, 7, 20), (3, 5, 30), (4, 7, 21)];
    for (block, generation, number) in uses {
        let payload = Bytes::from(vec![1; 50]);
        let lsn = Lsn(number);
        let record = Record { lsn, kind: RecordType::Message, flags: 0, payload };
        let mut batch = Vec::new();
        batch::push(&mut batch, seal, generation, LsnRange::one(lsn), [record].iter());
        bytes[block * BLOCK_BYTES..][..BLOCK_BYTES].copy_from_slice(&batch);
    }
    let mut state = written(vec![each([1])]);
    state.damage("journal-0000000001", |file| *file = bytes);
    let scan = scan(&state, "journal-0000000001");
    let numbers: Vec<u64> = scan.records.iter().map(|record| record.lsn.0).collect();
    assert_eq!((scan.generation, numbers), (Some(7), vec![20, 21]));
    assert!(scan.header.is_err() && scan.salvaged.is_empty() && scan.broken.is_empty());
    assert_eq!(scan.lowest(), Some(Lsn(20)));
}
