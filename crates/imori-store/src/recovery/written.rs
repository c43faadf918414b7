//! Builds journals for tests, with chosen batches and damage.

use bytes::Bytes;

use super::scan::FileScan;
use super::window::Window;
use crate::disk::Disk as _;
use crate::disk::sim_disk::{SimDisk, State};
use crate::journal::crash::settings;
use crate::journal::{self, Admitted, NewRecord, Opened};
use crate::records::RecordType;

/// A message with all bytes equal to its mark.
pub(crate) fn message(mark: u8, len: usize) -> NewRecord {
    NewRecord { kind: RecordType::Message, payload: Bytes::from(vec![mark; len]) }
}

pub(crate) fn checkpoint(floor: u64) -> NewRecord {
    NewRecord { kind: RecordType::Checkpoint, payload: Bytes::copy_from_slice(&floor.to_le_bytes()) }
}

/// The records of one batch: independent ones, or a group.
pub(crate) enum Unit {
    Each(Vec<NewRecord>),
    Group(Vec<NewRecord>),
}

/// A disk on which each unit is a batch, with three small batches per file.
pub(crate) fn written(units: Vec<Unit>) -> State {
    let (disk, file_bytes) = (SimDisk::default(), settings(None).file_bytes);
    let opened = journal::open(&disk, &settings(None)).expect("the disk is well");
    let Opened { mut intake, mut journal, mut pool, .. } = opened;
    for unit in units {
        let admitted = match unit {
            Unit::Each(records) => Admitted::each(records, file_bytes),
            Unit::Group(records) => Admitted::group(records, file_bytes),
        };
        intake.append(admitted.expect("they fit")).expect("the disk is well");
        journal.stage(&mut intake);
        while journal.needs_file() && !journal.roll(&mut pool) {
            let job = pool.next_job().expect("a file is missing");
            pool.done(job.run(&disk, &|| true).expect("the disk is well"));
        }
        let batch = journal.take_batch().expect("something is staged");
        batch.write().and_then(|()| batch.sync()).expect("the disk is well");
        journal.batch_written();
        journal.batch_synced().expect("it is written");
        journal.recycle(batch);
    }
    disk.state()
}

/// Flips a bit of the record with this mark. Mark 9 is taken, as it is the store's id.
pub(crate) fn hurt(state: &mut State, mark: u8) {
    let names = state.names();
    let place = names.iter().find_map(|name| {
        let at = state.bytes(name).windows(8).position(|bytes| bytes == [mark; 8])?;
        Some((name.clone(), at))
    });
    let (name, at) = place.expect("it is there");
    state.damage(&name, |bytes| bytes[at] ^= 1);
}

/// Scans a file.
pub(crate) fn scan(state: &State, name: &str) -> FileScan {
    let file = SimDisk::new(state.clone()).open(name).expect("it is there");
    let mut window = Window::new(&file, usize::MAX).expect("it is there");
    crate::recovery::scan::scan(&mut window, settings(None).seal).expect("the disk is well")
}
