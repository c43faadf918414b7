//! What stands in the bytes of one journal file: batches that verify, and single records between them.

use bytes::Bytes;

use crate::batch::{self, BatchError};
use crate::file_header::{FileHeader, HeaderError};
use crate::limits::BLOCK_BYTES;
use crate::lsn::{Lsn, LsnRange};
use crate::planted::Fault;
use crate::record::{self, ALIGN_BYTES, HEADER_BYTES, Record, RecordType, RecordView};
use crate::seal::Seal;

/// What was found in a file.
#[derive(Debug)]
pub(crate) struct FileScan {
    /// What the file says of itself.
    pub(crate) header: Result<FileHeader, HeaderError>,
    /// The use of the file that was looked for, if it is known.
    pub(crate) generation: Option<u32>,
    /// What whole batches account for.
    pub(crate) whole: Vec<LsnRange>,
    /// Their records.
    pub(crate) records: Vec<Record>,
    /// Records that verify in batches that do not.
    pub(crate) salvaged: Vec<Record>,
    /// What batches account for of which the header alone verifies.
    pub(crate) broken: Vec<LsnRange>,
}

/// Reads all of a file's bytes. Without a header it is of the latest use of which there is a batch.
pub(crate) fn scan(bytes: &Bytes, seal: Seal) -> FileScan {
    let header = FileHeader::decode(bytes);
    let generation = match &header {
        Ok(header) => Some(header.generation),
        Err(_) => latest_generation(bytes, seal),
    };
    let (whole, broken) = (Vec::new(), Vec::new());
    let mut scan = FileScan { header, generation, whole, records: Vec::new(), salvaged: Vec::new(), broken };
    let Some(generation) = generation else { return scan };
    let (mut at, mut unverified) = (BLOCK_BYTES, None);
    while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= BLOCK_BYTES) {
        match batch::decode(rest, seal, generation) {
            Ok((header, records)) => {
                scan.whole.push(header.lsns);
                scan.records.extend(own(bytes, &records));
                scan.salvage(bytes, seal, unverified.take().unwrap_or(at)..at);
                at += header.batch_bytes;
                continue;
            }
            Err(BatchError::Records(header)) => scan.broken.push(header.lsns),
            Err(BatchError::Header | BatchError::Generation(_)) => {}
        }
        unverified = unverified.or(Some(at));
        at += BLOCK_BYTES;
    }
    scan.salvage(bytes, seal, unverified.unwrap_or(at)..bytes.len());
    scan
}

impl FileScan {
    /// The lowest and the highest number that it has something to do with.
    pub(crate) fn lowest(&self) -> Option<Lsn> {
        let header = self.header.as_ref().ok().and_then(|header| header.first);
        let ranges = self.whole.iter().chain(&self.broken).map(|range| range.first);
        ranges.chain(self.salvaged.iter().map(|record| record.lsn)).chain(header).min()
    }

    /// Looks for records in a piece in which no batch verifies, and keeps atomic groups that are whole.
    fn salvage(&mut self, bytes: &Bytes, seal: Seal, piece: std::ops::Range<usize>) {
        let Some(generation) = self.generation else { return };
        let mark = generation.to_le_bytes();
        let (mut at, end) = (piece.start, piece.end);
        let mut found = Vec::new();
        while let Some(rest) = bytes.get(at..end).filter(|rest| rest.len() >= HEADER_BYTES) {
            // Most places are none: the generation tells that before a checksum is made.
            let is_candidate = rest.get(10..14) == Some(&mark);
            match is_candidate.then(|| record::decode(rest, seal)) {
                Some(Ok((view, consumed))) => {
                    found.push(view);
                    at += consumed.next_multiple_of(ALIGN_BYTES);
                }
                _ => at += ALIGN_BYTES,
            }
        }
        let found = own(bytes, &found).filter(|record| record.kind != RecordType::Pad).collect();
        self.salvaged.extend(whole_groups(found, seal));
    }
}

fn latest_generation(bytes: &[u8], seal: Seal) -> Option<u32> {
    let blocks = bytes.as_chunks::<BLOCK_BYTES>().0;
    blocks.iter().filter_map(|block| batch::decode_header(block, seal)).map(|header| header.generation).max()
}

fn own(bytes: &Bytes, views: &[RecordView<'_>]) -> impl Iterator<Item = Record> {
    views.iter().map(|view| Record {
        lsn: view.lsn,
        kind: view.kind,
        flags: view.flags,
        payload: bytes.slice_ref(view.payload),
    })
}

/// Leaves out what belongs to a group of which the begin, the end or something between is missing.
fn whole_groups(found: Vec<Record>, seal: Seal) -> Vec<Record> {
    if seal.planted.has(Fault::KeepPartOfGroup) {
        return found;
    }
    let mut kept = Vec::new();
    let mut group: Vec<Record> = Vec::new();
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
