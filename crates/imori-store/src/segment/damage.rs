//! Damage by the medium: every bit of a small segment, and thousands of places in a large one.
//!
//! No wrong byte is served, and only damaged entries are lost. Each loss is reported, and a file that is set aside
//! stays unchanged.

use std::ops::Range;

use super::crash::{entry, settings};
use super::file::{self, Durability};
use super::open_error::SegmentOpenError;
use super::page::{self, NewPage, PageEntry};
use super::reader::PageError;
use super::report::SegmentReport;
use super::row::{PageFacts, PageRef, PageTimes, ROW_BYTES, Row, SubjectDigest};
use super::segments::Segments;
use super::settings::SegmentSettings;
use super::verify::verify;
use crate::disk::sim_disk::{Random, SimDisk, State};
use crate::disk::{self, Disk as _};
use crate::manifest::Manifest;
use crate::planted::Fault;
use crate::seal::{Seal, StoreId};
use crate::settings::OnDamage;

const NAME: &str = "segment-0000000000";
const ASIDE: &str = "segment-0000000000.damaged";

/// A segment, and the offsets of everything in its file.
struct Sample {
    state: State,
    facts: Vec<PageFacts>,
    rows: Vec<Row>,
    /// Every entry with its range in the file, without padding.
    entries: Vec<(PageRef, PageEntry, Range<usize>)>,
    len: usize,
    settings: SegmentSettings,
}

fn sample(page_count: u64, entry_count: u64, len: usize, fault: Option<Fault>) -> Sample {
    let (disk, settings) = (SimDisk::default(), settings(fault));
    let page = |page: u64| {
        let lsns = page * entry_count..(page + 1) * entry_count;
        let entries = lsns.map(|lsn| entry(1 + lsn * 3, (lsn as usize * 37) % len)).collect();
        NewPage {
            subjects: SubjectDigest::NONE,
            owner: page,
            level: 4,
            times: PageTimes { first: 1_000 + page, last: 2_000 + page },
            entries,
        }
    };
    let pages: Vec<NewPage> = (0..page_count).map(page).collect();
    let (segments, ..) = Segments::open(disk.clone(), &settings, &Manifest::default()).expect("it is empty");
    let facts = segments.write(&pages, Durability::Durable).expect("the disk is well");
    let rows = file::layout(0, &pages).expect("it fits");
    let mut entries = Vec::new();
    for (page, row) in pages.iter().zip(&rows) {
        let mut at = row.offset as usize + ROW_BYTES;
        for entry in &page.entries {
            let place = at..at + 28 + entry.payload.len();
            entries.push((row.facts.page, entry.clone(), place));
            at += page::entry_bytes(entry.payload.len());
        }
    }
    let state = disk.state();
    let len = state.bytes(NAME).len();
    Sample { state, facts, rows, entries, len, settings }
}

impl Sample {
    /// Applies a change within `range`, then opens and reads everything; returns the number of lost entries.
    fn check(&self, range: &Range<usize>, change: impl FnOnce(&mut Vec<u8>)) -> Result<usize, String> {
        let mut state = self.state.clone();
        state.damage(NAME, change);
        let damaged = state.bytes(NAME).to_vec();
        let disk = SimDisk::new(state);
        let manifest = Manifest::default();
        let (segments, facts, report) =
            Segments::open(disk.clone(), &self.settings, &manifest).map_err(|error| error.to_string())?;
        if let Some(wrong) = facts.iter().find(|facts| !self.facts.contains(facts)) {
            return Err(format!("altered: {wrong:?}"));
        }
        let mut lost = 0;
        for row in &self.rows {
            let page = row.facts.page;
            let read = match segments.read(page) {
                Err(PageError::Gone(_)) if is_told(&report, page) && hits_both(row, range) => continue,
                read => read.map_err(|error| format!("lost: {error}"))?,
            };
            let lsns = segments.read_lsns(page).map_err(|error| error.to_string())?;
            let same = lsns.entries.iter().eq(read.entries.iter().map(|entry| &entry.lsn));
            if !same || lsns.damage != read.damage {
                return Err(format!("altered: {page:?} has other numbers"));
            }
            let mut written = self.entries.iter().filter(|entry| entry.0 == page).map(|entry| &entry.1);
            if let Some(wrong) = read.entries.iter().find(|entry| written.all(|written| written != *entry)) {
                return Err(format!("altered: {wrong:?}"));
            }
            let mut found = read.entries.iter().peekable();
            let (mut missing, told) = (0, read.damage.map(|damage| (damage.lost, damage.lsns)));
            for (_, expected, place) in self.entries.iter().filter(|entry| entry.0 == page) {
                if found.next_if_eq(&expected).is_some() {
                    continue;
                }
                missing += 1;
                let is_hit = place.start < range.end && range.start < place.end;
                let is_named = told.iter().flat_map(|(_, lsns)| lsns);
                let is_named =
                    is_named.into_iter().any(|lsns| (lsns.first..=lsns.last).contains(&expected.lsn));
                if !is_hit || !is_named {
                    return Err(format!("lost: {}, hit {is_hit}, named {is_named}", expected.lsn));
                }
            }
            if let Some(more) = found.next() {
                return Err(format!("altered: {more:?}"));
            }
            if told.map_or(0, |(lost, _)| lost) != missing {
                return Err(format!("not told: {missing} are lost of {page:?}"));
            }
            lost += missing as usize;
        }
        let after = disk.state();
        match after.names().as_slice() {
            [name] if name == NAME && report.damaged.is_empty() => {}
            [name] if name == ASIDE && report.damaged.len() == 1 => {
                let again =
                    Segments::open(disk, &self.settings, &manifest).map_err(|error| error.to_string())?;
                if again.1 != facts || !again.2.damaged.iter().all(|damaged| damaged.is_known) {
                    return Err("what is set aside is not found again".to_string());
                }
            }
            names => return Err(format!("set aside as {names:?}: {report}")),
        }
        match after.bytes(after.names()[0].as_str()) == damaged {
            true => Ok(lost),
            false => Err("what is damaged was changed".to_string()),
        }
    }

    fn flip(&self, bit: usize) -> Result<usize, String> {
        let at = bit / 8;
        self.check(&(at..at + 1), |bytes| bytes[at] ^= 1 << (bit % 8))
    }

    /// Applies random damage: a flipped bit, a zeroed sector or block, a sector from elsewhere, or a lost end.
    fn hurt(&self, random: &mut Random) -> Result<usize, String> {
        let size = [512, 4096][random.below(2)];
        let at = random.below(self.len / size) * size;
        let from = random.below(self.len / size) * size;
        let range = at..(at + size).min(self.len);
        match random.below(5) {
            0 | 1 => self.flip(random.below(self.len * 8)),
            2 => self.check(&range, |bytes| bytes[range.clone()].fill(0)),
            3 => self.check(&range, |bytes| bytes.copy_within(from..from + size, at)),
            _ => self.check(&(at..self.len), |bytes| bytes.truncate(at)),
        }
    }
}

fn is_told(report: &SegmentReport, page: PageRef) -> bool {
    report.damaged.iter().any(|damaged| damaged.has_lost_count || damaged.lost.contains(&page.index()))
}

/// Whether the damage reaches both rows of a page.
fn hits_both(row: &Row, range: &Range<usize>) -> bool {
    let places = [64 + row.facts.page.index() as usize * ROW_BYTES, row.offset as usize];
    places.into_iter().all(|at| at < range.end && range.start < at + ROW_BYTES)
}

#[test]
fn no_flipped_bit_of_a_small_segment_changes_or_loses_more_than_an_entry() {
    let sample = sample(3, 4, 90, None);
    let mut hits = 0;
    for bit in 0..sample.len * 8 {
        match sample.flip(bit) {
            Ok(lost) if lost <= 1 => hits += lost,
            other => panic!("bit {bit}: {other:?}"),
        }
    }
    let covered: usize = sample.entries.iter().map(|(_, _, place)| place.len() * 8).sum();
    assert_eq!(hits, covered, "each bit of an entry is covered");
}

#[test]
fn damage_of_a_large_segment_loses_what_it_hits() {
    let sample = sample(40, 30, 1500, None);
    let (mut random, mut hits) = (Random(7), 0);
    for round in 0..3000 {
        match sample.hurt(&mut random) {
            Ok(lost) => hits += usize::from(lost > 0),
            Err(what) => panic!("round {round}: {what}"),
        }
    }
    assert!(hits > 1000, "{hits} damages hit something");
}

#[test]
fn every_planted_fault_of_reading_is_caught() {
    for (fault, by) in [
        (Fault::TableWithoutChecksum, "altered"),
        (Fault::TableNotSalvaged, "lost"),
        (Fault::EntryWithoutLsn, "altered"),
        (Fault::EntryWithoutPayload, "altered"),
        (Fault::PageEndsAtDamage, "lost"),
    ] {
        let sample = sample(3, 4, 90, Some(fault));
        let says = |what: &String| what.contains(by);
        let is_caught = (64 * 8..sample.len * 8).any(|bit| sample.flip(bit).err().as_ref().is_some_and(says));
        assert!(is_caught, "{fault:?} is not caught as `{by}`");
    }
}

/// Opens a sample, and changes the table under it; gives the findings of each page at two reads.
fn damaged_while_open(
    sample: &Sample,
    change: impl FnOnce(&mut Vec<u8>),
) -> Result<Vec<[Option<u32>; 2]>, String> {
    let disk = SimDisk::new(sample.state.clone());
    let (segments, facts, _) = Segments::open(disk.clone(), &sample.settings, &Manifest::default())
        .map_err(|error| error.to_string())?;
    let file = disk.open(NAME).expect("it is there");
    let mut bytes = disk::read_all(&file).expect("the disk is well");
    change(&mut bytes);
    disk::write_all(&file, &bytes, 0).expect("the disk is well");
    let mut findings = Vec::new();
    for facts in &facts {
        let page = facts.page;
        let mut of_page = [None, None];
        for finding in &mut of_page {
            let written = sample.entries.iter().filter(|entry| entry.0 == page).map(|entry| &entry.1);
            match segments.read(page) {
                Ok(read) if read.entries.iter().eq(written) => {
                    *finding = read.damage.map(|damage| damage.lost);
                    let known = segments.facts(page).map_err(|error| error.to_string())?;
                    if known != *facts {
                        return Err(format!("altered: {known:?}"));
                    }
                }
                Ok(read) => return Err(format!("altered: {page:?}, {:?}", read.damage)),
                Err(PageError::Lost(lost)) if lost == page => *finding = Some(u32::MAX),
                Err(error) => return Err(error.to_string()),
            }
        }
        findings.push(of_page);
    }
    Ok(findings)
}

#[test]
fn no_flipped_bit_of_a_row_under_an_open_segment_costs_a_message_or_is_passed_over() {
    let sample = sample(3, 4, 90, None);
    for bit in 0..3 * ROW_BYTES * 8 {
        let flip = |bytes: &mut Vec<u8>| bytes[64 + bit / 8] ^= 1 << (bit % 8);
        let findings = damaged_while_open(&sample, flip).unwrap_or_else(|what| panic!("bit {bit}: {what}"));
        let mut expected = [[None, None]; 3];
        // The damage is reported once; later reads find the row by its copy.
        expected[bit / 8 / ROW_BYTES][0] = Some(0);
        assert_eq!(findings, expected, "bit {bit}");
    }
}

#[test]
fn a_page_that_loses_both_rows_while_its_segment_is_open_is_told_as_lost() {
    let sample = sample(3, 4, 90, None);
    let lost = [Some(u32::MAX); 2];
    for page in 0..3 {
        let (table, copy) = (64 + page * ROW_BYTES, sample.rows[page].offset as usize);
        let findings =
            damaged_while_open(&sample, |bytes| [table, copy].into_iter().for_each(|at| bytes[at] ^= 1));
        let mut expected = vec![[None, None]; 3];
        expected[page] = lost;
        assert_eq!(findings, Ok(expected), "page {page}");
    }
    // The table of another segment, or none at all: the copies are there still.
    for change in
        [(|bytes: &mut Vec<u8>| bytes[64..512].fill(0)) as fn(&mut Vec<u8>), |bytes| bytes[..512].reverse()]
    {
        let findings = damaged_while_open(&sample, change).expect("no byte is another");
        assert_eq!(
            findings.iter().flatten().flatten().collect::<Vec<_>>(),
            [&0],
            "one finding for the whole table"
        );
    }
    let error = PageError::Lost(PageRef::new(2, 7)).to_string();
    assert_eq!(error, "damage: no row of page `7` of segment `2` verifies; it is lost as a whole");
}

#[test]
fn holes_are_not_punched_where_a_row_is_damaged() {
    let sample = sample(12, 9, 900, None);
    let disk = SimDisk::new(sample.state.clone());
    let (segments, facts, _) =
        Segments::open(disk.clone(), &sample.settings, &Manifest::default()).expect("the disk is well");
    (2..8).for_each(|page| segments.discard(facts[page].page).expect("the disk is well"));
    let file = disk.open(NAME).expect("it is there");
    let mut bytes = disk::read_all(&file).expect("the disk is well");
    bytes[64 + 9 * ROW_BYTES + 40] ^= 1;
    disk::write_all(&file, &bytes, 0).expect("the disk is well");
    assert_eq!(segments.punch_holes().ok(), Some(0));
    assert!(disk.state().bytes(NAME) == bytes, "what is damaged stays as it is");
}

#[test]
fn a_file_under_the_name_of_another_segment_is_not_served() {
    let Sample { state, settings, .. } = sample(3, 4, 90, None);
    let disk = SimDisk::new(state);
    disk.rename(NAME, "segment-0000000004").expect("the disk is well");
    let (_, facts, report) = Segments::open(disk, &settings, &Manifest::default()).expect("it is set aside");
    assert_eq!((facts, report.damaged.len()), (vec![], 1));
    assert!(report.to_string().contains("how many are lost is not known"), "{report}");
}

#[test]
fn a_page_whose_rows_are_both_lost_is_told() {
    let Sample { mut state, settings, facts, rows, .. } = sample(3, 4, 90, None);
    state.damage(NAME, |bytes| {
        bytes[64 + ROW_BYTES] ^= 1;
        bytes[rows[1].offset as usize] ^= 1;
    });
    let disk = SimDisk::new(state);
    let (segments, left, report) =
        Segments::open(disk.clone(), &settings, &Manifest::default()).expect("it is set aside");
    assert_eq!(left, [facts[0], facts[2]]);
    assert!(report.to_string().ends_with("2 pages are found, 1 is lost as a whole"), "{report}");
    // Once the other pages are discarded, the file stays set aside and they do not come back.
    left.iter().for_each(|facts| segments.discard(facts.page).expect("the disk is well"));
    let (_, left, _) = Segments::open(disk.clone(), &settings, &segments.manifest()).expect("it opens");
    assert_eq!((left, disk.state().names()), (vec![], vec![ASIDE.to_string()]));
}

#[test]
fn what_a_shortened_segment_has_lost_is_told_when_it_is_opened() {
    let Sample { state, settings, rows, entries, .. } = sample(3, 4, 90, None);
    let segments = Segments::open(SimDisk::new(state.clone()), &settings, &Manifest::default());
    let manifest = segments.expect("the disk is well").0.manifest();
    // The second page keeps only its first entry; the table knows the last one.
    let inside = entries[4].2.end;
    for (end, gone, found, lost, inside) in [
        (inside, vec![], 3, vec![], vec![(1, 3), (2, 4)]),
        (inside, vec![1], 2, vec![], vec![(2, 4)]),
        (rows[2].offset as usize + ROW_BYTES, vec![], 3, vec![], vec![(2, 4)]),
        (rows[2].offset as usize + ROW_BYTES, vec![2], 2, vec![], vec![]),
        (0, vec![], 0, vec![0, 1, 2], vec![]),
        (0, vec![1], 0, vec![0, 2], vec![]),
    ] {
        let (mut state, mut manifest) = (state.clone(), manifest.clone());
        state.damage(NAME, |bytes| bytes.truncate(end));
        manifest.segments[0].gone = gone;
        let opened = Segments::open(SimDisk::new(state), &settings, &manifest);
        let (_, _, report) = opened.expect("it is set aside");
        let damaged = &report.damaged[0];
        assert_eq!((damaged.page_count, &damaged.lost, damaged.has_lost_count), (found, &lost, false));
        let pages = report.pages.iter().map(|page| (page.damage.page.index(), page.damage.lost));
        assert_eq!(pages.collect::<Vec<_>>(), inside, "{report}");
        assert!(report.pages.iter().all(|page| page.owner == u64::from(page.damage.page.index())));
    }
}

#[test]
fn damage_of_the_table_is_refused_where_that_is_asked_for() {
    let Sample { mut state, settings, .. } = sample(3, 4, 90, None);
    state.damage(NAME, |bytes| bytes[70] ^= 1);
    let disk = SimDisk::new(state);
    let settings = SegmentSettings { on_damage: OnDamage::Refuse, ..settings };
    let refused = Segments::open(disk.clone(), &settings, &Manifest::default()).map(|_| ());
    assert!(matches!(refused, Err(SegmentOpenError::Damaged(_))), "{refused:?}");
    // The report uses the current name.
    assert!(refused.expect_err("it is damaged").to_string().contains("in front of `segment-0000000000`:"));
    assert_eq!(disk.state().names(), [NAME], "nothing is changed");
}

#[test]
fn a_segment_of_another_store_is_not_opened() {
    let Sample { state, settings, .. } = sample(1, 1, 9, None);
    let store = StoreId([8; 16]);
    let settings = SegmentSettings { store, seal: Seal::new(store), ..settings };
    let refused = Segments::open(SimDisk::new(state), &settings, &Manifest::default()).map(|_| ());
    assert!(matches!(refused, Err(SegmentOpenError::Foreign { .. })), "{refused:?}");
}

#[test]
fn a_page_that_is_gone_is_not_told_of_as_lost() {
    let Sample { mut state, rows, settings, facts, .. } = sample(3, 5, 100, None);
    let segments = Segments::open(SimDisk::new(state.clone()), &settings, &Manifest::default());
    let mut manifest = segments.expect("the disk is well").0.manifest();
    // The second page's row in the table, and its copy in front of the page.
    state.damage(NAME, |bytes| {
        bytes[file::table_end(1) + 9] ^= 1;
        bytes[rows[1].offset as usize + 9] ^= 1;
    });
    for (gone, lost, left) in
        [(vec![], vec![1], vec![0, 2]), (vec![1], vec![], vec![0, 2]), (vec![0], vec![1], vec![2])]
    {
        manifest.segments[0].gone = gone;
        let opened = Segments::open(SimDisk::new(state.clone()), &settings, &manifest);
        let (_, found, report) = opened.expect("the disk is well");
        assert_eq!(report.damaged[0].lost, lost);
        assert_eq!(found, left.into_iter().map(|index: usize| facts[index]).collect::<Vec<_>>());
    }
}

#[test]
fn damage_in_a_page_that_is_gone_is_told_and_is_nobodys() {
    let Sample { mut state, entries, settings, .. } = sample(3, 5, 100, None);
    let segments = Segments::open(SimDisk::new(state.clone()), &settings, &Manifest::default());
    let mut manifest = segments.expect("the disk is well").0.manifest();
    let (page, _, place) = &entries[7];
    state.damage(NAME, |bytes| bytes[place.start + 9] ^= 1);
    for (gone, count) in [(vec![], 1), (vec![0], 1), (vec![page.index()], 0), (vec![0, 1, 2], 0)] {
        manifest.segments[0].gone = gone;
        let seen = verify(&SimDisk::new(state.clone()), settings.store, &manifest).expect("the disk is well");
        assert_eq!((seen.pages.len(), seen.damage_count()), (1, count), "{seen}");
    }
}
