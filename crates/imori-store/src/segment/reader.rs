//! Reads of pages, by any thread: the row of a page is read when the page is.
//!
//! Files stay open after a read, and rows and pages stay in memory, up to limits. So several cursors on one segment
//! open it once and read a page once. Everything is verified at each read, even if it comes from memory.

use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;

use crate::disk::{self, Disk};
use crate::limits::PAGE_CACHE_PAGE_BYTES_MAX;
use crate::lsn::Lsn;

use super::file;
use super::inspect;
use super::page::{self, Page, PageDamage};
use super::row::{PageFacts, PageRef, ROW_BYTES, Row, RowPlacement};
use super::segments::{Cached, Key, Segments};

/// Why a page cannot be read.
#[derive(Debug)]
pub enum PageError {
    /// The disk returned an error.
    Disk(io::Error),
    /// The page was discarded, or never written.
    Gone(PageRef),
    /// The row of the page does not verify, nor does the copy of it.
    Lost(PageRef),
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PageError::Disk(error) => write!(f, "a page cannot be read: {error}; check the disk"),
            PageError::Gone(page) => {
                write!(f, "page `{}` of segment `{}` is gone", page.index(), page.segment())
            }
            PageError::Lost(page) => {
                let (index, segment) = (page.index(), page.segment());
                write!(
                    f,
                    "damage: no row of page `{index}` of segment `{segment}` verifies; it is lost as a whole"
                )
            }
        }
    }
}

impl std::error::Error for PageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PageError::Disk(error) => Some(error),
            PageError::Gone(_) | PageError::Lost(_) => None,
        }
    }
}

/// Rows of a table that are read at once: a block of the disk, about.
const ROWS_READ: usize = 32;

/// The location of a page, as known before its bytes are read.
struct Place {
    /// The name of its file.
    name: String,
    /// Number of pages in it.
    page_count: u16,
    /// The row, where the segment is damaged and its rows are in memory.
    row: Option<Row>,
}

/// A row, and where it was found.
struct FoundRow {
    row: Row,
    /// The row in the table was damaged since the segment was opened.
    is_copy: bool,
}

impl<D: Disk> Segments<D> {
    /// Reads the facts of all needed pages, by rising segment and index.
    pub fn each_page(&self, mut visit: impl FnMut(&PageFacts)) -> io::Result<()> {
        let numbers: Vec<u32> = self.lock().segments.keys().copied().collect();
        for number in numbers {
            self.rows_of(number)?.iter().for_each(|row| visit(&row.facts));
        }
        Ok(())
    }

    /// Reads the facts of a page.
    pub fn facts(&self, page: PageRef) -> Result<PageFacts, PageError> {
        self.with_file(page, |file, place| self.row(file, page, place)).map(|found| found.row.facts)
    }

    /// Reads a page and verifies every entry; damage is returned beside the entries that verify.
    pub fn read(&self, page: PageRef) -> Result<Page, PageError> {
        let (FoundRow { row, is_copy }, bytes) = self.bytes(page)?;
        let mut read = page::decode(&bytes, &row, self.settings.seal);
        match read.damage.is_some() {
            // The page may have been discarded meanwhile, and its space freed.
            true => drop(self.place(page)?),
            false => self.keep(page, row, bytes),
        }
        if is_copy {
            read.damage.get_or_insert(PageDamage { page, lost: 0, lsns: Vec::new() });
        }
        Ok(read)
    }

    /// Reads the numbers of the entries that [`Segments::read`] would return.
    pub fn read_lsns(&self, page: PageRef) -> Result<Page<Lsn>, PageError> {
        let (found, bytes) = self.bytes(page)?;
        Ok(page::decode_lsns(&bytes, &found.row, self.settings.seal))
    }

    fn bytes(&self, page: PageRef) -> Result<(FoundRow, Bytes), PageError> {
        let place = self.place(page)?;
        if let Some(Cached::Page(row, bytes)) = self.lock().cache.get(Key::Page(page)) {
            return Ok((FoundRow { row, is_copy: false }, bytes));
        }
        self.with_place(page, &place, |file, place| {
            let found = self.row(file, page, place)?;
            let len =
                usize::try_from(found.row.len).map_err(|error| PageError::Disk(io::Error::other(error)))?;
            let bytes = inspect::read(file, found.row.offset, len).map_err(PageError::Disk)?;
            Ok((found, Bytes::from(bytes)))
        })
    }

    fn with_file<T>(
        &self,
        page: PageRef,
        read: impl FnOnce(&D::File, &Place) -> Result<T, PageError>,
    ) -> Result<T, PageError> {
        let place = self.place(page)?;
        self.with_place(page, &place, read)
    }

    /// Opens the file of a page for `read`.
    fn with_place<T>(
        &self,
        page: PageRef,
        place: &Place,
        read: impl FnOnce(&D::File, &Place) -> Result<T, PageError>,
    ) -> Result<T, PageError> {
        let file = self.file(page.segment(), &place.name).map_err(PageError::Disk);
        file.and_then(|file| read(&file, place)).map_err(|error| match error {
            // It was discarded after its place was looked up.
            PageError::Disk(error) if error.kind() == io::ErrorKind::NotFound => {
                self.place(page).err().unwrap_or(PageError::Disk(error))
            }
            PageError::Lost(page) => self.place(page).err().unwrap_or(PageError::Lost(page)),
            error => error,
        })
    }

    /// The row of a page, from the table, or its copy if the table does not verify.
    fn row(&self, file: &D::File, page: PageRef, place: &Place) -> Result<FoundRow, PageError> {
        if let Some(row) = place.row {
            return Ok(FoundRow { row, is_copy: false });
        }
        let (some, within) = (page.index() / ROWS_READ as u32, page.index() as usize % ROWS_READ);
        let key = Key::Rows(page.segment(), some);
        let cached = self.lock().cache.get(key);
        let bytes = match cached {
            Some(Cached::Rows(bytes)) => bytes,
            _ => {
                let first = some as usize * ROWS_READ;
                let count = ROWS_READ.min(usize::from(place.page_count).saturating_sub(first));
                let read = inspect::read(file, file::table_end(first) as u64, count * ROW_BYTES);
                Bytes::from(read.map_err(PageError::Disk)?)
            }
        };
        let row = Row::decode(
            bytes.get(within * ROW_BYTES..).unwrap_or_default(),
            self.settings.seal,
            RowPlacement::Table,
        );
        if let Some(row) = row.filter(|row| row.facts.page == page) {
            let weight = bytes.len();
            self.lock().cache.insert(key, Cached::Rows(bytes), weight);
            return Ok(FoundRow { row, is_copy: false });
        }
        let rows = inspect::find_rows(file, &self.settings, page.segment(), place.page_count);
        let rows = rows.map_err(PageError::Disk)?;
        let row = rows.get(page.index() as usize).copied().flatten();
        if let Some(segment) = self.lock().segments.get_mut(&page.segment()) {
            segment.find_rows(rows);
        }
        row.map(|row| FoundRow { row, is_copy: true }).ok_or(PageError::Lost(page))
    }

    /// The rows of all needed pages of a segment, as [`io::ErrorKind::InvalidData`] where one is lost.
    pub(super) fn rows_of(&self, number: u32) -> io::Result<Vec<Row>> {
        let found = self.lock().segments.get(&number).map(|segment| {
            let needed = (0..u32::from(segment.page_count())).filter(|index| segment.is_needed(*index));
            let rows = needed.map(|index| (index, segment.row(index))).collect::<Vec<_>>();
            (file::name(number, segment.kind), segment.page_count(), rows)
        });
        let Some((name, page_count, needed)) = found else { return Ok(Vec::new()) };
        if needed.iter().all(|(_, row)| row.is_some()) {
            return Ok(needed.into_iter().filter_map(|(_, row)| row).collect());
        }
        let file = self.file(number, &name)?;
        let table = inspect::read(&*file, file::table_end(0) as u64, usize::from(page_count) * ROW_BYTES)?;
        let in_table = |index: u32| {
            let bytes = table.get(index as usize * ROW_BYTES..).unwrap_or_default();
            let row = Row::decode(bytes, self.settings.seal, RowPlacement::Table)?;
            (row.facts.page == PageRef::new(number, index)).then_some(row)
        };
        let lost = |index: &u32| {
            let text = format!("no row of page `{index}` of `{name}` verifies any more; check the disk");
            io::Error::new(io::ErrorKind::InvalidData, text)
        };
        needed.iter().map(|(index, _)| in_table(*index).ok_or_else(|| lost(index))).collect()
    }

    /// The file of a segment, which stays open for the next reader if the segment is still there.
    pub(super) fn file(&self, segment: u32, name: &str) -> io::Result<Arc<D::File>> {
        if let Some(file) = self.lock().files.get(segment) {
            return Ok(file);
        }
        let opened = self.disk.open(name).or_else(|error| match disk::is_out_of_descriptors(&error) {
            true => {
                // The open files only save time, so closing them costs nothing else.
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
    fn keep(&self, page: PageRef, row: Row, bytes: Bytes) {
        let mut state = self.lock();
        let is_needed = state.segments.get(&page.segment()).is_some_and(|of| of.is_needed(page.index()));
        if is_needed && bytes.len() <= PAGE_CACHE_PAGE_BYTES_MAX {
            let weight = bytes.len();
            state.cache.insert(Key::Page(page), Cached::Page(row, bytes), weight);
        }
    }

    fn place(&self, page: PageRef) -> Result<Place, PageError> {
        let state = self.lock();
        let segment = state.segments.get(&page.segment()).ok_or(PageError::Gone(page))?;
        if !segment.is_needed(page.index()) {
            return Err(PageError::Gone(page));
        }
        let (name, page_count) = (file::name(page.segment(), segment.kind), segment.page_count());
        let row = segment.row(page.index());
        // Rows of a damaged segment are in memory, or lost.
        match row.is_none() && segment.has_rows() {
            true => Err(PageError::Lost(page)),
            false => Ok(Place { name, page_count, row }),
        }
    }
}
