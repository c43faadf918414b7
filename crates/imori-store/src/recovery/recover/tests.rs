//! Tests the action on each file, and the records kept from a damaged batch.

use crate::disk::sim_disk::{SimDisk, State};
use crate::journal;
use crate::journal::crash::settings;
use crate::recovery::written::{Unit, checkpoint, hurt, message, scan, written};
use crate::seal::StoreId;

use super::*;

fn one(mark: u8) -> Unit {
    Unit::Each(vec![message(mark, 100)])
}

fn found(state: &State) -> RecoveryPlan<crate::disk::sim_disk::SimFile> {
    find(&SimDisk::new(state.clone()), &settings(None)).expect("it can be read")
}

/// Recovers with messages in memory.
fn read(state: &State) -> Recovered {
    recover(&SimDisk::new(state.clone()), &settings(None)).expect("it can be read")
}

fn fates(state: &State) -> Vec<(u32, FileAction)> {
    found(state).files.iter().map(|(file, fate)| (file.number, *fate)).collect()
}

fn numbers(records: &[Record]) -> Vec<u64> {
    records.iter().map(|record| record.lsn.0).collect()
}

#[test]
fn a_file_stays_that_is_clean_and_not_the_last() {
    let state = written((1..=8).map(one).collect());
    let of_use: Vec<_> = fates(&state).into_iter().filter(|(_, fate)| *fate != FileAction::Ready).collect();
    assert_eq!(
        of_use,
        [(1, FileAction::Stay(Lsn(3))), (2, FileAction::Stay(Lsn(6))), (3, FileAction::Rewrite)]
    );
    // Of the last file, only records that may not be durable yet.
    let rewrites: Vec<Record> = found(&state).rewrites.into_iter().map(|(_, record)| record).collect();
    assert_eq!(numbers(&rewrites), [7, 8]);
}

#[test]
fn a_damaged_file_is_set_aside_and_the_rest_of_it_written_anew() {
    let mut state = written((1..=8).map(one).collect());
    hurt(&mut state, 5);
    let of_use: Vec<_> = fates(&state).into_iter().filter(|(_, fate)| *fate != FileAction::Ready).collect();
    assert_eq!(of_use, [(1, FileAction::Stay(Lsn(3))), (2, FileAction::SetAside), (3, FileAction::Rewrite)]);
    // A pad accounts for the lost number, so that it is not reported again.
    let rewrites: Vec<_> =
        found(&state).rewrites.iter().map(|(first, record)| (first.0, record.lsn.0, record.kind)).collect();
    let (message, pad) = (RecordType::Message, RecordType::Pad);
    assert_eq!(rewrites, [(4, 4, message), (5, 5, pad), (6, 6, message), (7, 7, message), (8, 8, message)]);
}

#[test]
fn a_file_that_has_but_a_torn_batch_is_not_ready() {
    let mut state = written(vec![
        one(1),
        one(2),
        one(3),
        Unit::Each(vec![message(4, 100), message(5, 100), message(6, 100)]),
    ]);
    hurt(&mut state, 5);
    let recovered = read(&state);
    assert_eq!(numbers(&recovered.records), [1, 2, 3, 4, 6], "each that verifies is kept");
    assert_eq!(recovered.report.torn, [LsnRange::one(Lsn(5))]);
    assert!(!recovered.report.is_damaged(), "{}", recovered.report);
    let of_use: Vec<_> = fates(&state).into_iter().filter(|(_, fate)| *fate != FileAction::Ready).collect();
    assert_eq!(of_use, [(1, FileAction::Stay(Lsn(3))), (2, FileAction::Rewrite)]);
}

#[test]
fn a_checkpoint_that_was_saved_from_the_torn_end_frees_nothing() {
    let torn = |with_group: bool| {
        let saved = vec![message(3, 100), checkpoint(2)];
        match with_group {
            true => vec![one(1), one(2), Unit::Group(saved)],
            false => vec![one(1), one(2), Unit::Each([saved, vec![message(4, 100)]].concat())],
        }
    };
    let mut state = written(torn(false));
    hurt(&mut state, 4);
    let recovered = read(&state);
    assert_eq!((numbers(&recovered.records), recovered.report.floor), (vec![1, 2, 3], None));
    // A checkpoint in a group came with what it relies on, and one in a whole batch was durable.
    for state in [written(torn(false)), written(torn(true))] {
        assert_eq!(found(&state).recovered.report.floor, Some(Lsn(2)));
    }
}

#[test]
fn what_is_of_another_store_or_shard_is_refused() {
    let own = settings(None);
    let disk = SimDisk::new(written(vec![one(1)]));
    assert!(recover(&disk, &own).is_ok());
    let (store, shard) = (StoreId([8; 16]), own.shard + 1);
    for other in [Settings { store, ..own }, Settings { shard, ..own }, Settings { store, shard, ..own }] {
        match recover(&disk, &other).err() {
            Some(RecoverError::Foreign { name }) => assert_eq!(name, "journal-0000000001"),
            what => panic!("{what:?}"),
        }
    }
}

#[test]
fn what_was_set_aside_is_told_and_its_number_not_given_again() {
    let disk = SimDisk::new(written(vec![one(1)]));
    for name in ["journal-0000000008.damaged", "journal-0000000009.new", "journal-9", "other"] {
        disk.create(name).expect("there is room");
    }
    let findings = find(&disk, &settings(None)).expect("it can be read");
    assert_eq!(findings.recovered.report.set_aside, ["journal-0000000008.damaged"]);
    assert_eq!(findings.next_number, 10);
}

#[test]
fn what_is_used_again_shows_nothing_of_before_when_the_journal_is_open() {
    let disk = SimDisk::new(written((1..=8).map(one).collect()));
    let opened = journal::open(&disk, &settings(None)).expect("the disk is well");
    assert_eq!(opened.recovered.next, Lsn(9));
    assert!(!opened.pool.has_free(), "each free file has its new header");
    drop(opened);
    let state = disk.state();
    let mut seen = Vec::new();
    for name in state.names() {
        seen.extend(scan(&state, &name).records.iter().map(|record| record.lsn.0));
    }
    seen.sort_unstable();
    assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7, 8], "each stands in one file");
}

#[test]
fn messages_are_read_where_they_are_and_are_no_others_than_were_found() {
    use crate::recovery::messages::ReadError;

    let disk = SimDisk::new(written((1..=8).map(one).collect()));
    let (recovered, messages) = recover_apart(&disk, &settings(None)).expect("it can be read");
    assert!(recovered.records.is_empty(), "there is nothing else");
    let mut seen = Vec::new();
    let all = messages.each(|view| {
        seen.push((view.lsn.0, view.payload.to_vec()));
        Ok::<(), String>(())
    });
    all.expect("the disk is well");
    assert_eq!(seen, (1..=8).map(|number| (number, vec![number as u8; 100])).collect::<Vec<_>>());

    let mut count = 0;
    let stopped = messages.each(|_| {
        count += 1;
        if count == 3 { Err("enough".to_string()) } else { Ok(()) }
    });
    assert_eq!((stopped.map_err(|error| error.to_string()), count), (Err("enough".to_string()), 3));

    // The file is reused for another record, which verifies.
    let bytes = disk.state().bytes("journal-0000000001").to_vec();
    let (first, second) = (crate::limits::BLOCK_BYTES, 2 * crate::limits::BLOCK_BYTES);
    let file = disk.open("journal-0000000001").expect("it is there");
    crate::disk::write_all(&file, &bytes[second..second + first], first as u64).expect("the disk is well");
    match messages.each(|_| Ok::<(), String>(())) {
        Err(ReadError::Disk(error)) => assert!(error.to_string().contains("changed while it was read")),
        other => panic!("{other:?}"),
    }
    let some = messages.read_records([Lsn(1)].into_iter(), |_| Ok::<(), String>(()));
    assert!(matches!(some, Err(ReadError::Disk(_))), "nor by itself");
    let told = ReadError::<String>::from(io::Error::other("it is gone")).to_string();
    assert_eq!(told, "the journal cannot be read: it is gone; check the disk");
}

#[test]
fn messages_that_stay_are_read_by_their_numbers_until_they_are_forgotten() {
    use crate::recovery::messages::ReadError;

    // When reading from the device, the last file, which has the last two records, is rewritten.
    for (read_from, last_staying) in [(ReadFrom::Cache, 8), (ReadFrom::Device, 6)] {
        let disk = SimDisk::new(written((1..=8).map(one).collect()));
        let settings = settings(None).reading_from(read_from);
        let (_, mut messages) = journal::open_apart(&disk, &settings).expect("the disk is well");
        let mut seen = Vec::new();
        let sifted = messages.retain(|view, stays| {
            assert_eq!(stays.is_some(), view.lsn.0 <= last_staying, "{read_from:?}");
            seen.push((view.lsn.0, stays));
            Ok::<bool, String>(stays.is_some() && view.lsn.0.is_multiple_of(2))
        });
        sifted.expect("the disk is well");
        assert!(seen.iter().map(|(lsn, _)| *lsn).eq(1..=8));
        let of = |lsn: u64| seen.iter().find(|(other, _)| *other == lsn).and_then(|(_, file)| *file);
        assert!(of(1).is_some() && of(1) == of(3) && of(3) != of(4) && of(4) == of(6), "three are in a file");
        assert_eq!(messages.open_files(), last_staying.div_ceil(3) as usize, "others are closed");

        let read = |messages: &Messages<_>, lsns: &[u64]| {
            let mut seen = Vec::new();
            let some = messages.read_records(lsns.iter().copied().map(Lsn), |view| {
                assert_eq!(view.payload, vec![view.lsn.0 as u8; 100]);
                seen.push(view.lsn.0);
                Ok::<(), String>(())
            });
            some.map(|()| seen)
        };
        assert_eq!(read(&messages, &[6, 2, 4]).expect("they are there"), [6, 2, 4]);
        assert!(matches!(read(&messages, &[2, 3]), Err(ReadError::Disk(_))), "3 was not to be read again");
        for (floor, is_there) in [(3, true), (last_staying, true), (last_staying + 1, false)] {
            messages.forget_below(Lsn(floor));
            // The last number of each file.
            let there = [2, 6, 8].into_iter().filter(|last| (floor..=last_staying).contains(last));
            assert_eq!(messages.open_files(), there.count(), "below {floor}");
            assert_eq!(read(&messages, &[last_staying]).is_ok(), is_there, "below {floor}");
        }
    }
}
