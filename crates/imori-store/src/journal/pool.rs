//! Files that are ready to be written to: full length, all of it allocated and written once, and synced.
//!
//! A value: it says what is to be done next ([`Job`]), whoever owns it does that without holding it,
//! and hands the file back. One job at a time, so that generations rise in the order of use.

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

/// The files that are ready, and those that can be made so.
#[derive(Debug)]
pub struct Pool<F> {
    settings: Settings,
    ready: VecDeque<JournalFile<F>>,
    free: VecDeque<JournalFile<F>>,
    next_generation: u32,
    next_number: u32,
    is_working: bool,
    /// It works on a file that somebody waits for.
    is_working_urgently: bool,
    /// The disk was full when a file was to be made; none is until somebody says that there is space.
    is_stalled: bool,
    /// Space is scarce: no more files are kept than settles need.
    is_short: bool,
    /// Somebody waits for a file, and none is ready.
    wanted: Option<Wanted>,
    /// A small one may be made for that without a checkpoint: one between two looks at the space, or what is synced one
    /// by one would take all of it before the keeper can free some.
    may_be_small: bool,
    /// There was no space even for that one.
    is_hopeless: bool,
}

/// What somebody asks of a file who waits for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Bytes that it takes at least, beside its header.
    pub(crate) unit_bytes: usize,
    /// Bytes up to the end of a checkpoint, if one waits too: with that written other files are free.
    pub(crate) freeing_bytes: Option<usize>,
}

/// Something to do so that a file is ready.
#[derive(Debug)]
pub struct Job<F> {
    settings: Settings,
    generation: u32,
    kind: JobKind<F>,
}

#[derive(Debug)]
enum JobKind<F> {
    Make { number: u32, wanted: Option<Wanted>, may_be_small: bool },
    Renew(JournalFile<F>),
    Remove(u32),
}

/// What came of a job.
#[derive(Debug)]
pub enum Made<F> {
    /// This file is ready.
    Ready(JournalFile<F>),
    /// A file is gone that was one too many or of another length than asked for today.
    Removed,
    /// There is no space for a new file, or nobody wants one any more.
    NoSpace,
}

impl<F: DiskFile> Pool<F> {
    /// An empty pool, whose next file has these.
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
            is_short: false,
            wanted: None,
            may_be_small: true,
            is_hopeless: false,
        }
    }

    /// Takes a file that nothing needs any more.
    pub fn free(&mut self, file: JournalFile<F>) {
        self.free.push_back(file);
    }

    /// Gives a file that is ready for what is wanted; whoever gets none waits for one.
    pub(crate) fn take(&mut self, wanted: impl Fn() -> Wanted) -> Option<JournalFile<F>> {
        let is_whole = |file: &JournalFile<F>| file.bytes >= self.settings.file_bytes;
        let is_enough = |file: &JournalFile<F>| file.bytes >= wanted().unit_bytes + BLOCK_BYTES;
        while let Some(small) = self.ready.pop_front_if(|file| !is_whole(file) && !is_enough(file)) {
            self.free.push_back(small);
        }
        let file = self.ready.pop_front();
        let before = std::mem::replace(&mut self.wanted, file.is_none().then(wanted));
        let frees = |wanted: Option<Wanted>| wanted.is_some_and(|wanted| wanted.freeing_bytes.is_some());
        // For a checkpoint there may be the space that there was not for what is before it.
        self.is_hopeless &= self.wanted.is_some() && frees(before) == frees(self.wanted);
        file
    }

    /// How many files are ready.
    pub(crate) fn ready(&self) -> usize {
        self.ready.len()
    }

    pub(crate) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// Tells whether a file is ready.
    #[must_use]
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Tells whether there was no space for a file. What is freed meanwhile is for settles: were publishers let on
    /// by it, what is copied to segments so that it is free would take the rest of the disk.
    #[must_use]
    pub fn is_stalled(&self) -> bool {
        self.is_stalled
    }

    /// Tells whether there is no space even for a file that somebody waits for.
    #[must_use]
    pub fn is_hopeless(&self) -> bool {
        self.is_stalled() && self.is_hopeless
    }

    /// Tries again to make files, because there may be space.
    pub fn retry(&mut self) {
        self.is_stalled = false;
    }

    /// Tries again to make the one that somebody waits for.
    pub fn retry_urgently(&mut self) {
        (self.is_hopeless, self.may_be_small) = (false, true);
    }

    /// Says whether space is scarce: what is ready beyond what settles need is then given up.
    pub fn be_short(&mut self, is_short: bool) {
        self.is_short = is_short;
    }

    /// Says what is to be done next: what is free is renewed, or removed if there is more than enough,
    /// and if too few are ready one is made.
    pub fn next_job(&mut self) -> Option<Job<F>> {
        if self.is_working {
            return None;
        }
        let (ready_min, spare_max) = match self.is_short || self.is_stalled {
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

    /// Takes what came of a job.
    pub fn done(&mut self, made: Made<F>) {
        let was_urgent = std::mem::take(&mut self.is_working_urgently);
        self.is_working = false;
        match made {
            Made::Ready(file) => self.ready.push_back(file),
            Made::Removed => {}
            Made::NoSpace => (self.is_stalled, self.is_hopeless) = (true, self.is_hopeless || was_urgent),
        }
    }
}

impl<F: DiskFile> Job<F> {
    /// Does it. That the disk is full, or the process has no descriptor left, is no failure: nothing was
    /// promised about a file that is not there. A new file is given up as soon as it `is_wanted` no more.
    pub fn run<D: Disk<File = F>>(self, disk: &D, is_wanted: &dyn Fn() -> bool) -> io::Result<Made<F>> {
        if self.generation == u32::MAX {
            return Err(io::Error::other(
                "the generations of journal files are used up; drain into a new store",
            ));
        }
        match self.kind {
            JobKind::Make { number, wanted, may_be_small } => {
                let bytes = length(disk.free_bytes()?, &self.settings, wanted, may_be_small);
                let Some(bytes) = bytes else { return Ok(Made::NoSpace) };
                match make(disk, &self.settings, (number, self.generation, bytes), is_wanted) {
                    Ok(None) => give_up(disk, number).map(|()| Made::NoSpace),
                    Err(error)
                        if disk::is_scarce(&error)
                            && self.settings.seal.planted.has(Fault::UseUnfinishedFile) =>
                    {
                        let file = Arc::new(disk.open(&format!("{}{NEW}", name(number)))?);
                        Ok(Made::Ready(JournalFile { file, number, generation: self.generation, bytes }))
                    }
                    Err(error) if disk::is_scarce(&error) => give_up(disk, number).map(|()| Made::NoSpace),
                    Ok(Some(file)) => Ok(Made::Ready(file)),
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
        // A sync of a whole file at once would be in the way of every commit beside it.
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

/// How long a new file may be. It leaves to others what is theirs, unless somebody waits for it: then it leaves to the
/// keeper the space of one that it copies from. Where there is no more than that it is small, and leaves what a
/// checkpoint takes; to a checkpoint, with what is before it, it leaves nothing, as that gives space back.
fn length(free_bytes: u64, settings: &Settings, wanted: Option<Wanted>, may_be_small: bool) -> Option<usize> {
    let file_bytes = settings.file_bytes as u64;
    let space = Space::new(settings.reserve_bytes, file_bytes);
    if settings.reserve_bytes == 0 || space.has_room(free_bytes) {
        return Some(settings.file_bytes);
    }
    let Wanted { unit_bytes, freeing_bytes } = wanted?;
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

/// Takes away what there is of a file for which there was no space.
fn give_up<D: Disk>(disk: &D, number: u32) -> io::Result<()> {
    match disk.remove(&format!("{}{NEW}", name(number))) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn remove<D: Disk>(disk: &D, number: u32) -> io::Result<Made<D::File>> {
    disk.remove(&name(number))?;
    disk.sync_folder()?;
    Ok(Made::Removed)
}

fn renew<D: Disk>(
    disk: &D,
    settings: &Settings,
    file: JournalFile<D::File>,
    generation: u32,
) -> io::Result<Made<D::File>> {
    if file.file.size()? != settings.file_bytes as u64 {
        return remove(disk, file.number);
    }
    let is_kept = settings.seal.planted.has(Fault::RenewWithoutGeneration);
    let generation = if is_kept { file.generation } else { generation };
    let bytes = settings.file_bytes;
    disk::write_all(&*file.file, &settings.header(bytes, generation, None).encode(), 0)?;
    file.file.sync_data()?;
    Ok(Made::Ready(JournalFile { generation, bytes, ..file }))
}

#[cfg(test)]
mod tests;
