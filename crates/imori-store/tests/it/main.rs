//! The journal on a real file system, with its threads.

#![allow(clippy::unwrap_used, reason = "a test whose premises fail has failed")]

mod errors;
mod older;
mod looking;
mod segments;
mod fixture;

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

use bytes::Bytes;
use imori_store::disk::{ReadFrom, RealDisk};
use imori_store::journal::{Committer, Listener, NewRecord};
use imori_store::lsn::Lsn;
use imori_store::records::RecordType;
use imori_store::seal::StoreId;
use imori_store::settings::{OnDamage, Settings};
use imori_store::{journal, recovery};

const FILE_BYTES: u64 = 1 << 20;

struct Teller(Sender<u64>);

impl Listener for Teller {
    fn written(&self, _through: Lsn) {}

    fn released(&self, through: Lsn) {
        let _ = self.0.send(through.0);
    }

    fn poisoned(&self, _cause: &io::Error) {}
}

fn settings() -> Settings {
    Settings::new(StoreId(*b"of this test ..."), 0, FILE_BYTES, OnDamage::Quarantine).unwrap()
}

/// An empty folder for this test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("store-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn start(folder: &Path) -> (Committer<RealDisk>, Receiver<u64>) {
    let disk = RealDisk::new(folder.to_owned());
    let opened = journal::open(&disk, &settings()).unwrap();
    let (sender, told) = channel();
    (Committer::start(disk, opened, Box::new(Teller(sender))).unwrap(), told)
}

/// A record with a payload that is unique to its number.
fn message(number: u64) -> NewRecord {
    let payload = number.to_le_bytes().repeat(1 + number as usize % 200);
    NewRecord { kind: RecordType::Message, payload: Bytes::from(payload) }
}

/// The message numbers in a folder; each record must be as it was appended, whatever it is read
/// from.
fn numbers(folder: &Path) -> Vec<u64> {
    let disk = RealDisk::new(folder.to_owned());
    let recovered = recovery::recover(&disk, &settings()).unwrap();
    let cached = recovery::recover(&disk, &settings().reading_from(ReadFrom::Cache)).unwrap();
    assert!(cached.records == recovered.records && cached.next == recovered.next);
    assert!(recovered.report.damaged.is_empty(), "{}", recovered.report);
    let messages = recovered.records.iter().filter(|record| record.kind == RecordType::Message);
    let read = messages.map(|record| {
        let number = u64::from_le_bytes(*record.payload.first_chunk().unwrap());
        assert_eq!(record.payload, message(number).payload, "{number}");
        number
    });
    read.collect()
}

#[test]
fn what_is_appended_is_there_when_it_is_opened_again() {
    let folder = folder("again");
    let mut next = 0;
    for _ in 0..3 {
        assert_eq!(numbers(&folder), (0..next).collect::<Vec<_>>());
        let (committer, _told) = start(&folder);
        for _ in 0..2_000 {
            committer.append([message(next)]).unwrap();
            next += 1;
        }
    }
    assert_eq!(numbers(&folder), (0..next).collect::<Vec<_>>());
}

#[test]
fn files_read_side_by_side_are_one_journal() {
    let folder = folder("many");
    let (committer, told) = start(&folder);
    for number in 0..40_000 {
        committer.append([message(number)]).unwrap();
        while committer.queued_bytes() > 1 << 20 {
            told.recv().unwrap();
        }
    }
    let files = committer.live_files();
    assert!(files > 20, "several threads read {files} files");
    drop(committer);
    assert_eq!(numbers(&folder), (0..40_000).collect::<Vec<_>>());
    // Most of it is not needed any more, and the result does not depend on which file is read
    // first.
    let (committer, told) = start(&folder);
    let lsn = committer.append_checkpoint(Lsn(39_001), &[]).unwrap();
    while committer.released_through() < lsn {
        told.recv().unwrap();
    }
    assert!(committer.live_files() < files);
    drop(committer);
    assert_eq!(numbers(&folder), (39_000..40_000).collect::<Vec<_>>());
}

/// The environment variable that makes a process write to this folder until it is killed.
const WRITES_TO: &str = "IMORI_STORE_WRITES_TO";

#[test]
fn what_was_released_survives_a_kill() {
    let folder = folder("killed");
    let mut there = Vec::new();
    for lines in [1, 30, 100, 7] {
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writes_until_it_is_killed", "--nocapture"])
            .env(WRITES_TO, &folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let told = BufReader::new(writer.stdout.take().unwrap()).lines();
        let numbers_told =
            told.filter_map(|line| line.unwrap().strip_prefix("released ")?.parse::<u64>().ok());
        let released = numbers_told.take(lines).last().unwrap();
        writer.kill().unwrap();
        writer.wait().unwrap();
        let before = there.len();
        there = numbers(&folder);
        assert!(there.len() > before && there.last().unwrap() >= &released, "{released} of {}", there.len());
        assert_eq!(there, (0..there.len() as u64).collect::<Vec<_>>());
    }
}

/// The process that is killed: it appends endlessly and reports what was released.
#[test]
fn writes_until_it_is_killed() {
    let Some(folder) = std::env::var_os(WRITES_TO) else { return };
    let mut next = numbers(Path::new(&folder)).len() as u64;
    let (committer, told) = start(Path::new(&folder));
    // Pairs of journal number and message number, which differ.
    let mut appended = Vec::new();
    loop {
        for _ in 0..20 {
            let lsn = committer.append([message(next)]).unwrap().last.0;
            appended.push((lsn, next));
            next += 1;
        }
        let through = told.recv().unwrap();
        let released = appended.iter().take_while(|(lsn, _)| *lsn <= through).last();
        if let Some((_, number)) = released {
            writeln!(io::stdout(), "released {number}").unwrap();
        }
    }
}
