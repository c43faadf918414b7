use bytes::{BufMut, BytesMut};

use super::*;
use crate::disk::Disk as _;
use crate::disk::sim_disk::{SimDisk, SimFile};
use crate::journal::crash;
use crate::journal::intake::{Admitted, NewRecord};

/// A journal with an active file and nothing on disk, because no batch is ever written.
struct Sample {
    intake: Intake,
    journal: Journal<SimFile>,
    file_bytes: usize,
}

impl Sample {
    fn new(file_bytes: usize) -> Sample {
        let mut journal = Journal::new(Settings { file_bytes, ..crash::settings(None) }, Vec::new());
        let file = Arc::new(SimDisk::default().create("journal-0000000001").expect("there is room"));
        let file = JournalFile { file, number: 1, generation: 1, bytes: file_bytes };
        journal.live.push_back(Live { file, last: Lsn(0), end: BLOCK_BYTES });
        journal.has_active = true;
        Sample { intake: Intake::new(Lsn::FIRST), journal, file_bytes }
    }

    fn append(&mut self, record: NewRecord) {
        let admitted = Admitted::each([record], self.file_bytes).expect("it fits");
        self.intake.append(admitted).expect("the disk is well");
    }

    /// The record count of each batch until nothing is staged.
    fn batches(&mut self) -> Vec<usize> {
        self.journal.stage(&mut self.intake);
        let mut counts = Vec::new();
        while let Some(batch) = self.journal.take_batch() {
            counts.push(batch.record_count());
            self.journal.batch_written();
            self.journal.batch_synced().expect("it is written");
            self.journal.recycle(batch);
        }
        counts
    }
}

fn message(len: usize) -> NewRecord {
    NewRecord { kind: RecordType::Message, payload: vec![7; len].into() }
}

#[test]
fn one_batch_is_under_way_at_a_time_and_released_when_it_is_synced() {
    let mut sample = Sample::new(4 * BLOCK_BYTES);
    sample.append(message(10));
    sample.journal.stage(&mut sample.intake);
    let batch = sample.journal.take_batch().expect("a record waits");
    sample.append(message(10));
    sample.journal.stage(&mut sample.intake);
    assert!(sample.journal.take_batch().is_none(), "one is taken");
    assert!(sample.journal.batch_synced().is_none(), "it is not written");
    sample.journal.batch_written();
    assert!(sample.journal.take_batch().is_none(), "one is written and not synced");
    assert_eq!(sample.journal.batch_synced().map(|released| released.through), Some(Lsn(1)));
    assert!(sample.journal.batch_synced().is_none(), "it is released once");
    sample.journal.recycle(batch);
    assert_eq!(sample.journal.take_batch().map(|batch| batch.lsns()), Some(LsnRange::one(Lsn(2))));
}

#[test]
fn a_batch_ends_at_its_goal_and_a_record_beyond_it_is_alone() {
    let (goal, head) = (BATCH_BYTES_GOAL, record::encoded_bytes(0));
    for (lens, expected) in [
        (vec![goal / 2 - head, goal / 2 - head, 0], vec![2, 1]),
        (vec![goal / 2 - head, goal / 2 - head + 8, 0], vec![1, 2]),
        (vec![10, goal, 10], vec![1, 1, 1]),
        (vec![goal, goal, 10, 10], vec![1, 1, 2]),
    ] {
        let mut sample = Sample::new(4 * goal);
        lens.iter().for_each(|len| sample.append(message(*len)));
        assert_eq!(sample.batches(), expected, "{lens:?}");
    }
}

#[test]
fn a_buffer_is_used_again_but_the_memory_of_a_large_one_is_given_back() {
    let mut sample = Sample::new(8 * BATCH_BYTES_GOAL);
    for (len, expected) in
        [(BATCH_BYTES_GOAL / 2, BATCH_BYTES_GOAL / 2), (5 * BATCH_BYTES_GOAL, 2 * BATCH_BYTES_GOAL)]
    {
        sample.append(message(len));
        assert_eq!(sample.batches(), [1]);
        let kept = sample.journal.buffer.capacity();
        assert!((expected..expected + BATCH_BYTES_GOAL).contains(&kept), "{kept} after {len}");
    }
}

#[test]
fn the_file_that_is_written_to_is_not_freed_whatever_a_checkpoint_says() {
    let mut sample = Sample::new(4 * BLOCK_BYTES);
    let mut payload = BytesMut::new();
    payload.put_u64_le(1000);
    sample.append(NewRecord { kind: RecordType::Checkpoint, payload: payload.freeze() });
    sample.journal.stage(&mut sample.intake);
    let batch = sample.journal.take_batch().expect("a record waits");
    sample.journal.batch_written();
    let released = sample.journal.batch_synced().expect("it is written");
    assert_eq!((released.freed.len(), sample.journal.live_files()), (0, 1));
    assert_eq!(sample.journal.oldest_sealed(), None);
    sample.journal.recycle(batch);
    sample.append(message(10));
    assert_eq!(sample.batches(), [1], "it is written to as before");
}

#[test]
fn of_the_next_file_is_wanted_what_is_next_and_what_frees_others() {
    const CHECKPOINT_BYTES: usize = 6000;
    let checkpoint = || {
        let mut payload = BytesMut::zeroed(CHECKPOINT_BYTES);
        payload[0] = 1;
        NewRecord { kind: RecordType::Checkpoint, payload: payload.freeze() }
    };
    let taken = |lengths: &[usize]| batch_bytes(lengths.iter().map(|len| record::encoded_bytes(*len)).sum());
    // Lengths of payloads, and the number of records up to the last checkpoint.
    for (lengths, through) in [
        (&[100][..], 0),
        (&[100, 5000, 300], 0),
        (&[CHECKPOINT_BYTES], 1),
        (&[100, CHECKPOINT_BYTES, 300], 2),
        (&[9000, CHECKPOINT_BYTES, 300, CHECKPOINT_BYTES, 7000], 4),
    ] {
        let mut sample = Sample::new(64 * BLOCK_BYTES);
        sample.journal.opened();
        for len in lengths {
            sample.append(if *len == CHECKPOINT_BYTES { checkpoint() } else { message(*len) });
        }
        sample.journal.stage(&mut sample.intake);
        let expected = FileRequest {
            unit_bytes: taken(&lengths[..1]),
            freeing_bytes: (through > 0).then(|| taken(&lengths[..through]) + 4 * BLOCK_BYTES),
        };
        assert_eq!(sample.journal.wanted(), expected, "{lengths:?}");
    }
}
