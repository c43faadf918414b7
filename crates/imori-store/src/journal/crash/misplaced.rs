//! Misplaced writes: sectors that are intact and of this very journal, but in the wrong place.

use super::recoveries::message;
use super::*;
use crate::limits::BLOCK_BYTES;

const SECTOR: usize = 512;

/// Replaces every sector at which a record or batch begins by each other one and by zeros. A lost
/// record is reported, unless it is at the torn end, and no record turns into another.
#[test]
fn no_sector_of_a_journal_stands_for_another_in_silence() {
    let settings = Settings { file_bytes: 32 * BLOCK_BYTES, ..settings(None) };
    let mut life = Life::new(SimDisk::default(), settings);
    for number in 1..=24u8 {
        let floor = Bytes::copy_from_slice(&3u64.to_le_bytes());
        life.append(match number {
            11 => NewRecord { kind: RecordType::Checkpoint, payload: floor },
            _ if number % 4 == 0 => {
                NewRecord { kind: RecordType::Settle, payload: Bytes::from(vec![number; 16]) }
            }
            _ => message(number, 700),
        });
        // Commits some batches with two records.
        if number % 5 != 0 {
            life.commit_all();
        }
    }
    let state = life.disk.state();
    let whole = recovery::recover(&SimDisk::new(state.clone()), &settings).expect("the disk is well");
    let name = state.names().into_iter().find(|name| name.ends_with('1')).expect("it is the first");
    let sectors: Vec<Vec<u8>> = state.bytes(&name).chunks(SECTOR).map(<[u8]>::to_vec).collect();
    let used: Vec<usize> =
        (0..sectors.len()).filter(|at| sectors[*at].iter().any(|byte| *byte != 0)).collect();
    let last_batch = used.last().expect("it was written") * SECTOR / BLOCK_BYTES * BLOCK_BYTES;
    let (mut told, mut silent) = (0, 0);
    for to in used.iter().copied().filter(|to| to * SECTOR < last_batch) {
        for from in used.iter().copied().filter(|from| *from != to).chain([sectors.len() - 1]) {
            let mut left = state.clone();
            left.damage(&name, |bytes| bytes[to * SECTOR..][..SECTOR].copy_from_slice(&sectors[from]));
            let found = recovery::recover(&SimDisk::new(left), &settings).expect("it can be read");
            let is_there = |record: &&Record| found.records.contains(record);
            let gone = whole.records.iter().filter(|record| !is_there(record)).count();
            let which = format!("sector {from} at {to}: {}", found.report);
            // Without the checkpoint, records that it freed reappear.
            let below = |record: &Record| whole.report.floor.is_some_and(|floor| record.lsn < floor);
            let is_one = |record: &Record| below(record) || whole.records.contains(record);
            assert!(found.records.iter().all(is_one), "{which}");
            assert!(gone <= 2 && (gone == 0 || found.report.is_damaged()), "{gone} are gone; {which}");
            if gone > 0 { told += 1 } else { silent += 1 }
        }
    }
    assert!(told > 500 && silent > 100, "{told} told of, {silent} without harm");
}
