//! Random lives of a journal on the simulated disk, with a crash after every call that changes the
//! disk.
//!
//! A ledger records which records were appended and promised. After each crash, even during an
//! opening: nothing promised is lost, nothing else appears, no byte is changed, numbers rise,
//! groups are whole, and no damage is reported. Each planted fault has to be caught.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::committer::commit;
use super::intake::{Admitted, Intake, NewRecord};
use super::journal::Journal;
use super::open::{self, Opened};
use super::pool::{Job, JobOutcome, Pool};
use crate::disk::ReadFrom;
use crate::disk::crash_runs::{CRASHES, STORE, assert_all_caught, plan_fault, run_all, seal, seeds, tell};
use crate::disk::sim_disk::{Promised, Random, SimDisk, SimFile, State};
use crate::lsn::Lsn;
use crate::planted::Fault;
use crate::records::{Record, RecordType};
use crate::recovery::window::Window;
use crate::recovery::{self, Recovered, scan};
use crate::settings::{OnDamage, Settings};

const STEPS: usize = 120;
const LIVES: usize = 4;

pub(crate) fn settings(fault: Option<Fault>) -> Settings {
    Settings {
        store: STORE,
        shard: 0,
        file_bytes: 4 * 4096,
        on_damage: OnDamage::Quarantine,
        read_from: ReadFrom::Device,
        reserve_bytes: 0,
        durable_through: None,
        seal: seal(fault),
    }
}

#[derive(Default)]
struct Ledger {
    appended: BTreeMap<u64, Record>,
    groups: Vec<(u64, u64)>,
    floor: u64,
}

impl Ledger {
    fn check(&self, recovered: &Recovered, promised: u64) -> Result<(), String> {
        let floor = recovered.report.floor.map_or(0, |floor| floor.0);
        let found: BTreeMap<u64, &Record> =
            recovered.records.iter().map(|record| (record.lsn.0, record)).collect();
        if !recovered.records.is_sorted_by(|a, b| a.lsn < b.lsn) {
            return Err("numbers do not rise".to_string());
        }
        for (lsn, record) in &found {
            match self.appended.get(lsn) {
                None => return Err(format!("phantom: {lsn}")),
                Some(appended) if appended != *record => return Err(format!("altered: {lsn}")),
                Some(_) => {}
            }
        }
        let confirmed = self.appended.range(..=promised);
        let checkpoint = confirmed.filter_map(|(_, record)| record.floor()).max().map_or(0, |floor| floor.0);
        if floor < checkpoint {
            return Err(format!("lost: the checkpoint that says {checkpoint}"));
        }
        if let Some((lsn, _)) = self
            .appended
            .range(floor..=promised.max(floor))
            .find(|(lsn, _)| **lsn <= promised && !found.contains_key(lsn))
        {
            return Err(format!("lost: {lsn} of {promised} that were promised"));
        }
        for (first, last) in &self.groups {
            let there = (*first..=*last).filter(|lsn| found.contains_key(lsn)).count() as u64;
            if *first >= floor && there != 0 && there != last - first + 1 {
                return Err(format!("group: {there} records of {first} to {last}"));
            }
        }
        match recovered.report.is_damaged() {
            false => Ok(()),
            true => Err(format!("damage where there is none: {}", recovered.report)),
        }
    }

    /// Forgets lost records: none of them may reappear.
    fn adopt(&mut self, recovered: &Recovered) {
        self.appended = recovered.records.iter().map(|record| (record.lsn.0, record.clone())).collect();
        let appended = &self.appended;
        self.groups.retain(|(first, last)| (*first..=*last).all(|lsn| appended.contains_key(&lsn)));
    }
}

struct Life {
    disk: SimDisk,
    settings: Settings,
    intake: Intake,
    journal: Journal<SimFile>,
    pool: Pool<SimFile>,
    job: Option<Job<SimFile>>,
}

/// The source to read from after a kill: the cache holds everything written, unless the disk
/// failed.
fn trusted(left: &State) -> ReadFrom {
    if left.has_lost() { ReadFrom::Device } else { ReadFrom::Cache }
}

struct Run {
    random: Random,
    ledger: Ledger,
    points: u64,
    /// A state during the last step that changed the disk, as a kill at one of its calls leaves it.
    left: Option<State>,
}

impl Run {
    /// Runs consecutive lives, each ended by a crash; returns the number of crashes checked.
    fn run(seed: u64, fault: Option<Fault>) -> Result<u64, String> {
        let mut run = Run { random: Random(seed), ledger: Ledger::default(), points: 0, left: None };
        let mut settings = settings(fault);
        let mut state = State::default();
        for _ in 0..LIVES {
            let disk = SimDisk::new(state);
            disk.watch();
            let opened = open::open(&disk, &settings);
            run.crash_everywhere(&disk, &settings)?;
            let Opened { intake, journal, pool, recovered } = opened.map_err(|error| error.to_string())?;
            run.ledger.check(&recovered, disk.state().promised.disk)?;
            run.ledger.adopt(&recovered);
            let last = recovered.next.0 - 1;
            disk.promise(|promised| *promised = Promised { os: last, disk: last });
            let mut life = Life { disk, settings, intake, journal, pool, job: None };
            if run.random.below(3) == 0 {
                plan_fault(&life.disk, &mut run.random);
            }
            for _ in 0..STEPS {
                let is_alive = run.step(&mut life)?;
                run.crash_everywhere(&life.disk, &settings)?;
                if !is_alive {
                    break;
                }
            }
            // After a kill the cache is intact, and what only it holds has to become durable.
            let left = run.left.take().unwrap_or_else(|| life.disk.state());
            (state, settings.read_from) = match run.random.below(2) {
                0 => (left.clone(), trusted(&left)),
                _ => (left.crash(&mut run.random), ReadFrom::Device),
            };
        }
        Ok(run.points)
    }

    fn crash_everywhere(&mut self, disk: &SimDisk, settings: &Settings) -> Result<(), String> {
        let states = disk.take_snapshots();
        if !states.is_empty() {
            self.left = states.get(self.random.below(states.len())).cloned();
        }
        for state in states {
            let after_a_cut = settings.reading_from(ReadFrom::Device);
            for _ in 0..CRASHES {
                self.points += 1;
                let left = SimDisk::new(state.crash(&mut self.random));
                let recovered = recovery::recover(&left, &after_a_cut).map_err(|error| error.to_string())?;
                self.ledger.check(&recovered, state.promised.disk)?;
            }
            // A failed disk keeps only what was synced, although the cache shows more.
            let promised = if state.has_lost() { state.promised.disk } else { state.promised.os };
            self.points += 1;
            let read_from = trusted(&state);
            let killed = SimDisk::new(state);
            let recovered = recovery::recover(&killed, &settings.reading_from(read_from));
            let recovered = recovered.map_err(|error| error.to_string())?;
            let what = self.ledger.check(&recovered, promised);
            what.map_err(|what| format!("after a kill, {what}"))?;
        }
        Ok(())
    }

    /// Performs a random step; false if the disk failed and the process ends.
    fn step(&mut self, life: &mut Life) -> Result<bool, String> {
        match self.random.below(9) {
            0..4 => self.append(&mut life.intake),
            4..7 => return life.commit().or_else(|is_wrong| is_wrong.map_or(Ok(false), Err)),
            7 => life.pool.retry(),
            _ => return life.work().or_else(|is_wrong| is_wrong.map_or(Ok(false), Err)),
        }
        Ok(true)
    }

    fn append(&mut self, intake: &mut Intake) {
        let count = 1 + self.random.below(4);
        let records: Vec<NewRecord> = (0..count).map(|_| self.new_record()).collect();
        let is_group = self.random.below(3) == 0;
        let file_bytes = settings(None).file_bytes;
        let admitted = match is_group {
            true => Admitted::group(records.clone(), file_bytes),
            false => Admitted::each(records.clone(), file_bytes),
        };
        let appended = admitted.and_then(|admitted| intake.append(admitted));
        let range = appended.expect("the journal is well and takes what fits a file");
        let mut all = records;
        if is_group {
            self.ledger.groups.push((range.first.0, range.last.0));
            all.insert(0, NewRecord { kind: RecordType::GroupBegin, payload: Bytes::new() });
            all.push(NewRecord { kind: RecordType::GroupEnd, payload: Bytes::new() });
        }
        for (lsn, NewRecord { kind, payload }) in (range.first.0..).zip(all) {
            let record = Record { lsn: Lsn(lsn), kind, flags: u8::from(is_group), payload };
            self.ledger.appended.insert(lsn, record);
        }
    }

    fn new_record(&mut self) -> NewRecord {
        let last = self.ledger.appended.keys().next_back().copied().unwrap_or(0);
        if self.random.below(12) == 0 {
            let back = self.random.below(30) as u64;
            self.ledger.floor = self.ledger.floor.max(last.saturating_sub(back));
            let payload = Bytes::copy_from_slice(&self.ledger.floor.to_le_bytes());
            return NewRecord { kind: RecordType::Checkpoint, payload };
        }
        let len = [20, 300, 900, 2500][self.random.below(4)];
        let mut payload = vec![0; self.random.below(len)];
        payload.iter_mut().for_each(|byte| *byte = self.random.next() as u8);
        NewRecord { kind: RecordType::Message, payload: payload.into() }
    }
}

/// `None` if the disk failed, which is allowed; the violation if a property was broken.
type End = Option<String>;

impl Life {
    fn commit(&mut self) -> Result<bool, End> {
        self.journal.stage(&mut self.intake);
        if self.journal.needs_file() && !self.journal.roll(&mut self.pool) {
            return self.work();
        }
        let Some(batch) = self.journal.take_batch() else { return Ok(true) };
        let journal = std::cell::RefCell::new(&mut self.journal);
        let (pool, disk) = (&mut self.pool, &self.disk);
        let written = || {
            journal.borrow_mut().batch_written();
            disk.promise(|promised| promised.os = batch.lsns().last.0);
        };
        let release = || {
            let released = journal.borrow_mut().batch_synced().expect("it is written");
            disk.promise(|promised| promised.disk = released.through.0);
            released.freed.into_iter().for_each(|file| pool.free(file));
        };
        commit(&batch, written, release).map_err(|_| None)?;
        self.journal.recycle(batch);
        Ok(true)
    }

    /// Starts a job of the pool, or completes the current one.
    fn work(&mut self) -> Result<bool, End> {
        let Some(job) = self.job.take() else {
            self.job = self.pool.next_job();
            return Ok(true);
        };
        let made = job.run(&self.disk, &|| true).map_err(|_| None)?;
        if let JobOutcome::Ready(file) = &made {
            let mut window = Window::new(&*file.file, usize::MAX).map_err(|_| None)?;
            let scan = scan::scan(&mut window, self.settings.seal).map_err(|_| None)?;
            if scan.lowest().is_some() {
                return Err(Some("a ready file shows what stood in it before".to_string()));
            }
        }
        self.pool.done(made);
        Ok(true)
    }
}

#[test]
fn no_crash_loses_what_was_promised() {
    let begin = std::time::Instant::now();
    let points: u64 = run_all(Run::run).into_iter().sum();
    let per_second = points as f64 / begin.elapsed().as_secs_f64();
    assert!(points > seeds() * 2000, "{points} crashes");
    tell(&format!("{points} crashes, {per_second:.0}/s"));
}

#[test]
fn every_planted_fault_is_caught() {
    let faults = [
        (Fault::ConfirmBeforeSync, "lost"),
        (Fault::WrittenBeforeWrite, "after a kill, lost"),
        (Fault::FreeBeforeDurable, "lost"),
        (Fault::UseUnfinishedFile, "lost"),
        (Fault::FloorOffByOne, "lost"),
        (Fault::TailStays, "lost"),
        (Fault::SkipSync, "lost"),
        (Fault::RetrySync, "lost"),
        (Fault::ShortWriteIgnored, "lost"),
        (Fault::StaleGeneration, "a ready file"),
        (Fault::RenewWithoutGeneration, "a ready file"),
        (Fault::ChecksumWithoutPayload, "altered"),
        (Fault::ReuseNotFree, "lost"),
        (Fault::TruncateOffByOne, "lost"),
        (Fault::KeepPartOfGroup, "group"),
        (Fault::DiscardBeforeSync, "lost"),
        (Fault::SkipFolderSync, "lost"),
        (Fault::NumberUsedTwice, ""),
    ];
    assert_all_caught(&faults, Run::run);
}

mod misplaced;
mod recoveries;
