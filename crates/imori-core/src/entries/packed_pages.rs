//! Pages at rest: neighbours in a lane, complete on disk, absent from memory, and neither read nor written now. A long
//! queue consists mostly of such pages, so each is packed into a few bytes here.
//!
//! A page is `flags u8` and numbers of seven bits a byte: those of `id, segment, index, start` that do not follow from
//! the page before, `len`, `gaps` if numbers are missing, `body_bytes`, and for a durable page the distance of its first
//! record from the last record of the page before, and how far its records span more or fewer numbers than `len`.

use super::page_part::PagePart;
use super::pages::{Page, PageId, PagePlace};
use crate::confirm::Lsn;

/// Pages that are packed together. A higher number makes each a little smaller, and the search for one slower.
const PAGES_MAX: u32 = 256;

/// The id of the page is one above the id of the page before.
const NEXT_ID: u8 = 1;
/// The page follows the page before in the same segment.
const NEXT_PLACE: u8 = 1 << 1;
/// The first number of the page is one above the last number of the page before.
const NEXT_NUMBER: u8 = 1 << 2;
/// The numbers of the page are consecutive.
const NO_GAPS: u8 = 1 << 3;

/// Pages at rest, in order.
#[derive(Debug)]
pub(crate) struct PackedPages {
    bytes: Vec<u8>,
    count: u32,
    /// The page before the first, and the last page.
    before: Known,
    last: Known,
    /// The number of the first message.
    start: u64,
    /// Bytes that all pages kept in memory.
    memory: usize,
    len: u64,
    is_durable: bool,
    is_doubtful: bool,
    /// The entries were numbered anew since the pages were written.
    is_renumbered: bool,
    priority: u8,
}

/// Facts of a page that the next one is packed or unpacked against.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    id: u32,
    place: (u32, u32),
    /// The number of its last message.
    number: u64,
    /// Its last record.
    lsn: u64,
}

/// Tells whether a page is at rest: the part that waits in the queue is the whole page, and no read is under way.
pub(crate) fn is_at_rest(page: &Page, part: &PagePart) -> bool {
    let is_whole = part.len > 0 && part.first.is_none() && page.len_at_rest() == Some(part.len);
    let is_numbered = page.first_sequence.is_none_or(|first| first == part.start)
        && part.last.checked_sub(part.start).is_some_and(|span| span >= u64::from(part.len) - 1);
    is_whole && is_numbered && !part.is_asked
}

impl PackedPages {
    /// Packs the first page, which is [at rest](is_at_rest).
    pub(crate) fn begin(page: &Page, part: &PagePart) -> PackedPages {
        let mut packed = PackedPages {
            bytes: Vec::new(),
            count: 0,
            before: Known::default(),
            last: Known::default(),
            start: part.start,
            memory: 0,
            len: 0,
            is_durable: page.is_durable,
            is_doubtful: page.is_doubtful,
            is_renumbered: page.first_sequence.is_some(),
            priority: page.priority,
        };
        packed.push(page, part);
        packed
    }

    /// Tells whether a page at rest can be packed behind these.
    pub(crate) fn takes(&self, page: &Page, part: &PagePart) -> bool {
        let is_alike = (self.is_durable, self.is_doubtful, self.is_renumbered, self.priority)
            == (page.is_durable, page.is_doubtful, page.first_sequence.is_some(), page.priority);
        let follows = part.id.number() > self.last.id && part.start > self.last.number;
        self.count < PAGES_MAX && self.count > 0 && is_alike && follows
    }

    /// Packs a page behind these.
    pub(crate) fn push(&mut self, page: &Page, part: &PagePart) {
        let Some(place) = page.place else { return };
        let known = Known {
            id: part.id.number(),
            place: (place.segment, place.index),
            number: part.last,
            lsn: page.records.1.0,
        };
        let before = std::mem::replace(&mut self.last, known);
        let gaps = (part.last - part.start + 1).saturating_sub(u64::from(part.len));
        let flag = |is_so, flag| if is_so { flag } else { 0 };
        let flags = flag(known.id == before.id + 1, NEXT_ID)
            | flag(known.place == (before.place.0, before.place.1 + 1), NEXT_PLACE)
            | flag(part.start == before.number + 1, NEXT_NUMBER)
            | flag(gaps == 0, NO_GAPS);
        let out = &mut self.bytes;
        out.push(flags);
        if flags & NEXT_ID == 0 {
            push(out, u64::from(known.id - before.id));
        }
        if flags & NEXT_PLACE == 0 {
            push_distance(out, u64::from(before.place.0), u64::from(place.segment));
            push(out, u64::from(place.index));
        }
        if flags & NEXT_NUMBER == 0 {
            push(out, part.start - before.number);
        }
        push(out, u64::from(part.len));
        if flags & NO_GAPS == 0 {
            push(out, gaps);
        }
        push(out, part.body_bytes);
        if self.is_durable {
            // The first record of a page can be older than the last one of the page before.
            let first = page.records.0.0;
            push_distance(out, before.lsn + 1, first);
            push_distance(out, u64::from(part.len), known.lsn.wrapping_sub(first).wrapping_add(1));
        }
        self.count += 1;
        if self.count == PAGES_MAX {
            self.bytes.shrink_to_fit();
        }
        self.memory += part.memory;
        self.len += u64::from(part.len);
    }

    /// Number of pages.
    pub(crate) fn count(&self) -> usize {
        self.count as usize
    }

    /// Number of messages in the pages.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The number of the first message.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// The number of the last message.
    pub(crate) fn last(&self) -> u64 {
        self.last.number
    }

    /// Bytes that the pages kept in memory, approximately.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// Tells whether this page may be among them.
    pub(crate) fn may_have(&self, id: PageId) -> bool {
        self.before.id < id.number() && id.number() <= self.last.id
    }

    /// The page with the first message from this number on.
    pub(crate) fn page_from(&self, number: u64) -> Option<PageId> {
        self.iter().find(|(_, part)| part.last >= number).map(|(_, part)| part.id)
    }

    /// The pages, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Page, PagePart)> {
        let (mut bytes, mut before, mut left) = (self.bytes.as_slice(), self.before, self.count);
        let memory = self.memory_of_one();
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            self.read(&mut bytes, &mut before, memory)
        })
    }

    /// Takes the first pages out.
    pub(crate) fn take_front(&mut self, count: usize) -> Vec<(Page, PagePart)> {
        let memory = self.memory_of_one();
        let (mut bytes, mut before, mut taken) = (self.bytes.as_slice(), self.before, Vec::new());
        for _ in 0..count.min(self.count as usize) {
            taken.extend(self.read(&mut bytes, &mut before, memory));
        }
        let read = self.bytes.len() - bytes.len();
        self.bytes.drain(..read);
        self.before = before;
        self.count -= u32::try_from(taken.len()).unwrap_or(self.count).min(self.count);
        self.len -= taken.iter().map(|(_, part)| u64::from(part.len)).sum::<u64>().min(self.len);
        self.memory -= (memory * taken.len()).min(self.memory);
        let start = self.iter().next().map(|(_, part)| part.start);
        self.start = start.unwrap_or(self.last.number);
        taken
    }

    fn memory_of_one(&self) -> usize {
        self.memory / (self.count as usize).max(1)
    }

    fn read(&self, bytes: &mut &[u8], before: &mut Known, memory: usize) -> Option<(Page, PagePart)> {
        let (flags, rest) = bytes.split_first()?;
        *bytes = rest;
        let has = |flag| flags & flag != 0;
        let id = before.id + if has(NEXT_ID) { 1 } else { u32::try_from(number(bytes)?).ok()? };
        let place = match has(NEXT_PLACE) {
            true => (before.place.0, before.place.1 + 1),
            false => {
                let segment = behind(bytes, u64::from(before.place.0))?;
                (u32::try_from(segment).ok()?, u32::try_from(number(bytes)?).ok()?)
            }
        };
        let start = before.number + if has(NEXT_NUMBER) { 1 } else { number(bytes)? };
        let len = u32::try_from(number(bytes)?).ok()?;
        let gaps = if has(NO_GAPS) { 0 } else { number(bytes)? };
        let last = start + u64::from(len) + gaps - 1;
        let body_bytes = number(bytes)?;
        let (lsn, records) = match self.is_durable {
            true => {
                let first = behind(bytes, before.lsn + 1)?;
                let last = first.wrapping_add(behind(bytes, u64::from(len))?).wrapping_sub(1);
                (last, (Lsn(first), Lsn(last)))
            }
            false => (0, (Lsn::NEVER, Lsn::NONE)),
        };
        *before = Known { id, place, number: last, lsn };
        let place = PagePlace { segment: place.0, index: place.1 };
        let first_sequence = self.is_renumbered.then_some(start);
        let (is_durable, is_doubtful) = (self.is_durable, self.is_doubtful);
        let page =
            Page::at_rest(place, (is_durable, is_doubtful, self.priority), len, first_sequence, records);
        let (id, first, is_asked) = (PageId::of(id)?, None, false);
        Some((page, PagePart { id, first, len, start, last, memory, body_bytes, is_asked }))
    }

    /// Bytes of memory that these take.
    #[cfg(test)]
    pub(crate) fn memory_used(&self) -> usize {
        size_of::<PackedPages>() + self.bytes.capacity()
    }
}

/// Writes a number.
fn push(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(0x80 | (number & 0x7f) as u8);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Writes how far a number is from another, in either direction.
fn push_distance(out: &mut Vec<u8>, from: u64, to: u64) {
    let distance = to.wrapping_sub(from).cast_signed();
    push(out, (distance << 1 ^ distance >> 63).cast_unsigned());
}

/// Reads a number by how far it is from another.
fn behind(bytes: &mut &[u8], from: u64) -> Option<u64> {
    let distance = number(bytes)?;
    Some(from.wrapping_add((distance >> 1) ^ (distance & 1).wrapping_neg()))
}

/// Reads a number.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown((page, part): &(Page, PagePart)) -> String {
        format!("{page:?} {part:?}")
    }

    proptest! {
        #[test]
        fn pages_are_unpacked_as_they_were(
            pages in proptest::collection::vec(
                (
                    (1u32..4, 0u32..3, 0u32..2),
                    (1u64..3, 1u32..900, 0u64..2),
                    (0u64..2_000_000, any::<u32>(), 0u32..5_000),
                ),
                1..300,
            ),
            is_durable: bool, is_renumbered: bool, taken in proptest::collection::vec(0usize..40, 0..5),
        ) {
            let (mut id, mut place, mut next) = (0, (0, 0), 0);
            let mut packed: Option<PackedPages> = None;
            let mut expected = Vec::new();
            for ((ids, segments, skipped), (step, len, gaps), (body_bytes, lsn, span)) in pages {
                id += ids;
                place = if segments == 0 { (place.0, place.1 + 1 + skipped) } else { (place.0 + segments - 1, skipped) };
                let start = next + step;
                next = start + u64::from(len) + gaps - 1;
                let first_sequence = is_renumbered.then_some(start);
                let records = match is_durable {
                    true => (Lsn(u64::from(lsn.saturating_sub(span))), Lsn(u64::from(lsn))),
                    false => (Lsn::NEVER, Lsn::NONE),
                };
                let at = PagePlace { segment: place.0, index: place.1 };
                let page = || Page::at_rest(at, (is_durable, false, 3), len, first_sequence, records);
                let id = PageId::of(id).expect("it is not 0");
                let part = PagePart {
                    id, first: None, len, start, last: next, memory: 700, body_bytes, is_asked: false,
                };
                prop_assert!(is_at_rest(&page(), &part));
                match &mut packed {
                    Some(packed) if packed.takes(&page(), &part) => packed.push(&page(), &part),
                    Some(_) => break,
                    None => packed = Some(PackedPages::begin(&page(), &part)),
                }
                expected.push((page(), part));
            }
            let mut packed = packed.expect("there is one");
            let lines = |pages: &[(Page, PagePart)]| pages.iter().map(shown).collect::<Vec<_>>();
            for count in taken.into_iter().chain([usize::MAX]) {
                prop_assert_eq!(lines(&packed.iter().collect::<Vec<_>>()), lines(&expected));
                prop_assert_eq!(packed.count(), expected.len());
                prop_assert_eq!(packed.len(), expected.iter().map(|(_, part)| u64::from(part.len)).sum::<u64>());
                prop_assert_eq!(packed.memory(), 700 * expected.len());
                for (_, part) in &expected {
                    prop_assert!(packed.may_have(part.id));
                    prop_assert_eq!(packed.page_from(part.start), Some(part.id));
                    prop_assert_eq!(packed.page_from(part.last), Some(part.id));
                }
                if let Some((_, first)) = expected.first() {
                    prop_assert_eq!(packed.start(), first.start);
                }
                let front: Vec<_> = expected.drain(..count.min(expected.len())).collect();
                prop_assert_eq!(lines(&packed.take_front(count)), lines(&front));
            }
            prop_assert_eq!((packed.count(), packed.memory(), packed.bytes.len()), (0, 0, 0));
        }
    }
}
