//! Which segments a folder holds: reads the tables, and the pages only where a table is damaged.
//!
//! A segment with damage in front of its pages is set aside by its name alone and is served from there:
//! its pages keep their places, so that what a checkpoint knows of them stays true, and nothing that
//! can be cut off is written.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::time::Instant;

use crate::disk::{self, Disk, DiskFile};
use crate::limits::{PAGE_ALIGN_BYTES, SEGMENT_HEAD_BYTES, SEGMENT_PAGES_MAX};
use crate::planted::Fault;
use crate::settings::OnDamage;

use super::census::{Census, SegmentCensus};
use super::file::{self, FileKind};
use super::header::{HEADER_BYTES, SegmentHeader, SegmentHeaderError};
use super::page::{self, PageDamage};
use super::report::{AbsentSegment, DamagedPage, DamagedSegment, SegmentReport};
use super::row::{PageRef, Place, ROW_BYTES, Row};
use super::segment::Segment;
use super::settings::SegmentSettings;

/// Why segments cannot be opened.
#[derive(Debug)]
pub enum SegmentOpenError {
    /// The disk does not let us.
    Disk(io::Error),
    /// A file verifies and is of another store.
    Foreign {
        /// The file.
        name: String,
    },
    /// A file is of a version that is not known here.
    Version {
        /// The file.
        name: String,
        /// Its version.
        version: u32,
    },
    /// There is damage, or a segment is missing, and the settings say that it is not to be opened then. Nothing was changed.
    Damaged(Box<SegmentReport>),
}

impl SegmentOpenError {
    /// The same, which says what the owners of damaged pages are called, as far as that is known.
    #[must_use]
    pub fn naming_owners(mut self, name: impl Fn(u64) -> Option<String>) -> SegmentOpenError {
        if let SegmentOpenError::Damaged(report) = &mut self {
            report.name_owners(name);
        }
        self
    }
}

impl fmt::Display for SegmentOpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SegmentOpenError::Disk(error) => {
                write!(f, "the segments cannot be opened: {error}; check the disk")
            }
            SegmentOpenError::Foreign { name } => {
                write!(f, "`{name}` belongs to another store; take it out of the folder")
            }
            SegmentOpenError::Version { name, version } => {
                write!(f, "`{name}` has version `{version}`; open it with the release that wrote it")
            }
            SegmentOpenError::Damaged(report) => {
                write!(
                    f,
                    "segments are damaged or missing; restore the whole folder from a copy, or {}\n{report}",
                    OnDamage::TO_GO_ON
                )
            }
        }
    }
}

impl std::error::Error for SegmentOpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SegmentOpenError::Disk(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for SegmentOpenError {
    fn from(error: io::Error) -> SegmentOpenError {
        SegmentOpenError::Disk(error)
    }
}

/// What a folder holds.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) segments: BTreeMap<u32, Segment>,
    pub(crate) next: u32,
    pub(crate) report: SegmentReport,
}

/// Finds the segments of a folder, and takes away what a crash left and what is gone.
pub(crate) fn find<D: Disk>(
    disk: &D,
    settings: &SegmentSettings,
    census: &Census,
) -> Result<Found, SegmentOpenError> {
    let begin = Instant::now();
    let planted = settings.seal.planted;
    let (segments, mut report) = (BTreeMap::new(), SegmentReport::default());
    let floor = if planted.has(Fault::SegmentNumberUsedTwice) { 0 } else { census.next_segment };
    let mut found = Found { segments, next: floor, report: SegmentReport::default() };
    let (mut removed, mut damaged) = (Vec::new(), Vec::new());
    for name in disk.list()? {
        let Some((number, kind)) = file::parse_name(&name) else { continue };
        found.next = found.next.max(number.saturating_add(1));
        let is_transient = kind == FileKind::Transient && !planted.has(Fault::TransientStays);
        if kind == FileKind::New || is_transient {
            report.unfinished += usize::from(!is_transient);
            report.transient += usize::from(is_transient);
            removed.push(name);
            continue;
        }
        if census.is_gone(number) && !planted.has(Fault::SegmentComesBack) {
            // What was set aside stays until somebody who looked at it removes it.
            if kind != FileKind::Damaged {
                report.gone += 1;
                removed.push(name);
            }
            continue;
        }
        let mut looked = look(disk, settings, number, &name)?;
        if let Some(listed) = census.segment(number) {
            looked.know(listed);
            listed.gone.iter().for_each(|index| looked.discard(*index));
        }
        let kind = if looked.is_whole { kind } else { FileKind::Damaged };
        if !looked.is_whole {
            damaged.push((number, name.clone()));
            report.damaged.push(looked.report(&name));
            report.pages.append(&mut looked.damaged_pages(&name));
        }
        let segment = Segment::new(kind, looked.rows);
        if segment.is_gone() && kind != FileKind::Damaged {
            report.gone += 1;
            removed.push(name);
            continue;
        }
        found.segments.entry(number).or_insert(segment);
    }
    report.segment_count = found.segments.len();
    report.page_count = found.segments.values().map(|segment| segment.facts().count()).sum();
    report.absent = absent(census, |number| found.segments.contains_key(&number));
    report.took = begin.elapsed();
    if report.is_damaged() && settings.on_damage == OnDamage::Refuse {
        return Err(SegmentOpenError::Damaged(Box::new(report)));
    }
    removed.iter().try_for_each(|name| disk.remove(name))?;
    for (number, name) in damaged {
        let aside = file::name(number, FileKind::Damaged);
        if name != aside {
            disk.rename(&name, &aside)?;
        }
    }
    found.report = report;
    Ok(found)
}

/// The segments that a checkpoint needs and that are not there.
pub(super) fn absent(census: &Census, is_there: impl Fn(u32) -> bool) -> Vec<AbsentSegment> {
    let absent = census.needed().filter(|listed| !is_there(listed.segment)).map(|listed| AbsentSegment {
        segment: listed.segment,
        name: file::name(listed.segment, FileKind::Durable),
        page_count: listed.needed_count(),
    });
    absent.collect()
}

/// What was seen in one file.
pub(super) struct Looked {
    /// By index; none where neither row of a page verifies, or where it is gone.
    pub(super) rows: Vec<Option<Row>>,
    lost: Vec<u32>,
    /// What is lost inside of pages, each with whose it is: known only where the file is not whole.
    hurt: Vec<(u64, PageDamage)>,
    pub(super) is_whole: bool,
    has_lost_count: bool,
}

impl Looked {
    fn new(header: Option<SegmentHeader>, rows: Vec<Option<Row>>, is_whole: bool) -> Looked {
        let lost = (0..).zip(&rows).filter(|(_, row)| row.is_none()).map(|(index, _)| index).collect();
        let has_lost_count = header.is_none() && rows.iter().all(Option::is_none);
        Looked { rows, lost, hurt: Vec::new(), is_whole, has_lost_count }
    }

    /// Takes what a checkpoint knows: how many pages there were, and which of them nobody needs.
    pub(super) fn know(&mut self, listed: &SegmentCensus) {
        self.rows.resize(self.rows.len().max(listed.page_count as usize), None);
        self.has_lost_count = false;
        let lost = (0..).zip(&self.rows).filter(|(_, row)| row.is_none()).map(|(index, _)| index);
        self.lost = lost.filter(|index| listed.gone.binary_search(index).is_err()).collect();
    }

    fn discard(&mut self, index: u32) {
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

    fn damaged_pages(&mut self, name: &str) -> Vec<DamagedPage> {
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

pub(super) fn look<D: Disk>(
    disk: &D,
    settings: &SegmentSettings,
    segment: u32,
    name: &str,
) -> Result<Looked, SegmentOpenError> {
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
    Ok(Looked { hurt, ..Looked::new(header, rows, is_whole) })
}

/// What is lost inside of the pages of a file that was read whole.
fn hurt_in(bytes: &[u8], settings: &SegmentSettings, rows: &[Option<Row>]) -> Vec<(u64, PageDamage)> {
    let damage = |row: &Row| {
        let damage = page::decode_lsns(bytes_of(bytes, row), row, settings.seal).damage;
        damage.filter(|damage| damage.lost > 0).map(|damage| (row.facts.owner, damage))
    };
    rows.iter().flatten().filter_map(damage).collect()
}

/// What is there of a page.
pub(super) fn bytes_of<'a>(bytes: &'a [u8], row: &Row) -> &'a [u8] {
    let place = |at| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    bytes.get(place(row.offset)..place(row.end())).unwrap_or_default()
}

/// Looks at all bytes of a file.
pub(super) fn look_at(
    bytes: &[u8],
    settings: &SegmentSettings,
    segment: u32,
    name: &str,
) -> Result<Looked, SegmentOpenError> {
    let header = header(bytes, settings, segment, name)?;
    let table_end = file::table_end(header.map_or(SEGMENT_PAGES_MAX, |header| header.page_count as usize));
    let head = bytes.get(..table_end).unwrap_or(bytes);
    let mut rows = table(head, settings, segment, header.map(|header| header.page_count));
    let is_long_enough = header.is_some_and(|header| bytes.len() as u64 >= header.file_bytes);
    let is_whole = is_long_enough && rows.iter().all(Option::is_some);
    if !is_whole {
        salvage(bytes, settings, segment, &mut rows);
    }
    Ok(Looked::new(header, rows, is_whole))
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
        // Under the name of another segment it says nothing of this one.
        header => Ok(header.ok().filter(|header| header.segment == segment)),
    }
}

/// The rows of the table that verify; as many as the header says, or one of the rows.
fn table(head: &[u8], settings: &SegmentSettings, segment: u32, count: Option<u32>) -> Vec<Option<Row>> {
    let places = head.get(HEADER_BYTES..).unwrap_or_default().chunks_exact(ROW_BYTES);
    let row = |(index, bytes): (u32, &[u8])| {
        let row = Row::decode(bytes, settings.seal, Place::Table);
        row.filter(|row| row.facts.page == PageRef::new(segment, index))
    };
    let mut rows: Vec<Option<Row>> = (0..).zip(places).map(row).collect();
    let said = rows.iter().flatten().map(|row| u32::from(row.page_count)).next();
    rows.resize(count.or(said).unwrap_or(0) as usize, None);
    rows
}

/// Finds pages whose row in the table does not verify.
fn salvage(bytes: &[u8], settings: &SegmentSettings, segment: u32, rows: &mut Vec<Option<Row>>) {
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= ROW_BYTES) {
        let row = Row::decode(rest, settings.seal, Place::Page);
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

/// Reads `len` bytes, or those up to the end of the file.
pub(crate) fn read(file: &impl DiskFile, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    let read = disk::read_up_to(file, &mut bytes, offset)?;
    bytes.truncate(read);
    Ok(bytes)
}
