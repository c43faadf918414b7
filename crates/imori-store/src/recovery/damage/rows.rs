//! A table of files with damage in several places, and the verdict on each.

use std::sync::Arc;

use super::*;
use crate::journal::crash::settings;
use crate::limits::BLOCK_BYTES;
use crate::records::{FileHeader, HeaderError, RecordType};
use crate::recovery::scan::{FileScan, Scanned};

const FILE_BYTES: u64 = 4 * BLOCK_BYTES as u64;

/// A complete file with this number and generation, and a header that names its first record.
fn file(number: u32, first: u64) -> ScannedFile<()> {
    let settings = settings(None);
    let (store, shard, first) = (settings.store, settings.shard, Some(Lsn(first)));
    let header = FileHeader { store, shard, generation: number, first, file_bytes: FILE_BYTES };
    let (whole, broken) = (Vec::new(), Vec::new());
    let scan = FileScan {
        header: Ok(header),
        generation: Some(number),
        whole,
        records: Vec::new(),
        salvaged: Vec::new(),
        broken,
    };
    let name = journal_file::name(number);
    ScannedFile { file: Arc::new(()), reading: Arc::new(()), name, number, bytes: FILE_BYTES, scan }
}

fn range((first, last): (u64, u64)) -> LsnRange {
    LsnRange { first: Lsn(first), last: Lsn(last) }
}

impl ScannedFile<()> {
    /// Adds whole batches with these LSNs.
    fn whole<const N: usize>(mut self, ranges: [(u64, u64); N]) -> Self {
        self.scan.whole.extend(ranges.map(range));
        self
    }

    /// Adds a batch of which only the header verifies, with these verified records.
    fn broken<const N: usize>(mut self, lsns: (u64, u64), saved: [u64; N]) -> Self {
        self.scan.broken.push(range(lsns));
        self.saved(saved)
    }

    /// Adds verified records outside of verified batches.
    fn saved<const N: usize>(mut self, numbers: [u64; N]) -> Self {
        let (kind, payload) = (RecordType::Message, Box::default());
        let record = |lsn| Scanned { lsn: Lsn(lsn), kind, flags: 0, at: 0, payload: Box::clone(&payload) };
        self.scan.salvaged.extend(numbers.map(record));
        self
    }

    /// Truncates the file to this many blocks.
    fn cut(mut self, blocks: u64) -> Self {
        self.bytes = blocks * BLOCK_BYTES as u64;
        self
    }

    /// Damages the header; the generation is then known only from batches, if any.
    fn without_header(mut self) -> Self {
        self.scan.header = Err(HeaderError::Damaged);
        self.scan.generation = self.scan.generation.filter(|_| !self.scan.whole.is_empty());
        self
    }

    /// Makes it a ready file, to which nothing was written.
    fn ready(mut self) -> Self {
        self.scan.header = self.scan.header.map(|header| FileHeader { first: None, ..header });
        self
    }
}

/// The verdict in one line: `2 without header short 1 lost 4-5; torn 9; absent 1-3; next 10`.
///
/// The first number is the file's, and `short` counts blocks.
fn told(judged: &Verdict) -> String {
    let ranges = |ranges: &[LsnRange]| ranges.iter().map(|range| format!(" {range}")).collect::<String>();
    let mut told: Vec<String> = Vec::new();
    for file in &judged.damaged {
        let (number, _) = journal_file::parse_name(&file.name).expect("it is of a journal");
        let mut words = number.to_string();
        if file.has_lost_header {
            words += " without header";
        }
        if file.shortened_by > 0 {
            words += &format!(" short {}", file.shortened_by / BLOCK_BYTES as u64);
        }
        if !file.missing.is_empty() {
            words += &format!(" lost{}", ranges(&file.missing));
        }
        if let Some(from) = file.lost_from {
            words += &format!(" perhaps from {from}");
        }
        told.push(words);
    }
    for (what, which) in [("torn", &judged.torn), ("absent", &judged.absent)] {
        if !which.is_empty() {
            told.push(format!("{what}{}", ranges(which)));
        }
    }
    told.push(format!("next {}", judged.next));
    told.join("; ")
}

/// Judges files above a floor; each row has a name, the files, and the expected verdict.
fn check(floor: Option<u64>, rows: Vec<(&str, Vec<ScannedFile<()>>, &str)>) {
    check_with(floor, &settings(None), rows);
}

fn check_with(floor: Option<u64>, settings: &Settings, rows: Vec<(&str, Vec<ScannedFile<()>>, &str)>) {
    for (what, found, expected) in rows {
        let whole = lsn::join(found.iter().flat_map(|found| found.scan.whole.iter().copied()).collect());
        let saved = found.iter().flat_map(|found| found.scan.salvaged.iter());
        let saved = saved.map(|record| LsnRange::one(record.lsn));
        let accounted = lsn::join(whole.iter().copied().chain(saved).collect());
        let judged = judge(&found, &whole, &accounted, floor.map(Lsn), settings);
        assert_eq!(told(&judged), expected, "{what}");
    }
}

#[test]
fn a_file_is_hurt_where_a_batch_is_that_was_acknowledged_and_no_other_file_has_it() {
    let first = || file(1, 1).whole([(1, 3)]);
    let last = || file(3, 7).whole([(7, 8)]);
    check(
        None,
        vec![
            ("nothing", vec![], "next 1"),
            ("all is well", vec![first(), file(2, 4).whole([(4, 6)]), last()], "next 9"),
            (
                "a record is lost",
                vec![first(), file(2, 4).broken((4, 6), [4, 6]), last()],
                "2 lost 5; next 9",
            ),
            ("a batch is gone", vec![first(), file(2, 4).whole([(4, 5)]), last()], "2 lost 6; next 9"),
            (
                "the header of a batch, and each record is saved",
                vec![first(), file(2, 4).whole([(4, 4), (6, 6)]).saved([5]), last()],
                "2; next 9",
            ),
            (
                "a header of a file, and all else verifies",
                vec![first(), file(2, 4).whole([(4, 6)]).without_header(), last()],
                "2 without header; next 9",
            ),
            (
                "two at once",
                vec![file(1, 1).whole([(1, 1)]), file(2, 4).broken((4, 6), [5]), last()],
                "1 lost 2-3; 2 lost 4 6; next 9",
            ),
        ],
    );
}

#[test]
fn what_was_being_written_at_the_end_is_torn_and_not_lost() {
    let first = || file(1, 1).whole([(1, 3)]);
    check(
        None,
        vec![
            ("alone", vec![file(1, 1).broken((1, 3), [2])], "torn 1 3; next 3"),
            (
                "behind whole ones",
                vec![first(), file(2, 4).whole([(4, 4)]).broken((5, 7), [7])],
                "torn 5-6; next 8",
            ),
            (
                "it was written anew before the old was gone",
                vec![first(), file(2, 4).broken((4, 6), [4, 5]), file(3, 4).whole([(4, 6)])],
                "next 7",
            ),
            (
                "a part of it was written anew",
                vec![first(), file(2, 4).broken((4, 7), [4, 5]), file(3, 4).whole([(4, 5)])],
                "torn 6-7; next 6",
            ),
            (
                "what stands behind a loss within it is torn, and the loss is not",
                vec![first(), file(2, 4).broken((4, 8), []), file(3, 6).whole([(6, 6)])],
                "2 lost 4-5; torn 7-8; next 7",
            ),
            (
                "a header that was written before anything behind the floor",
                vec![first(), file(2, 9)],
                "next 4",
            ),
        ],
    );
}

/// For each truncated block, 170 numbers are kept unused, the maximum number of records, plus two.
#[test]
fn a_file_that_is_cut_off_tells_what_may_have_stood_there() {
    let first = || file(1, 1).whole([(1, 3)]);
    let last = || file(3, 7).whole([(7, 8)]);
    check(
        None,
        vec![
            (
                "one between others",
                vec![first(), file(2, 4).whole([(4, 4)]).cut(2), last()],
                "2 short 2 lost 5-6; next 9",
            ),
            (
                "the last",
                vec![first(), file(2, 4).whole([(4, 4)]).cut(2)],
                "2 short 2 perhaps from 5; next 348",
            ),
            (
                "both",
                vec![first(), file(2, 4).whole([(4, 4)]).cut(2), last().cut(3)],
                "2 short 2 lost 5-6; 3 short 1 perhaps from 9; next 181",
            ),
            (
                "one that was being written to",
                vec![first(), file(2, 4).whole([(4, 4)]).broken((5, 9), [6]).cut(3)],
                "2 short 1 perhaps from 5; next 182",
            ),
            (
                "one that was being written to, and something behind was saved",
                vec![first(), file(2, 4).whole([(4, 4)]).broken((5, 9), [5]).cut(3)],
                "2 short 1 perhaps from 6; next 182",
            ),
            (
                "one of which the header alone is there",
                vec![first(), file(2, 4).whole([(4, 6)]), file(3, 9).cut(1)],
                "2 lost 7-8; 3 short 3 perhaps from 9; next 523",
            ),
            ("one that was never written to", vec![first(), file(2, 1).ready().cut(1)], "next 4"),
            (
                "two of which nothing is there",
                vec![first(), file(2, 4).without_header().cut(0), file(3, 4).without_header().cut(0)],
                "2 without header short 4 perhaps from 4; 3 without header short 4 perhaps from 4; next 1371",
            ),
            (
                "one without a header",
                vec![first(), file(2, 4).whole([(4, 6)]).without_header().cut(2), last()],
                "2 without header short 2; next 9",
            ),
            ("the only one", vec![file(1, 1).cut(1)], "1 short 3 perhaps from 1; next 515"),
        ],
    );
}

#[test]
fn what_is_lost_is_told_of_the_file_that_had_it_or_of_none() {
    let first = || file(1, 1).whole([(1, 3)]);
    let third = || file(3, 7).whole([(7, 9)]);
    check(
        None,
        vec![
            ("a file is gone", vec![first(), third()], "absent 4-6; next 10"),
            ("the first is gone", vec![file(2, 4).whole([(4, 6)]), third()], "absent 1-3; next 10"),
            (
                "two at different places",
                vec![file(2, 4).whole([(4, 6)]), file(4, 10).whole([(10, 10)])],
                "absent 1-3 7-9; next 11",
            ),
            (
                "the one before it is cut off too",
                vec![file(1, 1).whole([(1, 1)]).cut(2), third()],
                "1 short 2 lost 2-6; next 10",
            ),
            (
                "the one before it has a broken batch at its end",
                vec![file(1, 1).whole([(1, 2)]).broken((3, 3), []), third()],
                "1 lost 3-6; next 10",
            ),
            (
                "a record of the one before it was saved at its end",
                vec![file(1, 1).whole([(1, 1)]).saved([3]), third()],
                "1 lost 2; absent 4-6; next 10",
            ),
            (
                "there was none between",
                vec![file(1, 1).whole([(1, 3)]), file(2, 7).whole([(7, 9)])],
                "1 lost 4-6; next 10",
            ),
            (
                "the only header that is lost has batches",
                vec![file(2, 4).whole([(4, 6)]).without_header(), third()],
                "2 without header; absent 1-3; next 10",
            ),
            (
                "nothing tells what stood in one",
                vec![file(1, 1).without_header(), file(2, 4).whole([(4, 6)]), third()],
                "1 without header lost 1-3; next 10",
            ),
            (
                "a file is gone, and the beginning of the next",
                vec![first(), file(3, 7).whole([(8, 9)])],
                "3 lost 7; absent 4-6; next 10",
            ),
            (
                "the end of one and the beginning of the next",
                vec![file(1, 1).whole([(1, 2)]), file(2, 4).whole([(5, 6)])],
                "1 lost 3; 2 lost 4; next 7",
            ),
        ],
    );
}

#[test]
fn below_the_floor_nothing_is_needed() {
    let saved = || vec![file(1, 1).whole([(1, 3)]), file(2, 4).whole([(4, 4), (6, 6)]).saved([5])];
    let gone = || vec![file(1, 1).whole([(1, 3)]), file(3, 7).whole([(7, 9)])];
    check(Some(5), vec![("what is hurt is just above it", saved(), "2; next 7")]);
    check(Some(6), vec![("it is below", saved(), "next 7")]);
    check(Some(6), vec![("a file is gone of which one number is needed", gone(), "absent 6; next 10")]);
    check(Some(7), vec![("a file is gone", gone(), "next 10")]);
    check(Some(12), vec![("it is above all", gone(), "next 10")]);
}

#[test]
fn what_others_have_of_the_end_was_durable_and_its_numbers_are_not_given_again() {
    let known = |last| settings(None).durable_through(Some(Lsn(last)));
    check_with(
        None,
        &known(6),
        vec![
            (
                "the end does not verify",
                vec![file(1, 1).whole([(1, 4)]).broken((5, 6), [])],
                "1 lost 5-6; next 7",
            ),
            ("a part of it does", vec![file(1, 1).whole([(1, 4)]).broken((5, 6), [5])], "1 lost 6; next 7"),
            (
                "what comes behind was being written",
                vec![file(1, 1).whole([(1, 4)]).broken((5, 8), [])],
                "1 lost 5-6; torn 7-8; next 7",
            ),
            ("there is nothing of it", vec![file(1, 1).whole([(1, 4)])], "1 lost 5-6; next 7"),
            ("there is no file", vec![], "absent 1-6; next 7"),
            ("no file has anything", vec![file(1, 1).ready()], "absent 1-6; next 7"),
            ("all of it is there", vec![file(1, 1).whole([(1, 6)])], "next 7"),
            ("and more", vec![file(1, 1).whole([(1, 7)]).broken((8, 8), [])], "torn 8; next 8"),
        ],
    );
    check_with(
        Some(6),
        &known(6),
        vec![("the last that is needed is gone", vec![file(1, 1).whole([(1, 5)])], "1 lost 6; next 7")],
    );
}
