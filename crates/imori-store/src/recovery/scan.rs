//! Scans one journal file for batches that verify, and for single records between them.
//!
//! Payloads of messages stay in the file, because they may exceed memory.

use std::io;

use super::window::Window;
use crate::disk::DiskFile;
use crate::limits::BLOCK_BYTES;
use crate::lsn::{Lsn, LsnRange};
use crate::planted::Fault;
use crate::records::batch::{self, BatchError};
use crate::records::record::{self, ALIGN_BYTES, FLAG_IN_GROUP, HEADER_BYTES, RecordType, RecordView};
use crate::records::{FileHeader, HeaderError};
use crate::seal::Seal;

/// The result of scanning a file.
#[derive(Debug)]
pub(crate) struct FileScan {
    /// The header of the file.
    pub(crate) header: Result<FileHeader, HeaderError>,
    /// The generation searched for, if known.
    pub(crate) generation: Option<u32>,
    /// The numbers of whole batches.
    pub(crate) whole: Vec<LsnRange>,
    /// The records of whole batches.
    pub(crate) records: Vec<Scanned>,
    /// Records that verify, from batches that do not.
    pub(crate) salvaged: Vec<Scanned>,
    /// The numbers of batches of which only the header verifies.
    pub(crate) broken: Vec<LsnRange>,
}

/// A record that verifies.
#[derive(Debug, Clone)]
pub(crate) struct Scanned {
    pub(crate) lsn: Lsn,
    pub(crate) kind: RecordType,
    pub(crate) flags: u8,
    /// The offset in the file.
    pub(crate) at: usize,
    /// The payload; empty for messages.
    pub(crate) payload: Box<[u8]>,
}

impl Scanned {
    fn new(view: &RecordView<'_>, at: usize) -> Scanned {
        let payload = if view.kind == RecordType::Message { Box::default() } else { view.payload.into() };
        Scanned { lsn: view.lsn, kind: view.kind, flags: view.flags, at, payload }
    }

    pub(crate) fn is_in_group(&self) -> bool {
        self.flags & FLAG_IN_GROUP != 0
    }

    /// The floor, below which no record is needed, if this is a checkpoint.
    pub(crate) fn floor(&self) -> Option<Lsn> {
        record::floor(self.lsn, self.kind, &self.payload)
    }
}

/// Scans a whole file. Without a header, the latest generation found in a batch is assumed.
pub(crate) fn scan<F: DiskFile>(window: &mut Window<'_, F>, seal: Seal) -> io::Result<FileScan> {
    let header = FileHeader::decode(window.get(0, BLOCK_BYTES)?);
    let generation = match &header {
        Ok(header) => Some(header.generation),
        Err(_) => latest_generation(window, seal)?,
    };
    let (whole, broken) = (Vec::new(), Vec::new());
    let mut scan = FileScan { header, generation, whole, records: Vec::new(), salvaged: Vec::new(), broken };
    let Some(generation) = generation else { return Ok(scan) };
    let (mut at, mut unverified) = (BLOCK_BYTES, None);
    while at + BLOCK_BYTES <= window.size() {
        // Read a whole batch only if a header announces one.
        let announced = batch::decode_header(window.get(at, BLOCK_BYTES)?, seal);
        let bytes = window.get(at, announced.map_or(BLOCK_BYTES, |header| header.batch_bytes))?;
        match batch::decode(bytes, seal, generation) {
            Ok((header, records)) => {
                scan.whole.push(header.lsns);
                let mut record_at = at + batch::HEADER_BYTES;
                for record in &records {
                    scan.records.push(Scanned::new(record, record_at));
                    record_at += record::encoded_bytes(record.payload.len());
                }
                scan.salvage(window, seal, unverified.take().unwrap_or(at)..at)?;
                at += header.batch_bytes;
                continue;
            }
            Err(BatchError::Records(header)) => scan.broken.push(header.lsns),
            Err(BatchError::Header | BatchError::Generation(_)) => {}
        }
        unverified = unverified.or(Some(at));
        at += BLOCK_BYTES;
    }
    let size = window.size();
    scan.salvage(window, seal, unverified.unwrap_or(at)..size)?;
    Ok(scan)
}

impl FileScan {
    /// The result for a skipped file without needed records.
    pub(crate) fn passed_over(header: FileHeader, numbers: LsnRange) -> FileScan {
        FileScan {
            header: Ok(header),
            generation: Some(header.generation),
            whole: vec![numbers],
            records: Vec::new(),
            salvaged: Vec::new(),
            broken: Vec::new(),
        }
    }

    /// The lowest number named by the header, a batch or a record of the file.
    pub(crate) fn lowest(&self) -> Option<Lsn> {
        let header = self.header.as_ref().ok().and_then(|header| header.first);
        let ranges = self.whole.iter().chain(&self.broken).map(|range| range.first);
        ranges.chain(self.salvaged.iter().map(|record| record.lsn)).chain(header).min()
    }

    /// Searches for records where no batch verifies, and keeps only complete atomic groups.
    fn salvage<F: DiskFile>(
        &mut self,
        window: &mut Window<'_, F>,
        seal: Seal,
        piece: std::ops::Range<usize>,
    ) -> io::Result<()> {
        let Some(generation) = self.generation else { return Ok(()) };
        let mark = generation.to_le_bytes();
        let (mut at, end) = (piece.start, piece.end);
        let mut found = Vec::new();
        while at + HEADER_BYTES <= end {
            let bytes = window.get_more(at, HEADER_BYTES)?;
            let bytes = bytes.get(..end - at).unwrap_or(bytes);
            // The generation rules out most positions before a checksum is computed.
            let last = bytes.len().saturating_sub(HEADER_BYTES);
            let mut places = (0..=last).step_by(ALIGN_BYTES);
            let Some(place) = places.find(|place| bytes.get(place + 10..place + 14) == Some(&mark)) else {
                at += (last + 1).next_multiple_of(ALIGN_BYTES);
                continue;
            };
            at += place;
            let announced = bytes.get(place..).and_then(<[u8]>::first_chunk);
            let len = announced.map_or(0, |len| u32::from_le_bytes(*len) as usize);
            let bytes = window.get(at, HEADER_BYTES.saturating_add(len).min(end - at))?;
            match record::decode(bytes, seal) {
                Ok((view, _)) => {
                    found.push(Scanned::new(&view, at));
                    at += record::encoded_bytes(view.payload.len());
                }
                Err(_) => at += ALIGN_BYTES,
            }
        }
        found.retain(|record| record.kind != RecordType::Pad);
        self.salvaged.extend(whole_groups(found, seal));
        Ok(())
    }
}

fn latest_generation<F: DiskFile>(window: &mut Window<'_, F>, seal: Seal) -> io::Result<Option<u32>> {
    let mut latest = None;
    for at in (0..window.size()).step_by(BLOCK_BYTES) {
        let header = batch::decode_header(window.get(at, BLOCK_BYTES)?, seal);
        latest = latest.max(header.map(|header| header.generation));
    }
    Ok(latest)
}

/// Drops records of a group if its begin, its end or a part is missing.
fn whole_groups(found: Vec<Scanned>, seal: Seal) -> Vec<Scanned> {
    if seal.planted.has(Fault::KeepPartOfGroup) {
        return found;
    }
    let mut kept = Vec::new();
    let mut group: Vec<Scanned> = Vec::new();
    for record in found {
        if !record.is_in_group() {
            group.clear();
            kept.push(record);
            continue;
        }
        let is_next = group.last().is_some_and(|last| last.lsn.next() == record.lsn);
        if record.kind == RecordType::GroupBegin || !is_next {
            group.clear();
        }
        if record.kind == RecordType::GroupBegin || !group.is_empty() {
            let is_end = record.kind == RecordType::GroupEnd;
            group.push(record);
            if is_end {
                kept.append(&mut group);
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests;
