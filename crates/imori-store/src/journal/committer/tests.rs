use std::sync::mpsc::{Receiver, Sender, channel};

use bytes::Bytes;

use super::*;
use crate::disk::sim_disk::{Call, DiskFault, EIO, ENOSPC, Random, SimDisk, SimFile};
use crate::journal::crash::settings;
use crate::journal::intake::Admitted;
use crate::journal::open;
use crate::limits::{READY_FILES, SPARE_FILES_MAX};
use crate::records::RecordType;
use crate::recovery;
use crate::settings::Settings;

#[derive(Debug, PartialEq, Eq)]
enum Told {
    Written(u64),
    Released(u64),
    Poisoned(Option<i32>),
}

struct Teller(Sender<Told>);

impl Listener for Teller {
    fn written(&self, through: Lsn) {
        let _ = self.0.send(Told::Written(through.0));
    }

    fn released(&self, through: Lsn) {
        let _ = self.0.send(Told::Released(through.0));
    }

    fn poisoned(&self, cause: &io::Error) {
        let _ = self.0.send(Told::Poisoned(cause.raw_os_error()));
    }
}

/// Holds each batch between its write and its sync until it is told to continue.
struct Gate(Teller, Mutex<Receiver<()>>);

impl Listener for Gate {
    fn written(&self, through: Lsn) {
        self.0.written(through);
        let _ = self.1.lock().expect("no test panics under the lock").recv();
    }

    fn released(&self, through: Lsn) {
        self.0.released(through);
    }

    fn poisoned(&self, cause: &io::Error) {
        self.0.poisoned(cause);
    }
}

fn message(len: usize) -> NewRecord {
    NewRecord { kind: RecordType::Message, payload: Bytes::from(vec![7; len]) }
}

fn start(disk: &SimDisk) -> (Committer<SimDisk>, Receiver<Told>) {
    start_with(disk, &settings(None))
}

fn start_with(disk: &SimDisk, settings: &Settings) -> (Committer<SimDisk>, Receiver<Told>) {
    let opened = open(disk, settings).expect("the disk is well");
    let (sender, told) = channel();
    let committer = Committer::start(disk.clone(), opened, Box::new(Teller(sender)));
    (committer.expect("a thread can be made"), told)
}

fn make_ready(pool: &mut Pool<SimFile>, disk: &SimDisk) {
    while let Some(job) = pool.next_job() {
        pool.done(job.run(disk, &|| true).expect("the disk is well"));
    }
}

#[test]
fn what_is_released_survives_a_crash() {
    let disk = SimDisk::default();
    let (committer, told) = start(&disk);
    let mut released = 0;
    for number in 1..=200u64 {
        let range = committer.append([message(number as usize * 7)]).expect("there is room");
        assert_eq!(range, LsnRange::one(Lsn(number)));
        if number % 3 == 0 {
            match told.recv().expect("it answers") {
                Told::Written(_) => {}
                Told::Released(through) => released = released.max(through),
                Told::Poisoned(_) => panic!("the disk is well"),
            }
        }
    }
    let state = disk.state();
    drop(committer);
    for seed in 0..20 {
        let crashed = SimDisk::new(state.crash(&mut Random(seed)));
        let recovered = recovery::recover(&crashed, &settings(None)).expect("it can be read");
        let lsns: Vec<u64> = recovered.records.iter().map(|record| record.lsn.0).collect();
        assert!(lsns.len() as u64 >= released, "{} of {released}", lsns.len());
        assert!(recovered.report.damaged.is_empty(), "{}", recovered.report);
    }
}

#[test]
fn what_is_queued_at_the_end_is_committed() {
    let disk = SimDisk::default();
    let (committer, told) = start(&disk);
    for _ in 0..50 {
        committer.append_group([message(100), message(200)]).expect("there is room");
    }
    drop(committer);
    assert_eq!(told.iter().last(), Some(Told::Released(200)));
}

#[test]
fn after_a_failure_nothing_is_released_and_nothing_synced() {
    for (call, fault, code) in
        [(Call::Sync, EIO, EIO), (Call::Write, EIO, EIO), (Call::Write, ENOSPC, ENOSPC), (Call::Sync, 30, 30)]
    {
        let disk = SimDisk::default();
        let opened = open(&disk, &settings(None)).expect("the disk is well");
        let Opened { intake, mut journal, mut pool, recovered } = opened;
        // With an active file and others ready, the pool's thread has nothing to do.
        make_ready(&mut pool, &disk);
        assert!(journal.roll(&mut pool), "files are ready");
        make_ready(&mut pool, &disk);
        let (sender, told) = channel();
        disk.inject(call, 0, DiskFault::Error(fault));
        let opened = Opened { intake, journal, pool, recovered };
        let committer = Committer::start(disk.clone(), opened, Box::new(Teller(sender)));
        let committer = committer.expect("a thread can be made");
        committer.append([message(10)]).expect("nothing has failed yet");
        if call == Call::Sync {
            assert_eq!(told.recv(), Ok(Told::Written(1)));
        }
        assert_eq!(told.recv(), Ok(Told::Poisoned(Some(code))));
        assert_eq!(committer.flush_since(), None, "nobody waits for a flush that failed");
        let calls = disk.trace().len();
        assert_eq!(committer.append([message(10)]), Err(AppendError::Poisoned));
        drop(committer);
        assert_eq!((disk.trace().len(), told.iter().next()), (calls, None), "{call:?} {fault}");
    }
}

#[test]
fn each_level_is_told_in_order_and_counted() {
    let disk = SimDisk::default();
    let (committer, told) = start(&disk);
    assert_eq!((committer.next_lsn(), committer.released_through()), (Lsn(1), Lsn(0)));
    for number in 1..=20 {
        committer.append([message(100)]).expect("it fits");
        assert_eq!(told.recv(), Ok(Told::Written(number)));
        assert_eq!(told.recv(), Ok(Told::Released(number)));
        assert_eq!((committer.released_through(), committer.queued_bytes()), (Lsn(number), 0));
    }
    assert_eq!((committer.next_lsn(), committer.flush_since().is_some()), (Lsn(21), false));
}

#[test]
fn a_flush_is_seen_while_it_is_under_way_and_not_after() {
    let disk = SimDisk::default();
    let opened = open(&disk, &settings(None)).expect("the disk is well");
    let ((sender, told), (opener, gate)) = (channel(), channel());
    let listener = Gate(Teller(sender), Mutex::new(gate));
    let committer = Committer::start(disk, opened, Box::new(listener)).expect("a thread can be made");
    // Dropped before the committer, so that a failed assertion does not leave its thread waiting.
    let go_on = opener;
    let mut before = Instant::now();
    for number in 1..=3 {
        assert_eq!(committer.flush_since(), None);
        committer.append([message(100)]).expect("it fits");
        assert_eq!(told.recv(), Ok(Told::Written(number)));
        let since = committer.flush_since().expect("it is written and not synced");
        assert!(since >= before && since <= Instant::now(), "it began with this batch");
        assert_eq!((committer.released_through(), committer.queued_bytes()), (Lsn(number - 1), 128));
        before = Instant::now();
        go_on.send(()).expect("the committer waits");
        assert_eq!(told.recv(), Ok(Told::Released(number)));
    }
    assert_eq!(committer.flush_since(), None);
}

#[test]
fn a_checkpoint_frees_the_files_below_its_floor() {
    let disk = SimDisk::default();
    let (committer, told) = start(&disk);
    for number in 1..=30 {
        committer.append([message(1500)]).expect("it fits");
        while told.recv() != Ok(Told::Released(number)) {}
    }
    // Three batches fill a file here, and the first checkpoint is in the eleventh.
    assert_eq!((committer.live_files(), committer.oldest_sealed()), (10, Some(Lsn(3))));
    for (floor, files, oldest) in [(3, 11, Some(Lsn(3))), (4, 10, Some(Lsn(6))), (31, 1, None)] {
        let lsn = committer.append_checkpoint(Lsn(floor), b"what there is").expect("it fits");
        while told.recv() != Ok(Told::Released(lsn.0)) {}
        assert_eq!((committer.live_files(), committer.oldest_sealed()), (files, oldest), "floor {floor}");
    }
    // Freed files are made ready, and surplus ones removed, without any other trigger.
    while disk.state().names().len() > 1 + SPARE_FILES_MAX {
        std::thread::yield_now();
    }
}

#[test]
fn a_full_disk_is_no_failure_and_what_waits_is_committed_when_there_is_space() {
    for has_space_again in [true, false] {
        let disk = SimDisk::default();
        let (committer, told) = start_with(&disk, &settings(None).keeping_free(1 << 20));
        let bytes = committer.append([message(100)]).map(|_| committer.queued_bytes());
        assert_eq!(bytes, Ok(128));
        let mut space = Space::new(1 << 20, 4 * 4096);
        while !committer.is_out_of_space() {
            std::thread::yield_now();
        }
        assert_eq!(committer.check_space(&mut space).ok(), Some(Watermark::High));
        if has_space_again {
            disk.set_free_bytes(2 << 20);
            assert_eq!(committer.check_space(&mut space).ok(), Some(Watermark::High), "not yet made");
            assert_eq!((told.recv(), told.recv()), (Ok(Told::Written(1)), Ok(Told::Released(1))));
            while committer.check_space(&mut space).ok() != Some(Watermark::Low) {
                std::thread::yield_now();
            }
        }
        drop(committer);
        assert_eq!(told.iter().next(), None, "nothing is promised, and nothing has failed");
    }
}

#[test]
fn a_file_that_somebody_waits_for_may_have_what_is_left_to_others() {
    let disk = SimDisk::default();
    disk.set_free_bytes(8 * 4096);
    let (committer, told) = start_with(&disk, &settings(None).keeping_free(1 << 20));
    committer.append([message(100)]).expect("it fits");
    assert_eq!((told.recv(), told.recv()), (Ok(Told::Written(1)), Ok(Told::Released(1))));
    // Files beyond the needed ones are not created.
    while !committer.is_out_of_space() {
        std::thread::yield_now();
    }
    drop(committer);
    assert_eq!(disk.state().names().len(), 1);
}

#[test]
fn what_is_left_of_a_full_disk_is_for_a_checkpoint_and_what_is_before_it() {
    let disk = SimDisk::default();
    disk.set_free_bytes(4 * 4096);
    let (committer, told) = start_with(&disk, &settings(None).keeping_free(1 << 20));
    committer.append([message(100)]).expect("it fits");
    while !committer.shared.lock().pool.is_hopeless() {
        std::thread::yield_now();
    }
    assert!(disk.state().names().is_empty() && told.try_recv().is_err());
    assert_eq!(committer.room_for_moves().expect("it has an end"), 0);
    let last = committer.append_checkpoint(Lsn(1), b"").expect("it fits").0;
    assert_eq!((told.recv(), told.recv()), (Ok(Told::Written(last)), Ok(Told::Released(last))));
    drop(committer);
    assert_eq!(disk.state().names().len(), 1);
}

#[test]
fn moves_leave_a_file_to_what_settles() {
    let usable = 4 * 4096 - 3 * 4096;
    // Files of free space, and the room for moves, before and after the first file is in use.
    for (reserve, free_files, first, then) in [(0, 9, usable, usable), (1 << 20, 2, 0, 0)] {
        let disk = SimDisk::default();
        disk.set_free_bytes(free_files * 4 * 4096);
        let (committer, told) = start_with(&disk, &settings(None).keeping_free(reserve));
        assert_eq!(committer.room_for_moves().expect("it has an end"), first, "{free_files} files");
        committer.append([message(100)]).expect("it fits");
        assert_eq!((told.recv(), told.recv()), (Ok(Told::Written(1)), Ok(Told::Released(1))));
        // The listener hears of the release before the bytes are subtracted.
        while committer.queued_bytes() > 0 {
            std::thread::yield_now();
        }
        disk.set_free_bytes(free_files.saturating_sub(1) * 4 * 4096);
        assert_eq!(committer.room_for_moves().expect("it has an end"), then, "{free_files} files, one used");
    }
}

#[test]
fn settles_have_the_rest_of_the_files_that_are_there() {
    let disk = SimDisk::default();
    disk.set_free_bytes(9 * 4 * 4096);
    let (committer, told) = start_with(&disk, &settings(None).keeping_free(0));
    committer.append([message(100)]).expect("it fits");
    assert_eq!((told.recv(), told.recv()), (Ok(Told::Written(1)), Ok(Told::Released(1))));
    let settled = || {
        let ready = committer.shared.lock().pool.ready();
        committer.queued_bytes() == 0 && ready == READY_FILES
    };
    while !settled() {
        std::thread::yield_now();
    }
    // Each file has a header block, and the message takes another block of the active file.
    assert_eq!(committer.room_for_settles(), (3 * READY_FILES + 2) * 4096);
}

#[test]
fn a_full_broker_can_be_drained() {
    let disk = SimDisk::default();
    let Opened { mut intake, mut journal, mut pool, .. } = open(&disk, &settings(None)).expect("it is well");
    make_ready(&mut pool, &disk);
    let mut append = |records: Vec<NewRecord>, pool: &mut Pool<SimFile>| {
        intake.append(Admitted::each(records, 4 * 4096).expect("they fit")).expect("the disk is well");
        journal.stage(&mut intake);
        while journal.has_staged() {
            if journal.needs_file() && !journal.roll(pool) {
                return false;
            }
            let batch = journal.take_batch().expect("there is room");
            commit(&batch, || {}, || {}).expect("the disk is well");
            journal.batch_written();
            let freed = journal.batch_synced().expect("it is written").freed;
            freed.into_iter().for_each(|file| pool.free(file));
            journal.recycle(batch);
        }
        true
    };
    // Three batches fill a file here. The disk becomes full while the first file is in use.
    assert!(append(vec![message(3000)], &mut pool));
    disk.inject(Call::Write, 0, DiskFault::Error(ENOSPC));
    make_ready(&mut pool, &disk);
    assert!(pool.is_stalled(), "publishers stop");
    // Less than a file was queued, and each settle gets a batch of its own.
    for _ in 0..3 {
        assert!(append(vec![message(3000)], &mut pool));
    }
    let settle = || NewRecord { kind: RecordType::Settle, payload: Bytes::from_static(b"one") };
    for _ in 0..4 {
        assert!(append(vec![settle()], &mut pool));
    }
    let floor = Bytes::copy_from_slice(&9u64.to_le_bytes());
    assert!(append(vec![NewRecord { kind: RecordType::Checkpoint, payload: floor }], &mut pool));
    make_ready(&mut pool, &disk);
    assert!(pool.has_ready(), "what was freed is ready without any space");
    assert!(append((0..9).map(|_| settle()).collect(), &mut pool));
}

#[test]
fn what_moves_leaves_files_to_settles_and_to_the_checkpoint() {
    let file_bytes = 16 * BLOCK_BYTES;
    // In blocks: room in the file, queued bytes, and what may be moved.
    for (ready, free_files, room, queued, expected) in [
        // Moves may start a file.
        (2, 0, 1, 0, 13),
        (2, 0, 15, 0, 13),
        (1, 2, 1, 0, 13),
        (0, 3, 1, 0, 13),
        (3, 9, 1, 4, 10),
        (2, 0, 1, 20, 0),
        // Moves may fill the active file.
        (1, 1, 10, 0, 8),
        (1, 0, 10, 3, 5),
        (0, 2, 10, 0, 8),
        (1, 0, 2, 0, 0),
        (1, 0, 10, 11, 0),
        // The last file is reserved.
        (0, 1, 10, 0, 0),
        (0, 0, 10, 0, 0),
    ] {
        let free_bytes = (free_files * file_bytes + file_bytes / 2) as u64;
        let [room, queued] = [room, queued].map(|blocks: usize| blocks * BLOCK_BYTES);
        let found = room_for_moves(file_bytes, (ready, free_bytes), room, queued);
        assert_eq!(
            found,
            expected * BLOCK_BYTES,
            "{ready} ready, {free_files} more, {room} left, {queued} queued"
        );
    }
}
