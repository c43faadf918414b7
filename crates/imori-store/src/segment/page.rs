//! A page: its row, then its entries.
//!
//! An entry is `len u32, payload sum u32, sequence u64, lsn u64, sum u32` and the payload, little endian and aligned
//! to 8 bytes. The sum covers the fields before it, the page and the offset, so that an entry verifies nowhere else.
//! A damaged entry does not affect others: the next one is searched for at every multiple of 8.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;

use crate::limits::{PAGE_ALIGN_BYTES, REPORTED_RANGES_MAX};
use crate::lsn::{self, Lsn, LsnRange};
use crate::planted::Fault;
use crate::seal::Seal;

use super::row::{PageRef, PageTimes, ROW_BYTES, Row, RowPlacement, SubjectDigest};

const HEAD_BYTES: usize = 28;
const SUM_AT: usize = HEAD_BYTES - 4;
const ALIGN_BYTES: usize = 8;

/// One entry of a page: a message's record. The payload is not interpreted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageEntry {
    /// Number of the record.
    pub lsn: Lsn,
    /// Position in the order of the queue.
    pub sequence: u64,
    /// Payload of the record. After a read it shares the memory of the whole page.
    pub payload: Bytes,
}

/// A page to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPage {
    /// Owner of the entries: a durable queue, or a queue of this run in a transient segment.
    pub owner: u64,
    /// Priority of the entries.
    pub level: u8,
    /// The lowest and the highest time of the entries.
    pub times: PageTimes,
    /// A digest of the subjects.
    pub subjects: SubjectDigest,
    /// The entries, at least one.
    pub entries: Vec<PageEntry>,
}

/// A page after reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T = PageEntry> {
    /// Entries that verify, in the order written.
    pub entries: Vec<T>,
    /// The damage, if there is any.
    pub damage: Option<PageDamage>,
}

/// The damage of one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageDamage {
    /// The page.
    pub page: PageRef,
    /// Number of lost entries; 0 if only the copy of the row is damaged.
    pub lost: u32,
    /// Ranges that contain the LSNs of the lost entries; wider than the loss if a lost LSN is unknown.
    pub lsns: Vec<LsnRange>,
}

impl fmt::Display for PageDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lost {
            0 => f.write_str("no entry is lost")?,
            1 => f.write_str("1 entry is lost")?,
            lost => write!(f, "{lost} entries are lost")?,
        }
        for (at, range) in self.lsns.iter().take(REPORTED_RANGES_MAX).enumerate() {
            write!(f, "{} {range}", if at == 0 { ", among numbers" } else { "," })?;
        }
        match self.lsns.len().saturating_sub(REPORTED_RANGES_MAX) {
            0 => Ok(()),
            more => write!(f, " and {more} more ranges"),
        }
    }
}

/// Encoded length, in bytes, of an entry with a payload of `len` bytes.
#[must_use]
pub fn entry_bytes(len: usize) -> usize {
    (HEAD_BYTES + len).next_multiple_of(ALIGN_BYTES)
}

impl NewPage {
    /// Bytes of the page in a segment, including the alignment of the next page.
    #[must_use]
    pub fn encoded_bytes(&self) -> u64 {
        page_bytes(&self.entries).next_multiple_of(PAGE_ALIGN_BYTES as u64)
    }
}

/// Length of a page in bytes, without the alignment of the next one.
pub(crate) fn page_bytes(entries: &[PageEntry]) -> u64 {
    ROW_BYTES as u64 + entries.iter().map(|entry| entry_bytes(entry.payload.len()) as u64).sum::<u64>()
}

/// Encodes a page piece by piece, without the alignment of the next one.
pub fn encode<E>(
    entries: &[PageEntry],
    row: &Row,
    seal: Seal,
    mut push: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    push(&row.encode(seal, RowPlacement::Page))?;
    let mut at = ROW_BYTES;
    for entry in entries {
        let len = u32::try_from(entry.payload.len()).expect("a segment has a limit");
        let mut head = [0; HEAD_BYTES];
        head[..4].copy_from_slice(&len.to_le_bytes());
        head[4..8].copy_from_slice(&payload_sum(seal, &entry.payload).to_le_bytes());
        head[8..16].copy_from_slice(&entry.sequence.to_le_bytes());
        head[16..SUM_AT].copy_from_slice(&entry.lsn.0.to_le_bytes());
        let sum = head_sum(seal, row.facts.page, at, &head[..SUM_AT]);
        head[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
        push(&head)?;
        push(&entry.payload)?;
        let end = at + HEAD_BYTES + entry.payload.len();
        at += entry_bytes(entry.payload.len());
        push(&[0; ALIGN_BYTES][..at - end])?;
    }
    Ok(())
}

/// Decodes the page described by `row` from those of its `bytes` that exist.
#[must_use]
pub fn decode(bytes: &Bytes, row: &Row, seal: Seal) -> Page {
    let mut entries = Vec::with_capacity(row.capacity(bytes.len()));
    let damage = walk(bytes, row, seal, |head, payload| {
        entries.push(PageEntry { lsn: head.lsn, sequence: head.sequence, payload: bytes.slice(payload) });
    });
    Page { entries, damage }
}

/// Decodes the LSNs of all entries that verify completely.
pub(crate) fn decode_lsns(bytes: &[u8], row: &Row, seal: Seal) -> Page<Lsn> {
    let mut entries = Vec::with_capacity(row.capacity(bytes.len()));
    let damage = walk(bytes, row, seal, |head, _| entries.push(head.lsn));
    Page { entries, damage }
}

/// An entry and its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryLocation<'a> {
    /// Number of the record.
    pub lsn: Lsn,
    /// Position in the order of the queue.
    pub sequence: u64,
    /// Payload of the record.
    pub payload: &'a [u8],
}

/// Decodes a page with the offset of each entry.
pub(crate) fn places<'a>(
    bytes: &'a [u8],
    row: &Row,
    seal: Seal,
) -> (Vec<(usize, EntryLocation<'a>)>, Option<PageDamage>) {
    let mut entries = Vec::with_capacity(row.capacity(bytes.len()));
    let damage = walk(bytes, row, seal, |head, place| {
        let at = place.start.saturating_sub(HEAD_BYTES);
        let payload = bytes.get(place).unwrap_or_default();
        entries.push((at, EntryLocation { lsn: head.lsn, sequence: head.sequence, payload }));
    });
    (entries, damage)
}

impl Row {
    /// Expected number of entries, bounded by what `bytes` bytes can hold.
    fn capacity(&self, bytes: usize) -> usize {
        bytes.div_ceil(HEAD_BYTES).min(self.facts.count as usize)
    }
}

struct EntryHeader {
    lsn: Lsn,
    sequence: u64,
    payload_sum: u32,
    payload: Range<usize>,
}

/// Calls `found` for every entry that verifies, and returns the damage.
fn walk(
    bytes: &[u8],
    row: &Row,
    seal: Seal,
    mut found: impl FnMut(&EntryHeader, Range<usize>),
) -> Option<PageDamage> {
    let (page, count) = (row.facts.page, row.facts.count);
    let (mut at, mut verified, mut last) = (ROW_BYTES, 0, None);
    let mut lost = Lost::default();
    while verified + lost.known < count && at < bytes.len() {
        let Some(head) = head(bytes, at, page, seal) else {
            if seal.planted.has(Fault::PageEndsAtDamage) {
                break;
            }
            lost.begin(last);
            at += ALIGN_BYTES;
            continue;
        };
        lost.end(Some(head.lsn));
        last = Some(head.lsn);
        let payload = bytes.get(head.payload.clone()).unwrap_or_default();
        match head.payload_sum == payload_sum(seal, payload) {
            true => {
                found(&head, head.payload.clone());
                verified += 1;
            }
            false => lost.one(head.lsn),
        }
        at += entry_bytes(payload.len());
    }
    if verified + lost.known < count {
        lost.begin(last);
    }
    lost.end(None);
    // The row's copy is not needed here, but it would be if the table were damaged later.
    let has_row = Row::decode(bytes, seal, RowPlacement::Page).as_ref() == Some(row);
    let is_damaged = verified < count || !has_row;
    is_damaged.then(|| PageDamage { page, lost: count - verified, lsns: lost.lsns(row) })
}

/// Decodes the entry header at this offset, if it verifies.
fn head(bytes: &[u8], at: usize, page: PageRef, seal: Seal) -> Option<EntryHeader> {
    let head = bytes.get(at..)?.first_chunk::<HEAD_BYTES>()?;
    let (covered, sum) = head.split_at(SUM_AT);
    if u32::from_le_bytes(*sum.first_chunk()?) != head_sum(seal, page, at, covered) {
        return None;
    }
    let (len, rest) = covered.split_first_chunk::<4>()?;
    let (payload_sum, rest) = rest.split_first_chunk::<4>()?;
    let (sequence, rest) = rest.split_first_chunk::<8>()?;
    let (lsn, _) = rest.split_first_chunk::<8>()?;
    let begin = at + HEAD_BYTES;
    // In a truncated file the payload is shorter and fails its checksum.
    let end = begin.saturating_add(u32::from_le_bytes(*len) as usize).min(bytes.len());
    let (lsn, sequence) = (Lsn(u64::from_le_bytes(*lsn)), u64::from_le_bytes(*sequence));
    Some(EntryHeader { lsn, sequence, payload_sum: u32::from_le_bytes(*payload_sum), payload: begin..end })
}

fn head_sum(seal: Seal, page: PageRef, at: usize, covered: &[u8]) -> u32 {
    let covered = match seal.planted.has(Fault::EntryWithoutLsn) {
        true => covered.get(..16).unwrap_or_default(),
        false => covered,
    };
    if seal.planted.has(Fault::EntryWithoutPlace) {
        return seal.sum(&[covered]);
    }
    let (segment, index) = (page.segment().to_le_bytes(), page.index().to_le_bytes());
    seal.sum(&[&segment, &index, &(at as u64).to_le_bytes(), covered])
}

fn payload_sum(seal: Seal, payload: &[u8]) -> u32 {
    match seal.planted.has(Fault::EntryWithoutPayload) {
        true => 0,
        false => seal.sum(&[payload]),
    }
}

/// Collects lost LSNs: of entries with a known header, and of gaps without one.
#[derive(Default)]
struct Lost {
    /// Entries whose header verifies but not their payload.
    known: u32,
    exact: Vec<LsnRange>,
    /// The LSNs before and after each gap without a verified header.
    gaps: Vec<(Option<Lsn>, Option<Lsn>)>,
    open: Option<Option<Lsn>>,
}

impl Lost {
    fn one(&mut self, lsn: Lsn) {
        self.known += 1;
        self.exact.push(LsnRange::one(lsn));
    }

    fn begin(&mut self, before: Option<Lsn>) {
        self.open.get_or_insert(before);
    }

    fn end(&mut self, behind: Option<Lsn>) {
        if let Some(before) = self.open.take() {
            self.gaps.push((before, behind));
        }
    }

    fn lsns(self, row: &Row) -> Vec<LsnRange> {
        let facts = &row.facts;
        let gaps = self.gaps.into_iter().map(|(before, behind)| match row.rises {
            true => LsnRange {
                first: before.map_or(facts.first, Lsn::next),
                last: behind.map_or(facts.last, |behind| Lsn(behind.0.saturating_sub(1))),
            },
            false => LsnRange { first: facts.first, last: facts.last },
        });
        let all = self.exact.into_iter().chain(gaps.filter(|range| range.first <= range.last)).collect();
        lsn::join(all)
    }
}

#[cfg(test)]
mod tests;
