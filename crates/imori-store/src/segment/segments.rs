//! All segments of a store: one thread writes and discards, any thread reads.
//!
//! No lock is held while the disk works. Files stay open after a read, and pages in memory, up to limits: many
//! cursors on one segment open it once and read a page once. Absent: which page to read or write, and
//! compaction. Space between needed pages is given back by holes instead.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;

use crate::disk::{self, Disk, DiskFile};
use crate::limits::{PAGE_CACHE_BYTES_MAX, PAGE_CACHE_PAGE_BYTES_MAX, SEGMENT_FILES_OPEN_MAX};
use crate::lsn::Lsn;
use crate::planted::Fault;

use super::file::{self, Durability, FileKind, SegmentFileWriter};
use super::inspect;
use super::open::{self, FoundSegments};
use super::open_error::SegmentOpenError;
use super::page::{self, NewPage, Page};
use super::report::SegmentReport;
use super::row::{PageFacts, PageRef, Row};
use super::segment::Segment;
use super::settings::SegmentSettings;
use super::tables::Tables;
use crate::cache::Cache;
use crate::manifest::Manifest;

/// Why a page cannot be read.
#[derive(Debug)]
pub enum PageError {
    /// The disk returned an error.
    Disk(io::Error),
    /// The page was discarded, or never written.
    Gone(PageRef),
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PageError::Disk(error) => write!(f, "a page cannot be read: {error}; check the disk"),
            PageError::Gone(page) => {
                write!(f, "page `{}` of segment `{}` is gone", page.index(), page.segment())
            }
        }
    }
}

impl std::error::Error for PageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PageError::Disk(error) => Some(error),
            PageError::Gone(_) => None,
        }
    }
}

/// The segments of a store.
#[derive(Debug)]
pub struct Segments<D: Disk> {
    disk: D,
    settings: SegmentSettings,
    state: Mutex<State<D::File>>,
}

#[derive(Debug)]
struct State<F> {
    segments: BTreeMap<u32, Segment>,
    next: u32,
    /// Segments being written.
    under_way: BTreeSet<u32>,
    /// Files that stay open, by the numbers of their segments. Each segment is still there.
    files: Cache<u32, Arc<F>>,
    /// Pages that verified as a whole.
    pages: Cache<PageRef, Bytes>,
}

/// A segment being written.
#[derive(Debug)]
pub struct SegmentWriter<F> {
    file: SegmentFileWriter<F>,
    segment: u32,
    rows: Vec<Row>,
    durability: Durability,
}

impl<D: Disk> Segments<D> {
    /// Opens the segments of a folder with the last manifest, and returns the needed pages.
    ///
    /// Removes unfinished, transient and gone segments, and does not read pages. A record may be in the pages of two
    /// segments if a write of it failed or was interrupted.
    pub fn open(
        disk: D,
        settings: &SegmentSettings,
        manifest: &Manifest,
    ) -> Result<(Segments<D>, Vec<PageFacts>, SegmentReport), SegmentOpenError> {
        let tables = Tables::read(&disk, settings)?;
        Segments::with_tables(disk, settings, tables, manifest)
    }

    /// Opens segments from tables that were already read.
    pub fn with_tables(
        disk: D,
        settings: &SegmentSettings,
        tables: Tables,
        manifest: &Manifest,
    ) -> Result<(Segments<D>, Vec<PageFacts>, SegmentReport), SegmentOpenError> {
        let FoundSegments { segments, next, report } = open::find(&disk, settings, tables, manifest)?;
        let facts = segments.values().flat_map(Segment::facts).collect();
        let (files, pages) = (Cache::new(SEGMENT_FILES_OPEN_MAX), Cache::new(PAGE_CACHE_BYTES_MAX));
        let state = Mutex::new(State { segments, next, under_way: BTreeSet::new(), files, pages });
        Ok((Segments { disk, settings: *settings, state }, facts, report))
    }

    /// Writes pages as one segment, which is durable on return unless transient.
    ///
    /// After an error there is no such segment, and the pages may be written again.
    pub fn write(&self, pages: &[NewPage], durability: Durability) -> io::Result<Vec<PageFacts>> {
        let mut writing = self.begin(pages, durability)?;
        loop {
            if let Some(facts) = self.step(&mut writing, pages)? {
                return Ok(facts);
            }
        }
    }

    /// Starts writing pages as one segment, in steps between which other work can be done. The writer must be driven
    /// to its end or error, or the segment counts as being written forever.
    pub fn begin(&self, pages: &[NewPage], durability: Durability) -> io::Result<SegmentWriter<D::File>> {
        let segment = self.next()?;
        let made = file::layout(segment, pages).and_then(|rows| {
            Ok((SegmentFileWriter::make(&self.disk, &self.settings, segment, durability)?, rows))
        });
        match made {
            Ok((file, rows)) => Ok(SegmentWriter { file, segment, rows, durability }),
            Err(error) => {
                self.lock().under_way.remove(&segment);
                Err(error)
            }
        }
    }

    /// Performs the next step: write, sync, rename, sync of the folder. Returns the pages after the last step; after
    /// an error nothing is left to do.
    pub fn step(
        &self,
        writing: &mut SegmentWriter<D::File>,
        pages: &[NewPage],
    ) -> io::Result<Option<Vec<PageFacts>>> {
        let segment = writing.segment;
        let done = writing.file.step(&self.disk, &self.settings, segment, (pages, &writing.rows));
        if let Ok(false) = done {
            return Ok(None);
        }
        let mut state = self.lock();
        state.under_way.remove(&segment);
        done?;
        let kind = match writing.durability {
            Durability::Durable => FileKind::Durable,
            Durability::Transient => FileKind::Transient,
        };
        let rows = std::mem::take(&mut writing.rows);
        let facts = rows.iter().map(|row| row.facts).collect();
        state.segments.insert(segment, Segment::new(kind, rows.into_iter().map(Some).collect()));
        Ok(Some(facts))
    }

    /// Reads a page and verifies every entry; damage is returned along with the entries that verify.
    pub fn read(&self, page: PageRef) -> Result<Page, PageError> {
        let (row, bytes) = self.bytes(page)?;
        let read = page::decode(&bytes, &row, self.settings.seal);
        match read.damage.is_some() {
            // What was discarded meanwhile may have been given back.
            true => drop(self.place(page)?),
            false => self.keep(page, bytes),
        }
        Ok(read)
    }

    /// Reads the LSNs of the entries that [`Segments::read`] would return.
    pub fn read_lsns(&self, page: PageRef) -> Result<Page<Lsn>, PageError> {
        let (row, bytes) = self.bytes(page)?;
        Ok(page::decode_lsns(&bytes, &row, self.settings.seal))
    }

    /// The name of the file that holds or held a page.
    #[must_use]
    pub fn file_name(&self, page: PageRef) -> String {
        let state = self.lock();
        let kind = state.segments.get(&page.segment()).map_or(FileKind::Durable, |segment| segment.kind);
        file::name(page.segment(), kind)
    }

    /// Marks a page as no longer needed; the file is removed with its last page.
    ///
    /// After an error the file still exists and the segment is listed without pages, so the next opening removes it.
    /// Discarding a page twice is harmless.
    pub fn discard(&self, page: PageRef) -> io::Result<()> {
        let mut state = self.lock();
        state.pages.remove(page);
        let Some(segment) = state.segments.get_mut(&page.segment()) else { return Ok(()) };
        segment.discard(page.index());
        let is_gone = segment.is_gone() || self.settings.seal.planted.has(Fault::RemoveWithFirstPage);
        // A damaged segment stays listed, or its pages would be found again.
        if !is_gone || segment.kind == FileKind::Damaged {
            return Ok(());
        }
        let Some(segment) = state.segments.remove(&page.segment()) else { return Ok(()) };
        // Its space is free once nobody has the file open, and closing it may take a while.
        let _file = state.files.remove(page.segment());
        drop(state);
        let removed = self.disk.remove(&file::name(page.segment(), segment.kind));
        if removed.is_err() {
            self.lock().segments.insert(page.segment(), segment);
        }
        removed
    }

    /// Punches holes over discarded pages in files that are still needed, and returns the bytes freed. Unlike
    /// compaction this needs no space; a file system without holes is left as it is.
    ///
    /// Later readers find zeros there, so only pages that a durable checkpoint lists as gone may be discarded.
    pub fn punch_holes(&self) -> io::Result<u64> {
        let mut parts_of = Vec::new();
        for (number, segment) in &mut self.lock().segments {
            let parts = segment.unneeded(self.settings.seal.planted);
            if !parts.is_empty() {
                parts_of.push((file::name(*number, segment.kind), parts));
            }
        }
        let mut bytes = 0;
        for (name, parts) in parts_of {
            let file = match self.disk.open(&name) {
                // Its last page was discarded meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file?,
            };
            let end = file.size()?;
            for part in parts {
                let part = part.start..part.end.min(end);
                if part.start < part.end {
                    let len = part.end - part.start;
                    match file.punch_holes(part)? {
                        true => bytes += len,
                        false => return Ok(bytes),
                    }
                }
            }
        }
        Ok(bytes)
    }

    /// The manifest of all durable segments and their gone pages.
    #[must_use]
    pub fn manifest(&self) -> Manifest {
        let state = self.lock();
        let under_way = match self.settings.seal.planted.has(Fault::ManifestSkipsUnderWay) {
            true => None,
            false => state.under_way.first().copied(),
        };
        // A segment being written is not listed, so it must not count as older than this manifest.
        let next_segment = under_way.unwrap_or(state.next);
        let durable = state.segments.iter().filter(|(_, segment)| segment.kind != FileKind::Transient);
        let segments = durable.map(|(number, segment)| segment.manifest(*number)).collect();
        Manifest { next_segment, segments, damage: None }
    }

    fn lock(&self) -> MutexGuard<'_, State<D::File>> {
        self.state.lock().expect("nothing panics while it holds the state")
    }

    fn next(&self) -> io::Result<u32> {
        let mut state = self.lock();
        let segment = state.next;
        let Some(next) = segment.checked_add(1) else {
            return Err(io::Error::other("the numbers of segments are used up; drain into a new store"));
        };
        state.next = next;
        state.under_way.insert(segment);
        Ok(segment)
    }

    fn bytes(&self, page: PageRef) -> Result<(Row, Bytes), PageError> {
        let (row, name) = self.place(page)?;
        if let Some(bytes) = self.lock().pages.get(page) {
            return Ok((row, bytes));
        }
        let read = || {
            let file = self.file(page.segment(), &name)?;
            inspect::read(&*file, row.offset, usize::try_from(row.len).map_err(io::Error::other)?)
        };
        let read = read().map(|bytes| (row, Bytes::from(bytes)));
        read.map_err(|error| match (error.kind(), self.place(page)) {
            // It was discarded after its place was inspection up.
            (io::ErrorKind::NotFound, Err(gone)) => gone,
            _ => PageError::Disk(error),
        })
    }

    /// The file of a segment, which stays open for the next reader if the segment is still there.
    fn file(&self, segment: u32, name: &str) -> io::Result<Arc<D::File>> {
        if let Some(file) = self.lock().files.get(segment) {
            return Ok(file);
        }
        let opened = self.disk.open(name).or_else(|error| match disk::is_out_of_descriptors(&error) {
            true => {
                // Those that are open are for speed alone.
                drop(self.lock().files.clear());
                self.disk.open(name)
            }
            false => Err(error),
        });
        let file = Arc::new(opened?);
        let mut state = self.lock();
        if state.segments.contains_key(&segment) {
            state.files.insert(segment, Arc::clone(&file), 1);
        }
        Ok(file)
    }

    /// Keeps a page that verified for the next reader, if it is still needed.
    fn keep(&self, page: PageRef, bytes: Bytes) {
        let mut state = self.lock();
        let is_needed = state.segments.get(&page.segment()).is_some_and(|of| of.row(page.index()).is_some());
        if is_needed && bytes.len() <= PAGE_CACHE_PAGE_BYTES_MAX {
            let weight = bytes.len();
            state.pages.insert(page, bytes, weight);
        }
    }

    fn place(&self, page: PageRef) -> Result<(Row, String), PageError> {
        let state = self.lock();
        let segment = state.segments.get(&page.segment()).ok_or(PageError::Gone(page))?;
        let row = segment.row(page.index()).ok_or(PageError::Gone(page))?;
        Ok((*row, file::name(page.segment(), segment.kind)))
    }
}

#[cfg(test)]
mod tests;
