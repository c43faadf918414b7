use bytes::Bytes;

use super::*;
use crate::disk::Disk as _;
use crate::disk::sim_disk::SimDisk;
use crate::journal::crash::settings;
use crate::lsn::Lsn;
use crate::records::{Record, RecordType};

const GENERATION: u32 = 7;

/// Builds a file of ten blocks with these batches: block, generation, numbers, payload length.
fn check(batches: &[(usize, u32, (u64, u64), usize)]) -> Option<(u64, u64)> {
    let seal = settings(None).seal;
    let mut bytes = vec![0; 10 * BLOCK_BYTES];
    for (block, generation, (first, last), len) in batches {
        let lsns = LsnRange { first: Lsn(*first), last: Lsn(*last) };
        let payload = Bytes::from(vec![1; *len]);
        let record = Record { lsn: lsns.last, kind: RecordType::Message, flags: 0, payload };
        let mut batch = Vec::new();
        batch::push(&mut batch, seal, *generation, lsns, [record].iter());
        bytes[block * BLOCK_BYTES..][..batch.len()].copy_from_slice(&batch);
    }
    let file = SimDisk::default().create("a").expect("there is room");
    file.write_at(&bytes, 0).expect("the disk is well");
    let told = numbers(&file, bytes.len() as u64, seal, GENERATION).expect("the disk is well");
    told.map(|range| (range.first.0, range.last.0))
}

#[test]
fn only_batches_that_follow_each_other_without_a_gap_are_told_of() {
    let (now, before) = (GENERATION, GENERATION - 1);
    for (what, batches, expected) in [
        ("nothing", vec![], None),
        ("one", vec![(1, now, (5, 6), 10)], Some((5, 6))),
        ("several", vec![(1, now, (5, 6), 10), (2, now, (7, 9), 10), (3, now, (10, 10), 10)], Some((5, 10))),
        ("a long one", vec![(1, now, (5, 6), 3 * BLOCK_BYTES), (5, now, (7, 7), 10)], Some((5, 7))),
        ("what is left of an earlier use", vec![(1, now, (5, 6), 10), (2, before, (1, 1), 10)], Some((5, 6))),
        ("nothing but that", vec![(1, before, (1, 1), 10)], None),
        ("a number is missing", vec![(1, now, (5, 6), 10), (2, now, (8, 9), 10)], None),
        ("a number twice", vec![(1, now, (5, 6), 10), (2, now, (6, 9), 10)], None),
        ("a batch is missing", vec![(1, now, (5, 6), 10), (3, now, (7, 9), 10)], None),
        (
            "one of an earlier use between",
            vec![(1, now, (5, 6), 10), (2, before, (1, 1), 10), (3, now, (7, 9), 10)],
            None,
        ),
        ("the first is missing", vec![(2, now, (5, 6), 10)], None),
        ("the first two are missing", vec![(3, now, (5, 6), 10), (4, now, (7, 7), 10)], None),
    ] {
        assert_eq!(check(&batches), expected, "{what}");
    }
}
