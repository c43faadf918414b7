//! The pool of ready journal files: fully allocated, written once, and synced.
//!
//! A value without threads: [`Job`] is the next step, which the owner performs without a lock
//! before it returns the file. There is one job at a time, so that generations rise in the order of
//! use.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use super::space::Space;
use crate::disk::{self, Disk, DiskFile};
use crate::limits::{
    BLOCK_BYTES, CHECKPOINT_SPACE_BYTES, FILL_BYTES, READY_FILES, SHORT_FILES_MAX, SMALL_FILE_BYTES,
    SPARE_FILES_MAX,
};
use crate::planted::Fault;
use crate::records::journal_file::{JournalFile, NEW, name};
use crate::settings::Settings;

/// Ready files, and free files that can be made ready.
#[derive(Debug)]
pub struct Pool<F> {
    settings: Settings,
    ready: VecDeque<JournalFile<F>>,
    free: VecDeque<JournalFile<F>>,
    next_generation: u32,
    next_number: u32,
    is_working: bool,
    /// Whether the current job creates a file that the journal waits for.
    is_working_urgently: bool,
    /// Whether the disk was too full to create a file; none is created until space is reported.
    is_stalled: bool,
    /// Whether space is short, so that only as many files are kept as settles need.
    is_short_of_space: bool,
    /// The request of the journal while no file is ready.
    wanted: Option<FileRequest>,
    /// Whether one small file may be created without a checkpoint before the next check of the
    /// space. More of them would take all space before the checkpointer frees some.
    may_be_small: bool,
    /// Whether there was no space even for the file that the journal waits for.
    is_hopeless: bool,
}

/// The size required of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileRequest {
    /// The bytes of the next record or group, without the file's header.
    pub(crate) unit_bytes: usize,
    /// The bytes up to the end of a waiting checkpoint, if there is one, which frees other files
    /// once written.
    pub(crate) freeing_bytes: Option<usize>,
}

/// A step that makes a file ready or removes one.
#[derive(Debug)]
pub struct Job<F> {
    settings: Settings,
    generation: u32,
    kind: JobKind<F>,
}

#[derive(Debug)]
enum JobKind<F> {
    Make { number: u32, wanted: Option<FileRequest>, may_be_small: bool },
    Renew(JournalFile<F>),
    Remove(u32),
}

/// The outcome of a job.
#[derive(Debug)]
pub enum JobOutcome<F> {
    /// The file is ready.
    Ready(JournalFile<F>),
    /// A file was removed, because it was surplus or had another size than the settings ask for.
    Removed,
    /// No file was created: there is no space, or it is no longer needed.
    NoSpace,
}

impl<F: DiskFile> Pool<F> {
    /// An empty pool that continues with these generations and file numbers.
    pub(crate) fn new(settings: Settings, next_generation: u32, next_number: u32) -> Pool<F> {
        let (ready, free) = (VecDeque::new(), VecDeque::new());
        Pool {
            settings,
            ready,
            free,
            next_generation,
            next_number,
            is_working: false,
            is_working_urgently: false,
            is_stalled: false,
            is_short_of_space: false,
            wanted: None,
            may_be_small: true,
            is_hopeless: false,
        }
    }

    /// Adds a file that is no longer needed.
    pub fn free(&mut self, file: JournalFile<F>) {
        self.free.push_back(file);
    }

    /// Takes a ready file that is large enough; without one, remembers the request.
    pub(crate) fn take(&mut self, wanted: impl Fn() -> FileRequest) -> Option<JournalFile<F>> {
        let is_whole = |file: &JournalFile<F>| file.bytes >= self.settings.file_bytes;
        let is_enough = |file: &JournalFile<F>| file.bytes >= wanted().unit_bytes + BLOCK_BYTES;
        while let Some(small) = self.ready.pop_front_if(|file| !is_whole(file) && !is_enough(file)) {
            self.free.push_back(small);
        }
        let file = self.ready.pop_front();
        let before = std::mem::replace(&mut self.wanted, file.is_none().then(wanted));
        let frees = |wanted: Option<FileRequest>| wanted.is_some_and(|wanted| wanted.freeing_bytes.is_some());
        // A checkpoint may find space that an earlier request without one did not.
        self.is_hopeless &= self.wanted.is_some() && frees(before) == frees(self.wanted);
        file
    }

    /// The number of ready files.
    pub(crate) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// The bytes of batches that fit into the ready files.
    pub(crate) fn ready_bytes(&self) -> usize {
        self.ready.iter().map(|file| file.bytes.saturating_sub(BLOCK_BYTES)).sum()
    }

    pub(crate) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// Whether a file is ready.
    #[must_use]
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether there was no space for a file. Files freed meanwhile are reserved for settles: if
    /// publishers continued, copies into segments would fill the disk.
    #[must_use]
    pub fn is_stalled(&self) -> bool {
        self.is_stalled
    }

    /// Whether there is no space even for the file that the journal waits for.
    #[must_use]
    pub fn is_hopeless(&self) -> bool {
        self.is_stalled() && self.is_hopeless
    }

    /// Allows creating files again, because there may be space.
    pub fn retry(&mut self) {
        self.is_stalled = false;
    }

    /// Allows another attempt at the file that the journal waits for.
    pub fn retry_urgently(&mut self) {
        (self.is_hopeless, self.may_be_small) = (false, true);
    }

    /// Sets whether space is short: ready files beyond those needed by settles are then given up.
    pub fn set_short_of_space(&mut self, is_short_of_space: bool) {
        self.is_short_of_space = is_short_of_space;
    }

    /// Whether space is short.
    pub(crate) fn is_short_of_space(&self) -> bool {
        self.is_short_of_space
    }

    /// The next step: free files are renewed, or removed if there are enough; if too few are ready,
    /// one is created.
    pub fn next_job(&mut self) -> Option<Job<F>> {
        if self.is_working {
            return None;
        }
        let (ready_min, spare_max) = match self.is_short_of_space || self.is_stalled {
            true => (SHORT_FILES_MAX, SHORT_FILES_MAX),
            false => (READY_FILES, SPARE_FILES_MAX),
        };
        if self.ready.len() > spare_max {
            self.free.extend(self.ready.pop_back());
        }
        let is_enough = self.ready.len() >= spare_max;
        let wanted = self.wanted.filter(|_| self.ready.is_empty());
        let may_make = !self.is_stalled || wanted.is_some() && !self.is_hopeless;
        let kind = match self.free.pop_front() {
            Some(file) if is_enough => JobKind::Remove(file.number),
            Some(file) => JobKind::Renew(file),
            None if self.ready.len() < ready_min && may_make => {
                self.next_number += 1;
                self.is_working_urgently = wanted.is_some();
                let may_be_small = std::mem::take(&mut self.may_be_small);
                JobKind::Make { number: self.next_number - 1, wanted, may_be_small }
            }
            None => return None,
        };
        self.is_working = true;
        let generation = self.next_generation;
        self.next_generation = generation.saturating_add(1);
        Some(Job { settings: self.settings, generation, kind })
    }

    /// Records the outcome of a job.
    pub fn done(&mut self, made: JobOutcome<F>) {
        let was_urgent = std::mem::take(&mut self.is_working_urgently);
        self.is_working = false;
        match made {
            JobOutcome::Ready(file) => self.ready.push_back(file),
            JobOutcome::Removed => {}
            JobOutcome::NoSpace => {
                (self.is_stalled, self.is_hopeless) = (true, self.is_hopeless || was_urgent);
            }
        }
    }
}

impl<F: DiskFile> Job<F> {
    /// Performs the job. A full disk or a lack of descriptors is no failure, because nothing was
    /// promised about a missing file. Creation stops as soon as `is_wanted` is false.
    pub fn run<D: Disk<File = F>>(self, disk: &D, is_wanted: &dyn Fn() -> bool) -> io::Result<JobOutcome<F>> {
        if self.generation == u32::MAX {
            return Err(io::Error::other(
                "the generations of journal files are used up; drain into a new store",
            ));
        }
        match self.kind {
            JobKind::Make { number, wanted, may_be_small } => {
                let bytes = length(disk.free_bytes()?, &self.settings, wanted, may_be_small);
                let Some(bytes) = bytes else { return Ok(JobOutcome::NoSpace) };
                match make(disk, &self.settings, (number, self.generation, bytes), is_wanted) {
                    Ok(None) => give_up(disk, number).map(|()| JobOutcome::NoSpace),
                    Err(error)
                        if disk::is_out_of_resources(&error)
                            && self.settings.seal.planted.has(Fault::UseUnfinishedFile) =>
                    {
                        let file = Arc::new(disk.open(&format!("{}{NEW}", name(number)))?);
                        Ok(JobOutcome::Ready(JournalFile {
                            file,
                            number,
                            generation: self.generation,
                            bytes,
                        }))
                    }
                    Err(error) if disk::is_out_of_resources(&error) => {
                        give_up(disk, number).map(|()| JobOutcome::NoSpace)
                    }
                    Ok(Some(file)) => Ok(JobOutcome::Ready(file)),
                    Err(error) => Err(error),
                }
            }
            JobKind::Renew(file) => renew(disk, &self.settings, file, self.generation),
            JobKind::Remove(number) => remove(disk, number),
        }
    }
}

fn make<D: Disk>(
    disk: &D,
    settings: &Settings,
    (number, generation, bytes): (u32, u32, usize),
    is_wanted: &dyn Fn() -> bool,
) -> io::Result<Option<JournalFile<D::File>>> {
    let name = name(number);
    let new = format!("{name}{NEW}");
    let file = disk.create(&new)?;
    let zeros = vec![0; FILL_BYTES.min(bytes)];
    let mut at = 0;
    while at < bytes {
        if !is_wanted() {
            return Ok(None);
        }
        let piece = zeros.get(..bytes - at).unwrap_or(&zeros);
        disk::write_all(&file, piece, at as u64)?;
        // Syncing a whole file at once would delay every commit meanwhile.
        file.sync_data()?;
        at += piece.len();
    }
    disk::write_all(&file, &settings.header(bytes, generation, None).encode(), 0)?;
    file.sync_data()?;
    disk.rename(&new, &name)?;
    if !settings.seal.planted.has(Fault::SkipFolderSync) {
        disk.sync_folder()?;
    }
    Ok(Some(JournalFile { file: Arc::new(file), number, generation, bytes }))
}

/// Decides the length of a new file. An ordinary file leaves the reserve alone. A requested file
/// leaves room for one copy by the checkpointer, or else is small and leaves room for a checkpoint.
/// A request with a checkpoint may take everything, because the checkpoint frees space.
fn length(
    free_bytes: u64,
    settings: &Settings,
    wanted: Option<FileRequest>,
    may_be_small: bool,
) -> Option<usize> {
    let file_bytes = settings.file_bytes as u64;
    let space = Space::new(settings.reserve_bytes, file_bytes);
    if settings.reserve_bytes == 0 || space.has_room(free_bytes) {
        return Some(settings.file_bytes);
    }
    let FileRequest { unit_bytes, freeing_bytes } = wanted?;
    if free_bytes >= 2 * file_bytes {
        return Some(settings.file_bytes);
    }
    let whole = |bytes: usize| (bytes + BLOCK_BYTES).next_multiple_of(BLOCK_BYTES).min(settings.file_bytes);
    let small = whole(unit_bytes).max(SMALL_FILE_BYTES.min(settings.file_bytes));
    if may_be_small && free_bytes >= small as u64 + CHECKPOINT_SPACE_BYTES.min(file_bytes) {
        return Some(small);
    }
    freeing_bytes.map(whole).filter(|bytes| free_bytes >= *bytes as u64)
}

/// Removes an incomplete file for which there was no space.
fn give_up<D: Disk>(disk: &D, number: u32) -> io::Result<()> {
    match disk.remove(&format!("{}{NEW}", name(number))) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn remove<D: Disk>(disk: &D, number: u32) -> io::Result<JobOutcome<D::File>> {
    disk.remove(&name(number))?;
    disk.sync_folder()?;
    Ok(JobOutcome::Removed)
}

fn renew<D: Disk>(
    disk: &D,
    settings: &Settings,
    file: JournalFile<D::File>,
    generation: u32,
) -> io::Result<JobOutcome<D::File>> {
    if file.file.size()? != settings.file_bytes as u64 {
        return remove(disk, file.number);
    }
    let is_kept = settings.seal.planted.has(Fault::RenewWithoutGeneration);
    let generation = if is_kept { file.generation } else { generation };
    let bytes = settings.file_bytes;
    disk::write_all(&*file.file, &settings.header(bytes, generation, None).encode(), 0)?;
    file.file.sync_data()?;
    Ok(JobOutcome::Ready(JournalFile { generation, bytes, ..file }))
}

#[cfg(test)]
mod tests;
