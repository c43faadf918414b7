//! Tests which files are read at all, and which of them completely.

use bytes::Bytes;

use super::*;
use crate::disk::sim_disk::{SimDisk, SimFile, State};
use crate::journal::crash::settings;
use crate::records::{Record, RecordType};
use crate::recovery::written::{Unit, checkpoint, message, written};

/// Three files: numbers 1 to 3, 4 to 6, and 7, a checkpoint with this floor.
fn journal(floor: u64) -> State {
    let mut units: Vec<Unit> = (1..=6).map(|mark| Unit::Each(vec![message(mark, 100)])).collect();
    units.push(Unit::Each(vec![checkpoint(floor)]));
    written(units)
}

fn cached() -> Settings {
    settings(None).reading_from(ReadFrom::Cache)
}

/// For each file, the number of ranges found, one for a skipped file, and of records kept.
fn read(state: State, settings: &Settings) -> Vec<(usize, usize)> {
    let names = state.names().into_iter().zip(1..).take(3).collect();
    let found = read_files(&SimDisk::new(state), settings, names).expect("the disk is well");
    found.iter().map(|found| (found.scan.whole.len(), found.scan.records.len())).collect()
}

#[test]
fn a_file_is_read_only_where_something_of_it_is_needed() {
    for (floor, expected) in [
        (1, [(3, 3), (3, 3), (1, 1)]),
        (3, [(3, 1), (3, 3), (1, 1)]),
        (4, [(1, 0), (3, 3), (1, 1)]),
        (6, [(1, 0), (3, 1), (1, 1)]),
        (7, [(1, 0), (1, 0), (1, 1)]),
    ] {
        assert_eq!(read(journal(floor), &cached()), expected, "nothing below {floor} is needed");
    }
    assert_eq!(read(journal(7), &settings(None)), [(3, 0), (3, 0), (1, 1)], "the device is asked for all");
}

/// The first of these files, before it is read.
fn first() -> Unread<SimFile> {
    let (disk, name) = (SimDisk::new(journal(7)), "journal-0000000001");
    let file = Arc::new(disk.open(name).expect("it is there"));
    let header = FileHeader::decode(disk.state().bytes(name));
    let (bytes, next) = (settings(None).file_bytes as u64, Some(Lsn(4)));
    let (reading, name) = (Arc::clone(&file), name.to_string());
    Unread { file, reading, name, number: 1, bytes, header, next, is_untouched: false }
}

#[test]
fn a_file_is_passed_over_only_if_it_says_all_and_all_of_that_is_below_the_floor() {
    let whole = first;
    let header = first().header.expect("it verifies");
    for (what, unread, floor, read_from, expected) in [
        ("the next begins at the floor", whole(), 4, ReadFrom::Cache, true),
        ("it is far below", whole(), 9, ReadFrom::Cache, true),
        ("its last is needed", whole(), 3, ReadFrom::Cache, false),
        ("no floor is known", whole(), 0, ReadFrom::Cache, false),
        ("the device is to be asked", whole(), 9, ReadFrom::Device, false),
        ("nothing follows", Unread { next: None, ..first() }, 9, ReadFrom::Cache, false),
        (
            "more is between it and the next",
            Unread { next: Some(Lsn(5)), ..first() },
            9,
            ReadFrom::Cache,
            false,
        ),
        ("the next has its end again", Unread { next: Some(Lsn(3)), ..first() }, 9, ReadFrom::Cache, false),
        ("a byte is cut off", Unread { bytes: first().bytes - 1, ..first() }, 9, ReadFrom::Cache, false),
        ("nothing was written to it", Unread { is_untouched: true, ..first() }, 9, ReadFrom::Cache, false),
        (
            "it begins elsewhere than it says",
            Unread { header: Ok(FileHeader { first: Some(Lsn(2)), ..header }), ..first() },
            9,
            ReadFrom::Cache,
            false,
        ),
        (
            "its header does not verify",
            Unread { header: Err(HeaderError::Damaged), ..first() },
            9,
            ReadFrom::Cache,
            false,
        ),
    ] {
        let settings = settings(None).reading_from(read_from);
        let passed = passed_over(&unread, &settings, &AtomicU64::new(floor)).expect("the disk is well");
        let told = passed.map(|scan| scan.whole);
        let all = LsnRange { first: Lsn(1), last: Lsn(3) };
        assert_eq!(told, expected.then_some(vec![all]), "{what}");
    }
}

#[test]
fn nothing_was_written_to_a_file_whose_header_says_so_and_that_has_no_batch_of_its_use() {
    let seal = settings(None).seal;
    let header = first().header.expect("it verifies");
    let ready = FileHeader { first: None, ..header };
    for (what, header, generation, expected) in [
        ("it is ready", Ok(ready), None, true),
        ("a batch of an earlier use is left", Ok(ready), Some(ready.generation + 1), true),
        ("a batch came without the header", Ok(ready), Some(ready.generation), false),
        ("it says where it begins", Ok(header), None, false),
        ("it has a batch", Ok(header), Some(header.generation), false),
        ("its header does not verify", Err(HeaderError::Damaged), None, false),
    ] {
        let mut start = vec![0; BLOCK_BYTES];
        if let Some(generation) = generation {
            let record = Record { lsn: Lsn(1), kind: RecordType::Message, flags: 0, payload: Bytes::new() };
            batch::push(&mut start, seal, generation, LsnRange::one(Lsn(1)), [record].iter());
        }
        start.resize(FIRST_BYTES, 0);
        assert_eq!(is_untouched(&header, &start, seal), expected, "{what}");
    }
}
