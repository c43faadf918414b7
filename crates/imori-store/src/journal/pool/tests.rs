//! Files are made ready, taken, freed and removed, with and without space.

use super::*;
use crate::disk::sim_disk::{Call, DiskFault, ENOSPC, Random, SimDisk, SimFile};
use crate::journal::crash::settings;
use crate::records::FileHeader;

fn any() -> FileRequest {
    FileRequest { unit_bytes: 1, freeing_bytes: None }
}

#[test]
fn a_new_file_leaves_the_reserve_to_others() {
    let file_bytes = settings(None).file_bytes as u64;
    for (reserve_bytes, free_bytes, is_made, is_made_urgently) in [
        (0, 0, true, true),
        (100, 2 * file_bytes + 100, true, true),
        (100, 2 * file_bytes + 99, false, true),
        (100, 2 * file_bytes, false, true),
        (u64::MAX, u64::MAX - 1, false, true),
    ] {
        let settings = settings(None).keeping_free(reserve_bytes);
        let wanted = FileRequest { unit_bytes: 1, freeing_bytes: None };
        let found = [None, Some(wanted)].map(|wanted| length(free_bytes, &settings, wanted, false));
        let expected = [is_made, is_made_urgently].map(|is_made| is_made.then_some(settings.file_bytes));
        assert_eq!(found, expected, "{reserve_bytes} of {free_bytes}");
    }
}

#[test]
fn where_space_is_scarce_a_file_that_somebody_waits_for_is_small() {
    let store = crate::seal::StoreId([1; 16]);
    let settings = Settings::new(store, 0, 4 << 20, crate::settings::OnDamage::Refuse);
    let settings = settings.expect("it is possible").keeping_free(1 << 20);
    for (free_kib, unit_kib, freeing_kib, expected) in [
        (8192, 4, None, [Some(4096), Some(4096)]),
        (8191, 4, None, [Some(64), None]),
        (8191, 2000, None, [Some(2004), None]),
        (320, 4, None, [Some(64), None]),
        (319, 4, None, [None, None]),
        (319, 4, Some(20), [Some(24), Some(24)]),
        (8191, 4, Some(20), [Some(64), Some(24)]),
        (8191, 4, Some(9000), [Some(64), Some(4096)]),
        (24, 4, Some(20), [Some(24), Some(24)]),
        (23, 4, Some(20), [None, None]),
    ] {
        let wanted =
            FileRequest { unit_bytes: unit_kib << 10, freeing_bytes: freeing_kib.map(|kib| kib << 10) };
        let found = [true, false].map(|may| length(free_kib << 10, &settings, Some(wanted), may));
        let expected = expected.map(|kib| kib.map(|kib: usize| kib << 10));
        assert_eq!(found, expected, "{wanted:?} of {free_kib} KiB");
    }
}

#[test]
fn a_new_file_is_zeros_synced_before_it_has_its_name() {
    let disk = SimDisk::default();
    let mut pool = Pool::new(settings(None), 7, 3);
    let made = pool.next_job().expect("there is none yet").run(&disk, &|| true).expect("the disk is well");
    pool.done(made);
    let state = disk.state().crash(&mut Random(1));
    let bytes = state.bytes("journal-0000000003");
    assert_eq!(FileHeader::decode(bytes).map(|header| header.generation), Ok(7));
    assert!(bytes.len() == settings(None).file_bytes && bytes[4096..].iter().all(|byte| *byte == 0));
    let calls: Vec<Call> = disk.trace().iter().map(|(call, ..)| *call).collect();
    assert_eq!(calls, [Call::Write, Call::Sync, Call::Write, Call::Sync, Call::SyncFolder]);
}

#[test]
fn as_many_as_needed_are_ready_and_a_free_one_is_first() {
    let disk = SimDisk::default();
    let mut pool = Pool::new(settings(None), 1, 1);
    while let Some(job) = pool.next_job() {
        assert!(pool.next_job().is_none(), "one job at a time");
        pool.done(job.run(&disk, &|| true).expect("the disk is well"));
    }
    assert_eq!(pool.ready.len(), READY_FILES);
    let used = pool.take(any).expect("some are ready");
    pool.free(used);
    let job = pool.next_job().expect("one is free");
    pool.done(job.run(&disk, &|| true).expect("the disk is well"));
    let generations: Vec<u32> = pool.ready.iter().map(|file| file.generation).collect();
    assert_eq!(
        (generations, disk.state().names().len()),
        (vec![2, 3, 4], READY_FILES),
        "it got a new generation"
    );
}

#[test]
fn what_is_free_beyond_enough_is_removed() {
    let disk = SimDisk::default();
    let mut pool = Pool::new(settings(None), 1, 1);
    let mut used = Vec::new();
    for _ in 0..SPARE_FILES_MAX + 3 {
        while let Some(job) = pool.next_job() {
            pool.done(job.run(&disk, &|| true).expect("the disk is well"));
        }
        used.extend(pool.take(any));
    }
    used.into_iter().for_each(|file| pool.free(file));
    while let Some(job) = pool.next_job() {
        pool.done(job.run(&disk, &|| true).expect("the disk is well"));
    }
    assert_eq!((pool.ready.len(), disk.state().names().len()), (SPARE_FILES_MAX, SPARE_FILES_MAX));
}

#[test]
fn while_space_is_short_what_is_ready_beyond_the_reserve_is_removed_too() {
    let disk = SimDisk::default();
    let mut pool = Pool::new(settings(None), 1, 1);
    let work = |pool: &mut Pool<_>| {
        while let Some(job) = pool.next_job() {
            pool.done(job.run(&disk, &|| true).expect("the disk is well"));
        }
    };
    let mut used = Vec::new();
    for _ in 0..SPARE_FILES_MAX {
        work(&mut pool);
        used.extend(pool.take(any));
    }
    used.into_iter().for_each(|file| pool.free(file));
    work(&mut pool);
    assert_eq!(pool.ready.len(), SPARE_FILES_MAX);
    pool.set_short_of_space(true);
    work(&mut pool);
    assert_eq!((pool.ready.len(), disk.state().names().len()), (SHORT_FILES_MAX, SHORT_FILES_MAX));
    let used = pool.take(any).expect("some are ready");
    pool.free(used);
    work(&mut pool);
    assert_eq!(pool.ready.len(), SHORT_FILES_MAX, "what settles need is kept");
}

#[test]
fn a_full_disk_stalls_the_pool_until_there_is_space() {
    for call in [Call::Write, Call::Sync] {
        let disk = SimDisk::default();
        let mut pool = Pool::new(settings(None), 1, 1);
        disk.inject(call, 0, DiskFault::Error(ENOSPC));
        let made =
            pool.next_job().expect("there is none yet").run(&disk, &|| true).expect("that is no failure");
        pool.done(made);
        assert!(pool.is_stalled() && pool.next_job().is_none() && disk.state().names().is_empty());
        pool.retry();
        let made = pool.next_job().expect("there is space").run(&disk, &|| true).expect("the disk is well");
        pool.done(made);
        assert!(pool.has_ready() && !pool.is_stalled());
    }
}

/// A pool with ready files of these lengths, in this order.
fn with_ready(lengths: &[usize]) -> Pool<SimFile> {
    let disk = SimDisk::default();
    let mut pool = Pool::new(settings(None), 1, 1);
    for (number, bytes) in (1..).zip(lengths) {
        let file = Arc::new(disk.create(&name(number)).expect("the disk is well"));
        pool.done(JobOutcome::Ready(JournalFile { file, number, generation: number, bytes: *bytes }));
    }
    pool
}

#[test]
fn a_small_file_is_taken_where_it_is_enough_and_else_it_is_free() {
    let whole = settings(None).file_bytes;
    let small = 3 * BLOCK_BYTES;
    for (ready, unit_bytes, taken, left, free) in [
        (&[whole, whole][..], whole, Some(1), 1, 0),
        (&[small, whole], 2 * BLOCK_BYTES, Some(1), 1, 0),
        (&[small, whole], 2 * BLOCK_BYTES + 1, Some(2), 0, 1),
        (&[small, small, whole, small], 2 * BLOCK_BYTES + 1, Some(3), 1, 2),
        (&[small, small], 2 * BLOCK_BYTES + 1, None, 0, 2),
        (&[], 1, None, 0, 0),
    ] {
        let mut pool = with_ready(ready);
        let wanted = FileRequest { unit_bytes, freeing_bytes: None };
        let found = pool.take(|| wanted).map(|file| file.number);
        let case = format!("{unit_bytes} of {ready:?}");
        assert_eq!((found, pool.ready(), pool.free.len()), (taken, left, free), "{case}");
        assert_eq!(pool.wanted, taken.is_none().then_some(wanted), "{case}");
    }
}

#[test]
fn a_file_for_which_there_is_no_space_is_hopeless_until_something_else_is_wanted_or_there_may_be_space() {
    let plain = FileRequest { unit_bytes: 1, freeing_bytes: None };
    let freeing = FileRequest { freeing_bytes: Some(1), ..plain };
    for (next, stays) in [(plain, true), (FileRequest { unit_bytes: 2, ..plain }, true), (freeing, false)] {
        let mut pool = with_ready(&[]);
        assert!(pool.take(|| plain).is_none() && !pool.is_hopeless());
        pool.next_job().expect("somebody waits");
        pool.done(JobOutcome::NoSpace);
        assert!(pool.is_hopeless() && pool.next_job().is_none());
        assert!(pool.take(|| next).is_none());
        assert_eq!((pool.is_hopeless(), pool.next_job().is_none()), (stays, stays), "{next:?}");
    }
    let stalled = || {
        let mut pool = with_ready(&[]);
        assert!(pool.take(|| plain).is_none());
        pool.next_job().expect("somebody waits");
        pool.done(JobOutcome::NoSpace);
        pool
    };
    let mut pool = stalled();
    pool.retry_urgently();
    assert!(pool.is_stalled() && !pool.is_hopeless() && pool.next_job().is_some(), "for who waits");
    let mut pool = stalled();
    pool.retry();
    assert!(!pool.is_stalled() && !pool.is_hopeless(), "there is space");
    // A request that was served is no longer waiting.
    let mut pool = stalled();
    pool.done(
        with_ready(&[settings(None).file_bytes]).take(|| plain).map(JobOutcome::Ready).expect("it is ready"),
    );
    assert!(pool.take(|| plain).is_some() && !pool.is_hopeless());
    // Without a waiting request, a lack of space is not hopeless.
    let mut pool = with_ready(&[]);
    pool.next_job().expect("none is ready");
    pool.done(JobOutcome::NoSpace);
    assert!(pool.is_stalled() && !pool.is_hopeless());
}
