//! Inspects a segment's file: reads its table, and its pages only if the table is damaged.

use std::io;

use crate::disk::{self, Disk, DiskFile};
use crate::limits::{PAGE_ALIGN_BYTES, SEGMENT_HEAD_BYTES, SEGMENT_PAGES_MAX};
use crate::lsn::Lsn;
use crate::planted::Fault;

use super::file::{self, FileKind};
use super::header::{HEADER_BYTES, SegmentHeader, SegmentHeaderError};
use super::open_error::SegmentOpenError;
use super::page::{self, PageDamage};
use super::report::{DamagedPage, DamagedSegment};
use super::row::{PageRef, ROW_BYTES, Row, RowPlacement};
use super::segment::Rows;
use super::settings::SegmentSettings;
use crate::manifest::ManifestEntry;

/// The findings in one file.
#[derive(Debug)]
pub(super) struct TableInspection {
    /// Rows by index; `None` where neither row of a page verifies, or the page is gone. Of a whole segment they are
    /// [left on disk](TableInspection::leave_rows).
    pub(super) rows: Vec<Option<Row>>,
    /// Number of rows that are left on disk.
    left: Option<u16>,
    /// The highest number of a record in any page.
    pub(super) last: Option<Lsn>,
    lost: Vec<u32>,
    /// Damage inside pages, with each page's owner; known only if the whole file was read.
    hurt: Vec<(u64, PageDamage)>,
    pub(super) is_whole: bool,
    has_lost_count: bool,
}

impl TableInspection {
    fn new(header: Option<SegmentHeader>, rows: Vec<Option<Row>>, is_whole: bool) -> TableInspection {
        let lost = (0..).zip(&rows).filter(|(_, row)| row.is_none()).map(|(index, _)| index).collect();
        let has_lost_count = header.is_none() && rows.iter().all(Option::is_none);
        let last = rows.iter().flatten().map(|row| row.facts.last).max();
        TableInspection { rows, left: None, last, lost, hurt: Vec::new(), is_whole, has_lost_count }
    }

    /// Forgets the rows of a segment whose table verifies: they can be read again.
    pub(super) fn leave_rows(self) -> TableInspection {
        match u16::try_from(self.rows.len()) {
            Ok(count) if self.is_whole => TableInspection { rows: Vec::new(), left: Some(count), ..self },
            _ => self,
        }
    }

    /// The rows, or how many are left on disk.
    pub(super) fn into_rows(self) -> Rows {
        self.left.map_or(Rows::Found(self.rows), Rows::InTable)
    }

    /// Applies the manifest: how many pages there were, and which are no longer needed.
    pub(super) fn know(&mut self, listed: &ManifestEntry) {
        if self.left.is_some() {
            return;
        }
        self.rows.resize(self.rows.len().max(listed.page_count as usize), None);
        self.has_lost_count = false;
        let lost = (0..).zip(&self.rows).filter(|(_, row)| row.is_none()).map(|(index, _)| index);
        self.lost = lost.filter(|index| listed.gone.binary_search(index).is_err()).collect();
    }

    pub(super) fn discard(&mut self, index: u32) {
        self.lost.retain(|lost| *lost != index);
        self.hurt.retain(|(_, damage)| damage.page.index() != index);
        if let Some(row) = usize::try_from(index).ok().and_then(|index| self.rows.get_mut(index)) {
            *row = None;
        }
    }

    pub(super) fn report(&self, name: &str) -> DamagedSegment {
        let page_count = u32::try_from(self.rows.iter().flatten().count()).expect("the limit of pages fits");
        let is_known = file::parse_name(name).is_some_and(|(_, kind)| kind == FileKind::Damaged);
        let (lost, has_lost_count) = (self.lost.clone(), self.has_lost_count);
        DamagedSegment { name: name.to_string(), is_known, page_count, lost, has_lost_count }
    }

    pub(super) fn damaged_pages(&mut self, name: &str) -> Vec<DamagedPage> {
        let hurt = std::mem::take(&mut self.hurt).into_iter();
        let page = |(owner, damage)| DamagedPage {
            name: name.to_string(),
            owner,
            owner_name: None,
            is_gone: false,
            damage,
        };
        hurt.map(page).collect()
    }
}

pub(super) fn inspect<D: Disk>(
    disk: &D,
    settings: &SegmentSettings,
    segment: u32,
    name: &str,
) -> Result<TableInspection, SegmentOpenError> {
    let file = disk.open(name)?;
    let mut head = read(&file, 0, SEGMENT_HEAD_BYTES)?;
    let header = header(&head, settings, segment, name)?;
    let table_end = file::table_end(header.map_or(SEGMENT_PAGES_MAX, |header| header.page_count as usize));
    if table_end > head.len() {
        head = read(&file, 0, table_end)?;
    }
    let mut rows = table(&head, settings, segment, header.map(|header| header.page_count));
    let is_long_enough = match header {
        Some(header) => file.size()? >= header.file_bytes,
        None => false,
    };
    let is_whole = is_long_enough && rows.iter().all(Option::is_some);
    let mut hurt = Vec::new();
    if !is_whole && !settings.seal.planted.has(Fault::TableNotSalvaged) {
        let bytes = disk::read_all(&file)?;
        salvage(&bytes, settings, segment, &mut rows);
        hurt = hurt_in(&bytes, settings, &rows);
    }
    Ok(TableInspection { hurt, ..TableInspection::new(header, rows, is_whole) })
}

/// Searches a segment whose table does not verify for the copies of its rows; some may be missing.
pub(super) fn find_rows(
    file: &impl DiskFile,
    settings: &SegmentSettings,
    segment: u32,
    page_count: u16,
) -> io::Result<Vec<Option<Row>>> {
    let bytes = disk::read_all(file)?;
    let head = bytes.get(..file::table_end(usize::from(page_count))).unwrap_or(&bytes);
    let mut rows = table(head, settings, segment, Some(u32::from(page_count)));
    if !settings.seal.planted.has(Fault::TableNotSalvaged) {
        salvage(&bytes, settings, segment, &mut rows);
    }
    rows.truncate(usize::from(page_count));
    Ok(rows)
}

/// The damage inside of pages of a file that was read whole.
fn hurt_in(bytes: &[u8], settings: &SegmentSettings, rows: &[Option<Row>]) -> Vec<(u64, PageDamage)> {
    let damage = |row: &Row| {
        let damage = page::decode_lsns(bytes_of(bytes, row), row, settings.seal).damage;
        damage.filter(|damage| damage.lost > 0).map(|damage| (row.facts.owner, damage))
    };
    rows.iter().flatten().filter_map(damage).collect()
}

/// The part of a page's bytes that exists.
pub(super) fn bytes_of<'a>(bytes: &'a [u8], row: &Row) -> &'a [u8] {
    let place = |at| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    bytes.get(place(row.offset)..place(row.end())).unwrap_or_default()
}

/// Inspects all bytes of a file.
pub(super) fn inspect_bytes(
    bytes: &[u8],
    settings: &SegmentSettings,
    segment: u32,
    name: &str,
) -> Result<TableInspection, SegmentOpenError> {
    let header = header(bytes, settings, segment, name)?;
    let table_end = file::table_end(header.map_or(SEGMENT_PAGES_MAX, |header| header.page_count as usize));
    let head = bytes.get(..table_end).unwrap_or(bytes);
    let mut rows = table(head, settings, segment, header.map(|header| header.page_count));
    let is_long_enough = header.is_some_and(|header| bytes.len() as u64 >= header.file_bytes);
    let is_whole = is_long_enough && rows.iter().all(Option::is_some);
    if !is_whole {
        salvage(bytes, settings, segment, &mut rows);
    }
    Ok(TableInspection::new(header, rows, is_whole))
}

/// The header of a segment, if it verifies.
fn header(
    head: &[u8],
    settings: &SegmentSettings,
    segment: u32,
    name: &str,
) -> Result<Option<SegmentHeader>, SegmentOpenError> {
    match SegmentHeader::decode(head) {
        Ok(header) if header.store != settings.store => {
            Err(SegmentOpenError::Foreign { name: name.to_string() })
        }
        Err(SegmentHeaderError::Version(version)) => {
            Err(SegmentOpenError::Version { name: name.to_string(), version })
        }
        // The header of another segment says nothing about this one.
        header => Ok(header.ok().filter(|header| header.segment == segment)),
    }
}

/// The rows of the table that verify. The number of rows comes from the header or from a row.
fn table(head: &[u8], settings: &SegmentSettings, segment: u32, count: Option<u32>) -> Vec<Option<Row>> {
    let places = head.get(HEADER_BYTES..).unwrap_or_default().chunks_exact(ROW_BYTES);
    let row = |(index, bytes): (u32, &[u8])| {
        let row = Row::decode(bytes, settings.seal, RowPlacement::Table);
        row.filter(|row| row.facts.page == PageRef::new(segment, index))
    };
    let mut rows: Vec<Option<Row>> = (0..).zip(places).map(row).collect();
    let said = rows.iter().flatten().map(|row| u32::from(row.page_count)).next();
    rows.resize(count.or(said).unwrap_or(0) as usize, None);
    rows
}

/// Searches for pages whose row in the table does not verify.
fn salvage(bytes: &[u8], settings: &SegmentSettings, segment: u32, rows: &mut Vec<Option<Row>>) {
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= ROW_BYTES) {
        let row = Row::decode(rest, settings.seal, RowPlacement::Page);
        let row = row.filter(|row| row.facts.page.segment() == segment && row.offset == at as u64);
        at += PAGE_ALIGN_BYTES;
        let Some(row) = row else { continue };
        rows.resize(rows.len().max(usize::from(row.page_count)), None);
        if let Some(place) = rows.get_mut(row.facts.page.index() as usize) {
            place.get_or_insert(row);
        }
        at = at.max((row.end() as usize).next_multiple_of(PAGE_ALIGN_BYTES));
    }
}

/// Reads `len` bytes, or fewer at the end of the file.
pub(crate) fn read(file: &impl DiskFile, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    let read = disk::read_up_to(file, &mut bytes, offset)?;
    bytes.truncate(read);
    Ok(bytes)
}
