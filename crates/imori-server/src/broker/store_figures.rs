//! Facts and figures of the store.

use std::path::PathBuf;
use std::time::Duration;

use imori_store::recovery::Report;

use super::broker::Broker;
use crate::store::Counts;

/// Facts about the store that stay the same during one run of the broker.
#[derive(Debug, Clone)]
pub struct StoreFacts {
    /// Its random number.
    pub id: [u8; 16],
    /// Its folder.
    pub folder: PathBuf,
    /// How the last run ended.
    pub last_end: String,
    /// The report of the recovery, if there was one.
    pub report: Option<Report>,
}

/// Figures of the journal.
#[derive(Debug, Clone, Copy)]
pub struct JournalFigures {
    /// Bytes of a file.
    pub file_bytes: u64,
    /// Files that are needed.
    pub live_files: usize,
    /// Bytes left on the disk; `None` before the first sample.
    pub free_bytes: Option<u64>,
    /// The number of the next record; 0 if the journal has failed.
    pub next: u64,
    /// The number through which records are written.
    pub written: u64,
    /// The number through which records are synced.
    pub synced: u64,
    /// Bytes that wait for the disk.
    pub queued_bytes: usize,
    /// Duration so far of the write or sync in progress.
    pub flushing_for: Option<Duration>,
    /// Publishers wait for disk space.
    pub is_space_low: bool,
    /// Dead letters have to reserve room, because the disk is nearly full or behind.
    pub is_room_scarce: bool,
}

/// Figures of the journal's commits.
#[derive(Debug, Clone)]
pub struct CommitFigures {
    /// Commits by duration, with their records and bytes.
    pub counts: Counts,
    /// The longest commit of the last second.
    pub longest_of_second: Duration,
    /// The longest commit of the last minute.
    pub longest_of_minute: Duration,
}

impl Broker {
    /// Facts about the store.
    pub fn store_facts(&self) -> StoreFacts {
        let journal = &self.shared().journal;
        let folder = journal.folder();
        StoreFacts {
            id: folder.store().0,
            folder: folder.path().to_owned(),
            last_end: folder.last_end().to_string(),
            report: journal.report().cloned(),
        }
    }

    /// Figures of the journal.
    pub fn journal_figures(&self) -> JournalFigures {
        let journal = &self.shared().journal;
        let progress = journal.waiters().progress();
        JournalFigures {
            file_bytes: journal.file_bytes(),
            live_files: journal.live_files(),
            free_bytes: journal.free_bytes(),
            next: journal.next_lsn().map_or(0, |next| next.0),
            written: progress.written.0,
            synced: progress.synced.0,
            queued_bytes: journal.queued_bytes(),
            flushing_for: journal.flushing_for(),
            is_space_low: journal.is_space_low(),
            is_room_scarce: journal.is_room_scarce(),
        }
    }

    /// Figures of the journal's commits.
    pub fn commit_figures(&self) -> CommitFigures {
        let commits = self.shared().journal.commits();
        CommitFigures {
            counts: commits.counts(),
            longest_of_second: commits.longest_of_second(),
            longest_of_minute: commits.longest_of_minute(),
        }
    }

    /// Findings of damage that nobody has acknowledged; they contain names of queues.
    pub fn damages(&self) -> Vec<String> {
        self.shared().damages.findings()
    }
}
