//! The file of a segment: its name, layout and writing.

use std::io;

use crate::disk::{self, Disk, DiskFile};
use crate::limits::{BLOCK_BYTES, PAGE_ALIGN_BYTES, SEGMENT_BYTES_MAX, SEGMENT_PAGES_MAX};
use crate::lsn::Lsn;
use crate::planted::Fault;

use super::header::{HEADER_BYTES, SegmentHeader};
use super::page::{self, NewPage};
use super::row::{PageFacts, PageRef, ROW_BYTES, Row, RowPlacement};
use super::settings::SegmentSettings;

/// Whether a segment has to survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It survives a power cut.
    Durable,
    /// It need not survive; it only relieves memory.
    Transient,
}

/// The kind of a file with the name of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// A complete segment.
    Durable,
    /// A segment that only this run uses.
    Transient,
    /// A segment that was never complete.
    New,
    /// A damaged segment, set aside; pages that verify are served from it.
    Damaged,
}

impl FileKind {
    fn suffix(self) -> &'static str {
        match self {
            FileKind::Durable => "",
            FileKind::Transient => ".transient",
            FileKind::New => ".new",
            FileKind::Damaged => ".damaged",
        }
    }
}

/// The name of a segment's file.
pub(crate) fn name(segment: u32, kind: FileKind) -> String {
    format!("segment-{segment:010}{}", kind.suffix())
}

/// Parses the name of a segment's file into number and kind.
pub(crate) fn parse_name(name: &str) -> Option<(u32, FileKind)> {
    let (digits, suffix) = name.strip_prefix("segment-")?.split_at_checked(10)?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let kinds = [FileKind::Durable, FileKind::Transient, FileKind::New, FileKind::Damaged];
    let kind = kinds.into_iter().find(|kind| kind.suffix() == suffix)?;
    Some((digits.parse().ok()?, kind))
}

/// Computes the location of each page in a segment.
pub(crate) fn layout(segment: u32, pages: &[NewPage]) -> io::Result<Vec<Row>> {
    if pages.is_empty() || pages.iter().any(|page| page.entries.is_empty()) {
        return Err(refusal("a page without entries cannot be written; leave it out"));
    }
    if pages.len() > SEGMENT_PAGES_MAX {
        return Err(refusal("a segment has a limit of 4096 pages; write several"));
    }
    let page_count = u16::try_from(pages.len()).expect("the limit fits");
    let mut offset = table_end(pages.len()).next_multiple_of(BLOCK_BYTES) as u64;
    let mut rows = Vec::with_capacity(pages.len());
    for (index, page) in (0..).zip(pages) {
        let len = page::page_bytes(&page.entries);
        if offset + len > SEGMENT_BYTES_MAX {
            return Err(refusal("a segment has a limit of 512 MiB; write several"));
        }
        let len = u32::try_from(len).expect("the limit fits");
        let facts = facts(page, PageRef::new(segment, index));
        let rises = page.entries.is_sorted_by(|one, next| one.lsn < next.lsn);
        rows.push(Row { facts, page_count, rises, offset, len });
        offset = (offset + u64::from(len)).next_multiple_of(PAGE_ALIGN_BYTES as u64);
    }
    Ok(rows)
}

/// Offset of the end of a table for `page_count` pages.
pub(crate) fn table_end(page_count: usize) -> usize {
    HEADER_BYTES + page_count * ROW_BYTES
}

/// A segment being written, and the steps done so far.
///
/// ```text
/// Made -> Filled -> Synced -> Named -> Done
///            └ a transient one ──────────┘
/// ```
#[derive(Debug)]
pub(crate) struct SegmentFileWriter<F> {
    file: F,
    first: String,
    last: String,
    state: WriterState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriterState {
    Made,
    Filled,
    Synced,
    Named,
    Done,
}

impl<F: DiskFile> SegmentFileWriter<F> {
    /// Creates the file under its temporary name. Here and in every step, a failure removes the file if the
    /// disk allows it.
    pub(crate) fn make<D: Disk<File = F>>(
        disk: &D,
        settings: &SegmentSettings,
        segment: u32,
        durability: Durability,
    ) -> io::Result<SegmentFileWriter<F>> {
        let (first, last) = match durability {
            Durability::Durable => (name(segment, FileKind::New), name(segment, FileKind::Durable)),
            Durability::Transient => (name(segment, FileKind::Transient), name(segment, FileKind::Transient)),
        };
        let made = disk.create(&first).and_then(|file| {
            if first != last && settings.seal.planted.has(Fault::RenameBeforeSync) {
                disk.rename(&first, &last)?;
                disk.sync_folder()?;
            }
            Ok(file)
        });
        match made {
            Ok(file) => Ok(SegmentFileWriter { file, first, last, state: WriterState::Made }),
            Err(error) => {
                clean_up(disk, settings, &first, &last);
                Err(error)
            }
        }
    }

    /// Performs the next step: write all, sync, rename, sync the folder. True when that was the last.
    pub(crate) fn step<D: Disk<File = F>>(
        &mut self,
        disk: &D,
        settings: &SegmentSettings,
        segment: u32,
        (pages, rows): (&[NewPage], &[Row]),
    ) -> io::Result<bool> {
        let planted = settings.seal.planted;
        let is_transient = self.first == self.last;
        let done = match self.state {
            WriterState::Made => fill(&self.file, settings, segment, pages, rows),
            WriterState::Filled if !planted.has(Fault::SegmentWithoutSync) => self.file.sync_data(),
            WriterState::Synced if !planted.has(Fault::RenameBeforeSync) => {
                disk.rename(&self.first, &self.last)
            }
            WriterState::Named if !planted.has(Fault::SegmentWithoutFolderSync) => disk.sync_folder(),
            _ => Ok(()),
        };
        if let Err(error) = done {
            clean_up(disk, settings, &self.first, &self.last);
            return Err(error);
        }
        self.state = match self.state {
            WriterState::Made if is_transient => WriterState::Done,
            WriterState::Made => WriterState::Filled,
            WriterState::Filled => WriterState::Synced,
            WriterState::Synced => WriterState::Named,
            WriterState::Named | WriterState::Done => WriterState::Done,
        };
        Ok(self.state == WriterState::Done)
    }
}

/// Removes the rest of a failed segment; if that fails too, the next opening tries again.
fn clean_up<D: Disk>(disk: &D, settings: &SegmentSettings, first: &str, last: &str) {
    if settings.seal.planted.has(Fault::FailedSegmentStays) {
        return;
    }
    let _ = disk.remove(first);
    if first != last {
        let _ = disk.remove(last);
    }
}

fn fill(
    file: &impl DiskFile,
    settings: &SegmentSettings,
    segment: u32,
    pages: &[NewPage],
    rows: &[Row],
) -> io::Result<()> {
    let mut output = Output { file, buffer: Vec::with_capacity(settings.write_bytes), at: 0, settings };
    let end = rows.last().map_or(0, Row::end).next_multiple_of(BLOCK_BYTES as u64);
    let page_count = u32::try_from(rows.len()).map_err(io::Error::other)?;
    let header = SegmentHeader { store: settings.store, segment, page_count, file_bytes: end };
    output.push(&header.encode())?;
    for row in rows {
        output.push(&row.encode(settings.seal, RowPlacement::Table))?;
    }
    for (page, row) in pages.iter().zip(rows) {
        output.fill(row.offset)?;
        page::encode(&page.entries, row, settings.seal, |piece| output.push(piece))?;
    }
    output.fill(end)?;
    output.flush()
}

/// Buffers output, so that the file is written in few large writes.
struct Output<'a, F> {
    file: &'a F,
    settings: &'a SegmentSettings,
    buffer: Vec<u8>,
    /// Offset of the buffer in the file.
    at: u64,
}

impl<F: DiskFile> Output<'_, F> {
    fn push(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while let Some((now, later)) = bytes.split_at_checked(self.settings.write_bytes - self.buffer.len()) {
            self.buffer.extend_from_slice(now);
            self.flush()?;
            bytes = later;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes zeros up to this offset, which is less than a block away.
    fn fill(&mut self, offset: u64) -> io::Result<()> {
        let missing = offset.saturating_sub(self.at + self.buffer.len() as u64);
        let missing = usize::try_from(missing).map_err(io::Error::other)?;
        self.push([0; BLOCK_BYTES].get(..missing).unwrap_or_default())
    }

    fn flush(&mut self) -> io::Result<()> {
        disk::write_all(self.file, &self.buffer, self.at)?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

fn facts(page: &NewPage, place: PageRef) -> PageFacts {
    let lsns = || page.entries.iter().map(|entry| entry.lsn);
    let sequences = || page.entries.iter().map(|entry| entry.sequence);
    let bytes = page.entries.iter().map(|entry| entry.payload.len()).sum::<usize>();
    PageFacts {
        owner: page.owner,
        level: page.level,
        page: place,
        count: u32::try_from(page.entries.len()).expect("a segment has a limit"),
        bytes: u32::try_from(bytes).expect("a segment has a limit"),
        first_sequence: sequences().min().unwrap_or_default(),
        last_sequence: sequences().max().unwrap_or_default(),
        first: lsns().min().unwrap_or(Lsn(0)),
        last: lsns().max().unwrap_or(Lsn(0)),
        times: page.times,
        subjects: page.subjects,
    }
}

fn refusal(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read() {
        for (text, expected) in [
            ("segment-0000000012", Some((12, FileKind::Durable))),
            ("segment-0000000012.new", Some((12, FileKind::New))),
            ("segment-4294967295.transient", Some((u32::MAX, FileKind::Transient))),
            ("segment-0000000001.damaged", Some((1, FileKind::Damaged))),
            ("segment-0000000001.other", None),
            ("segment-4294967296", None),
            ("segment-+000000012", None),
            ("segment-12", None),
            ("segment-00000000é2", None),
            ("journal-0000000012", None),
        ] {
            assert_eq!(parse_name(text), expected, "{text}");
        }
    }
}
