//! All segments of a store: one thread writes and discards, any thread reads.
//!
//! No lock is held while the disk works. A segment in memory is little more than a bit for each page.
//! Absent: which page to read or write, and compaction. Space between needed pages is given back by holes
//! instead.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;

use crate::disk::{Disk, DiskFile};
use crate::limits::{PAGE_CACHE_BYTES_MAX, SEGMENT_FILES_OPEN_MAX};
use crate::planted::Fault;

use super::file::{self, Durability, FileKind, SegmentFileWriter};
use super::open::{self, FoundSegments};
use super::open_error::SegmentOpenError;
use super::page::NewPage;
use super::report::SegmentReport;
use super::row::{PageFacts, PageRef, Row};
use super::segment::{self, Rows, Segment};
use super::settings::SegmentSettings;
use super::tables::Tables;
use crate::cache::Cache;
use crate::manifest::Manifest;

/// The segments of a store.
#[derive(Debug)]
pub struct Segments<D: Disk> {
    pub(super) disk: D,
    pub(super) settings: SegmentSettings,
    state: Mutex<State<D::File>>,
}

#[derive(Debug)]
pub(super) struct State<F> {
    pub(super) segments: BTreeMap<u32, Segment>,
    next: u32,
    /// Segments being written.
    under_way: BTreeSet<u32>,
    /// Files that stay open, by the numbers of their segments. Each segment is still there.
    pub(super) files: Cache<u32, Arc<F>>,
    pub(super) cache: Cache<Key, Cached>,
}

/// The key of a part of a segment that is kept in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// Some rows of its table, by segment and place in the table.
    Rows(u32, u32),
    /// A page.
    Page(PageRef),
}

#[derive(Debug, Clone)]
pub(super) enum Cached {
    /// The bytes of rows, each of which verifies or not.
    Rows(Bytes),
    /// A page that verified as a whole, with its row.
    Page(Row, Bytes),
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
    /// Unfinished, transient and gone segments are removed. Pages are not read. A record may be in the pages
    /// of two segments, if its write failed or was cut off. The facts of all pages are in memory together:
    /// [`Segments::with_tables`] and [`Segments::each_page`] do without.
    pub fn open(
        disk: D,
        settings: &SegmentSettings,
        manifest: &Manifest,
    ) -> Result<(Segments<D>, Vec<PageFacts>, SegmentReport), SegmentOpenError> {
        let tables = Tables::read(&disk, settings)?;
        let (segments, report) = Segments::with_tables(disk, settings, tables, manifest)?;
        let mut facts = Vec::with_capacity(report.page_count);
        segments.each_page(|page| facts.push(*page))?;
        Ok((segments, facts, report))
    }

    /// Opens segments from tables that were already read.
    pub fn with_tables(
        disk: D,
        settings: &SegmentSettings,
        tables: Tables,
        manifest: &Manifest,
    ) -> Result<(Segments<D>, SegmentReport), SegmentOpenError> {
        let FoundSegments { segments, next, report } = open::find(&disk, settings, tables, manifest)?;
        let (files, cache) = (Cache::new(SEGMENT_FILES_OPEN_MAX), Cache::new(PAGE_CACHE_BYTES_MAX));
        let state = Mutex::new(State { segments, next, under_way: BTreeSet::new(), files, cache });
        Ok((Segments { disk, settings: *settings, state }, report))
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
        let facts: Vec<PageFacts> = rows.iter().map(|row| row.facts).collect();
        let count = u16::try_from(rows.len()).map_err(io::Error::other)?;
        state.segments.insert(segment, Segment::new(kind, Rows::InTable(count), &[]));
        Ok(Some(facts))
    }

    /// The name of the file that holds a page, or held it.
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
        state.cache.remove(Key::Page(page));
        let Some(segment) = state.segments.get_mut(&page.segment()) else { return Ok(()) };
        segment.discard(page.index());
        let is_gone = segment.is_gone() || self.settings.seal.planted.has(Fault::RemoveWithFirstPage);
        // A damaged segment stays listed, or its pages would be found again.
        if !is_gone || segment.kind == FileKind::Damaged {
            return Ok(());
        }
        let Some(segment) = state.segments.remove(&page.segment()) else { return Ok(()) };
        // The space is freed when the last reader closes the file, and closing may take a while.
        let _file = state.files.remove(page.segment());
        state.cache.remove_all(Key::Rows(page.segment(), 0), Key::Rows(page.segment(), u32::MAX));
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
        let mut punched = Vec::new();
        for (number, segment) in &mut self.lock().segments {
            if segment.begin_punching() {
                punched.push((*number, file::name(*number, segment.kind), segment.page_count()));
            }
        }
        let mut bytes = 0;
        for (number, name, page_count) in punched {
            let opened = self.file(number, &name).and_then(|file| Ok((self.rows_of(number)?, file)));
            let (rows, file) = match opened {
                // Its last page was discarded meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                // A damaged file stays unchanged.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => continue,
                opened => opened?,
            };
            let end = file.size()?;
            for part in segment::unneeded(page_count, &rows, self.settings.seal.planted) {
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

    pub(super) fn lock(&self) -> MutexGuard<'_, State<D::File>> {
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

    /// Bytes of memory that segments take besides what is read and kept up to a limit.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> usize {
        let state = self.lock();
        let each = size_of::<(u32, Segment)>();
        // Nodes of a map that grows at its end are half full.
        state.segments.values().map(|segment| 2 * each + segment.memory()).sum()
    }
}

#[cfg(test)]
mod tests;
