//! Random lives of segments on the simulated disk, with a crash after every call that changes the disk.
//!
//! A ledger tracks the last manifest and which pages were written and discarded. After each crash, including crashes
//! during an opening, no needed page is lost and no discarded one comes back. No byte is changed, no damage is
//! reported, and no known number is reused. Each planted fault has to be caught.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::file::Durability;
use super::page::{NewPage, PageEntry};
use super::row::{PageFacts, PageRef, PageTimes, SubjectDigest};
use super::segments::Segments;
use super::settings::SegmentSettings;
use crate::disk::crash_runs::{CRASHES, STORE, assert_all_caught, plan_fault, run_all, seal, seeds, tell};
use crate::disk::sim_disk::{Random, SimDisk, State};
use crate::lsn::Lsn;
use crate::manifest::Manifest;
use crate::planted::Fault;
use crate::settings::OnDamage;

const STEPS: usize = 30;
const LIVES: usize = 3;

pub(super) fn settings(fault: Option<Fault>) -> SegmentSettings {
    // Small enough that most segments take several writes.
    SegmentSettings { store: STORE, on_damage: OnDamage::Quarantine, write_bytes: 4096, seal: seal(fault) }
}

type Pages = BTreeMap<PageRef, NewPage>;

#[derive(Default)]
struct Ledger {
    /// Pages that must exist.
    durable: Pages,
    /// Pages that may exist: discarded since the last checkpoint, or from failed writes.
    doubtful: Pages,
    transient: Pages,
    manifest: Manifest,
}

impl Ledger {
    fn check(&self, state: State, settings: &SegmentSettings) -> Result<(), String> {
        let opened = Segments::open(SimDisk::new(state), settings, &self.manifest);
        let (segments, facts, report) = opened.map_err(|error| error.to_string())?;
        let known = |page: &PageRef| self.durable.get(page).or_else(|| self.doubtful.get(page));
        if let Some(phantom) = facts.iter().find(|facts| known(&facts.page).is_none()) {
            return Err(format!("phantom: {phantom:?}"));
        }
        if !report.damaged.is_empty() {
            return Err(format!("damage where there is none: {report}"));
        }
        if let Some(page) = self.durable.keys().find(|page| facts.iter().all(|facts| facts.page != **page)) {
            return Err(format!("lost: {page:?}"));
        }
        for facts in &facts {
            let expected = known(&facts.page).expect("there is no phantom");
            check_page(&segments, facts, expected)?;
        }
        let page = NewPage {
            owner: 1,
            level: 1,
            times: PageTimes::default(),
            subjects: SubjectDigest::NONE,
            entries: vec![entry(1, 10)],
        };
        let written = segments.write(&[page], Durability::Durable).map_err(|error| error.to_string())?;
        let is_known = |number: u32| {
            number < self.manifest.next_segment || facts.iter().any(|facts| facts.page.segment() == number)
        };
        match written.iter().find(|facts| is_known(facts.page.segment())) {
            Some(facts) => Err(format!("again: {:?}", facts.page)),
            None => Ok(()),
        }
    }
}

fn check_page(segments: &Segments<SimDisk>, facts: &PageFacts, expected: &NewPage) -> Result<(), String> {
    let page = segments.read(facts.page).map_err(|error| error.to_string())?;
    let lsns = segments.read_lsns(facts.page).map_err(|error| error.to_string())?;
    let are_same = lsns.entries.iter().eq(page.entries.iter().map(|entry| &entry.lsn));
    if page.damage.is_some() || page.entries != expected.entries || !are_same {
        return Err(format!("altered: {facts:?}"));
    }
    let of = |field: fn(&PageEntry) -> u64| {
        let all = expected.entries.iter().map(field);
        (all.clone().min(), all.clone().max(), all.sum::<u64>())
    };
    let (first, last, _) = of(|entry| entry.lsn.0);
    let (first_sequence, last_sequence, _) = of(|entry| entry.sequence);
    let (_, _, bytes) = of(|entry| entry.payload.len() as u64);
    let are_facts = (facts.owner, facts.level, facts.times, facts.subjects)
        == (expected.owner, expected.level, expected.times, expected.subjects)
        && (Some(facts.first.0), Some(facts.last.0)) == (first, last)
        && (Some(facts.first_sequence), Some(facts.last_sequence)) == (first_sequence, last_sequence)
        && (facts.count as usize, u64::from(facts.bytes)) == (expected.entries.len(), bytes);
    are_facts.then_some(()).ok_or_else(|| format!("altered: {facts:?}"))
}

pub(super) fn entry(lsn: u64, len: usize) -> PageEntry {
    PageEntry { lsn: Lsn(lsn), sequence: lsn / 2, payload: Bytes::from(vec![lsn as u8; len]) }
}

struct Run {
    random: Random,
    ledger: Ledger,
    settings: SegmentSettings,
    next_lsn: u64,
    points: u64,
    hole_bytes: u64,
}

impl Run {
    /// Runs several lives, each ended by a crash; returns the number of crashes checked and the bytes of holes.
    fn run(seed: u64, fault: Option<Fault>) -> Result<(u64, u64), String> {
        let (random, ledger) = (Random(seed), Ledger::default());
        let mut run =
            Run { random, ledger, settings: settings(fault), next_lsn: 1, points: 0, hole_bytes: 0 };
        let mut state = State::default();
        for _ in 0..LIVES {
            let disk = SimDisk::new(state);
            disk.watch();
            let opened = Segments::open(disk.clone(), &run.settings, &run.ledger.manifest);
            run.crash_everywhere(&disk)?;
            let (segments, facts, _) = opened.map_err(|error| error.to_string())?;
            run.ledger.check(disk.state(), &run.settings)?;
            run.adopt(&facts);
            if run.random.below(2) == 0 {
                plan_fault(&disk, &mut run.random);
            }
            for _ in 0..STEPS {
                run.step(&disk, &segments)?;
            }
            state = disk.state().crash(&mut run.random);
            run.ledger.check(state.clone(), &run.settings)?;
        }
        Ok((run.points, run.hole_bytes))
    }

    /// Takes over what the last crash kept: pages that came back are needed, and the others must stay gone.
    fn adopt(&mut self, facts: &[PageFacts]) {
        let mut all = std::mem::take(&mut self.ledger.durable);
        all.append(&mut self.ledger.doubtful);
        let there = facts.iter().filter_map(|facts| all.remove_entry(&facts.page));
        self.ledger.durable = there.collect();
        self.ledger.transient.clear();
    }

    fn crash_everywhere(&mut self, disk: &SimDisk) -> Result<(), String> {
        for state in disk.take_snapshots() {
            for _ in 0..CRASHES {
                self.points += 1;
                self.ledger.check(state.crash(&mut self.random), &self.settings)?;
            }
        }
        Ok(())
    }

    fn step(&mut self, disk: &SimDisk, segments: &Segments<SimDisk>) -> Result<(), String> {
        match self.random.below(10) {
            0..4 => self.write(disk, segments)?,
            4..8 => self.discard(disk, segments)?,
            8 => {
                self.ledger.manifest = segments.manifest();
                self.ledger.doubtful.clear();
                self.hole_bytes += segments.punch_holes().unwrap_or_default();
                self.crash_everywhere(disk)?;
            }
            _ => {}
        }
        // Without a crash all pages are readable.
        let pages = self.ledger.durable.iter().chain(&self.ledger.transient);
        for (page, expected) in pages {
            let read = segments.read(*page).map_err(|error| format!("lost: {error}"))?;
            if read.entries != expected.entries {
                return Err(format!("altered: {page:?}"));
            }
        }
        self.ledger.check(disk.state().crash(&mut self.random), &self.settings)
    }

    fn write(&mut self, disk: &SimDisk, segments: &Segments<SimDisk>) -> Result<(), String> {
        let pages: Vec<NewPage> = (0..1 + self.random.below(4)).map(|_| self.page()).collect();
        let is_durable = self.random.below(5) > 0;
        let durability = if is_durable { Durability::Durable } else { Durability::Transient };
        let number = segments.manifest().next_segment;
        let numbered = (0..).map(|index| PageRef::new(number, index)).zip(pages.clone());
        let written = segments.write(&pages, durability);
        if is_durable {
            self.ledger.doubtful.extend(numbered.clone());
        }
        self.crash_everywhere(disk)?;
        match written {
            Ok(facts) => {
                let are_numbered =
                    facts.iter().map(|facts| facts.page).eq(numbered.clone().map(|page| page.0));
                assert!(are_numbered, "pages are numbered in their order");
                self.ledger.doubtful.retain(|page, _| page.segment() != number);
                match is_durable {
                    true => self.ledger.durable.extend(numbered),
                    false => self.ledger.transient.extend(numbered),
                }
                Ok(())
            }
            Err(_) if disk.state().names().iter().any(|name| name.contains(&format!("{number:010}"))) => {
                Err(format!("left: a file of segment {number}, which could not be written"))
            }
            Err(_) => Ok(()),
        }
    }

    fn page(&mut self) -> NewPage {
        let entries = (0..1 + self.random.below(5)).map(|_| {
            self.next_lsn += 1 + self.random.below(3) as u64;
            let most = [20, 300, 900, 6000][self.random.below(4)];
            entry(self.next_lsn, self.random.below(most))
        });
        let entries = entries.collect();
        let times = PageTimes { first: self.random.next() >> 24, last: self.random.next() };
        let bytes = [self.random.next() as u8; SubjectDigest::BYTES];
        let subjects = SubjectDigest { kind: self.random.below(3) as u8, bytes };
        NewPage { owner: self.random.next(), level: self.random.below(10) as u8, times, subjects, entries }
    }

    fn discard(&mut self, disk: &SimDisk, segments: &Segments<SimDisk>) -> Result<(), String> {
        let ledger = &mut self.ledger;
        let count = ledger.durable.len() + ledger.transient.len();
        let chosen = self.random.below(count);
        let Some(page) = ledger.durable.keys().chain(ledger.transient.keys()).nth(chosen).copied() else {
            return Ok(());
        };
        ledger.transient.remove(&page);
        ledger.doubtful.extend(ledger.durable.remove_entry(&page));
        segments.discard(page).map_err(|error| error.to_string())?;
        self.crash_everywhere(disk)
    }
}

#[test]
fn no_crash_loses_a_page_that_is_needed() {
    let (mut points, mut hole_bytes) = (0, 0);
    for (crashes, bytes) in run_all(Run::run) {
        (points, hole_bytes) = (points + crashes, hole_bytes + bytes);
    }
    assert!(points > seeds() * 200, "{points} crashes");
    assert!(hole_bytes > seeds() * 4096, "{hole_bytes} bytes of holes");
    tell(&format!("{points} crashes of segments"));
}

#[test]
fn every_planted_fault_of_segments_is_caught() {
    let faults = [
        (Fault::RenameBeforeSync, "damage"),
        (Fault::SegmentWithoutFolderSync, "lost"),
        (Fault::SegmentWithoutSync, "damage"),
        (Fault::SegmentNumberUsedTwice, "again"),
        (Fault::SegmentComesBack, "phantom"),
        (Fault::RemoveWithFirstPage, "lost"),
        (Fault::GiveBackNeighbours, "altered"),
        (Fault::FailedSegmentStays, "left"),
        (Fault::TransientStays, "phantom"),
    ];
    assert_all_caught(&faults, Run::run);
}
