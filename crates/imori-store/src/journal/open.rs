//! Opens a journal for writing, however the last process ended.
//!
//! Needed records of the last file and of damaged files are first rewritten and synced. Only then
//! are the old files reused or set aside, so that an opening can be interrupted at any point and
//! repeated.

use std::fmt;
use std::io;

use super::intake::Intake;
use super::journal::Journal;
use super::pool::Pool;
use crate::disk::{Disk, DiskFile as _};
use crate::lsn::Lsn;
use crate::planted::Fault;
use crate::records::journal_file::{self, JournalFile};
use crate::recovery::recover::{self, FileAction};
use crate::recovery::{Messages, RecoverError, Recovered};
use crate::settings::Settings;

/// The reason why a journal cannot be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The journal cannot be read.
    Recover(RecoverError),
    /// The journal was read but cannot be written.
    Disk(io::Error),
    /// A record does not fit into files of the size in the settings.
    FilesTooSmall,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Recover(error) => error.fmt(f),
            OpenError::Disk(error) => write!(f, "the journal cannot be written: {error}; check the disk"),
            OpenError::FilesTooSmall => {
                f.write_str("a record does not fit into a journal file; use files as large as they were")
            }
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Recover(error) => Some(error),
            OpenError::Disk(error) => Some(error),
            OpenError::FilesTooSmall => None,
        }
    }
}

impl From<RecoverError> for OpenError {
    fn from(error: RecoverError) -> OpenError {
        OpenError::Recover(error)
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> OpenError {
        OpenError::Disk(error)
    }
}

/// A journal that is ready for use.
#[derive(Debug)]
pub struct Opened<F> {
    /// The end that records are appended to.
    pub intake: Intake,
    /// The side that forms batches of records.
    pub journal: Journal<F>,
    /// The files for the batches.
    pub pool: Pool<F>,
    /// The recovered records and the report.
    pub recovered: Recovered,
}

/// A journal that is ready for use, and the messages that stayed in its files.
pub type OpenedApart<F> = (Opened<F>, Messages<F>);

/// Opens a journal with all records in memory, or creates one in an empty folder.
pub fn open<D: Disk>(disk: &D, settings: &Settings) -> Result<Opened<D::File>, OpenError> {
    let (opened, messages) = open_apart(disk, settings)?;
    Ok(Opened { recovered: opened.recovered.with(&messages).map_err(RecoverError::Disk)?, ..opened })
}

/// Opens a journal but leaves messages in its files, because they may exceed memory.
pub fn open_apart<D: Disk>(disk: &D, settings: &Settings) -> Result<OpenedApart<D::File>, OpenError> {
    for name in disk.list()?.iter().filter(|name| journal_file::is_unfinished(name)) {
        disk.remove(name)?;
    }
    let findings = recover::find(disk, settings)?;
    let mut pool = Pool::new(*settings, findings.next_generation, findings.next_number);
    let (mut live, mut used, mut set_aside, mut ready) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (file, fate) in findings.files {
        match fate {
            FileAction::Stay(last) => live.push((file, last)),
            FileAction::Sync(last) => {
                file.file.sync_data()?;
                live.push((file, last));
            }
            FileAction::Rewrite => used.push(file),
            FileAction::SetAside => set_aside.push(file),
            FileAction::Ready => ready.push(file),
        }
    }
    live.sort_by_key(|(_, last): &(JournalFile<D::File>, Lsn)| *last);
    // Part of a batch may have reached the device even in a file that looks untouched.
    ready.into_iter().for_each(|file| pool.free(file));
    if settings.seal.planted.has(Fault::DiscardBeforeSync) {
        used.drain(..).for_each(|file| pool.free(file));
        work(disk, &mut pool)?;
    }

    let recovered = findings.recovered;
    let mut intake = Intake::new(recovered.next);
    let mut journal = Journal::new(*settings, live);
    if settings.seal.planted.has(Fault::NumberUsedTwice) {
        intake = Intake::new(Lsn(recovered.next.0.saturating_sub(2).max(1)));
        journal = Journal::new(*settings, Vec::new());
    }
    let cut = usize::from(settings.seal.planted.has(Fault::TruncateOffByOne));
    let kept = findings.rewrites.len().saturating_sub(cut);
    for (first, record) in findings.rewrites.into_iter().take(kept) {
        journal.stage_again(first, record);
    }
    write(disk, &mut journal, &mut pool)?;
    journal.opened();

    for file in set_aside {
        let name = journal_file::name(file.number);
        disk.rename(&name, &format!("{name}.damaged"))?;
    }
    disk.sync_folder()?;
    used.into_iter().for_each(|file| pool.free(file));
    // Reused files must not be found again, so all of them get a new header before this returns.
    work(disk, &mut pool)?;
    Ok((Opened { intake, journal, pool, recovered }, findings.messages))
}

/// Writes all staged records.
fn write<D: Disk>(
    disk: &D,
    journal: &mut Journal<D::File>,
    pool: &mut Pool<D::File>,
) -> Result<(), OpenError> {
    while journal.has_staged() {
        if journal.needs_file() && !journal.roll(pool) {
            let job = pool.next_job().ok_or_else(|| match pool.is_hopeless() {
                true => OpenError::Disk(io::ErrorKind::StorageFull.into()),
                false => OpenError::FilesTooSmall,
            })?;
            pool.done(job.run(disk, &|| true)?);
            continue;
        }
        let batch = journal.take_batch().ok_or(OpenError::FilesTooSmall)?;
        batch.write()?;
        journal.batch_written();
        batch.sync()?;
        let released = journal.batch_synced();
        released.into_iter().flat_map(|released| released.freed).for_each(|file| pool.free(file));
        journal.recycle(batch);
    }
    Ok(())
}

/// Renews all free files, without creating any.
fn work<D: Disk>(disk: &D, pool: &mut Pool<D::File>) -> io::Result<()> {
    while pool.has_free() {
        let Some(job) = pool.next_job() else { break };
        pool.done(job.run(disk, &|| true)?);
    }
    Ok(())
}
