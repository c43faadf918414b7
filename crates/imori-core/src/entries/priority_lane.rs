//! The ready messages of one priority: in memory or on disk, in order.
//!
//! ```text
//!  released   parts: in memory ─ page ─ page ─ … ─ page ─ in memory
//!  (came back) given out first     on disk, no bodies      newest
//! ```

use std::collections::{BTreeMap, VecDeque};

use super::entry::Entry;
use super::packed_pages::{PackedPages, is_at_rest};
use super::page_part::PagePart;
use super::pages::{GonePage, Page, PageId, PageSource, Pages};
use super::run::{Run, RunPlace};

/// Pages unpacked at once when they reach the front of a queue.
const UNPACK_PAGES: usize = 4;

/// Messages of one priority.
#[derive(Debug, Default)]
pub(crate) struct PriorityLane {
    /// Messages that were delivered and released. They precede the fresh ones, unless a consumer had taken them from
    /// the middle of the queue.
    pub(crate) released: BTreeMap<u64, Entry>,
    /// Fresh messages, which were not released, in memory or on disk. Parts in memory are never adjacent, and
    /// one is empty only if it is the only part.
    pub(crate) parts: VecDeque<Part>,
    /// The position of the newest message.
    pub(crate) position: u64,
}

/// Consecutive messages.
#[derive(Debug)]
pub(crate) enum Part {
    /// Messages in memory, ready to be delivered.
    Memory(Run),
    /// Only on disk, or about to be written.
    Page(PagePart),
    /// Pages at rest.
    Packed(Box<PackedPages>),
}

/// The place of a message in memory within its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stand {
    /// Among the released messages, with this sequence number.
    Released(u64),
    /// In this part, at this place in its run.
    Fresh(usize, RunPlace),
}

/// The end of a search through a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looked {
    /// It stopped at this message.
    Stopped(Stand),
    /// It reached this page, which is only on disk.
    OnDisk(PageId),
    /// It reached the end.
    End,
}

/// The front of a list of messages that may be on disk.
pub(crate) enum Front<T> {
    /// A message in memory.
    Entry(T),
    /// A message that has to be read.
    OnDisk,
    /// No message at all.
    Nothing,
}

impl Part {
    /// A lower bound of the sequence numbers; 0 for an empty part.
    pub(crate) fn start(&self) -> u64 {
        match self {
            Part::Memory(run) => run.front().map_or(0, |entry| entry.envelope.sequence),
            Part::Page(part) => part.start,
            Part::Packed(packed) => packed.start(),
        }
    }
}

impl PriorityLane {
    /// The first released message, if it precedes all fresh ones. A message that a consumer had taken from the
    /// middle of the queue may follow some fresh ones.
    #[inline]
    fn first_released(&self) -> Option<(u64, &Entry)> {
        let (sequence, entry) = self.released.first_key_value()?;
        let is_first = match self.parts.front() {
            None => true,
            Some(Part::Memory(run)) => run.front().is_none_or(|fresh| *sequence < fresh.envelope.sequence),
            Some(Part::Page(part)) => *sequence < part.start,
            Some(Part::Packed(packed)) => *sequence < packed.start(),
        };
        is_first.then_some((*sequence, entry))
    }

    pub(crate) fn front(&self) -> Front<&Entry> {
        if let Some((_, entry)) = self.first_released() {
            return Front::Entry(entry);
        }
        match self.parts.front() {
            Some(Part::Memory(run)) => run.front().map_or(Front::Nothing, Front::Entry),
            Some(Part::Page(_) | Part::Packed(_)) => Front::OnDisk,
            None => Front::Nothing,
        }
    }

    pub(crate) fn pop(&mut self) -> Front<Entry> {
        if let Some((sequence, _)) = self.first_released()
            && let Some(entry) = self.released.remove(&sequence)
        {
            return Front::Entry(entry);
        }
        let entry = match self.parts.front_mut() {
            Some(Part::Memory(run)) => run.pop_front(),
            Some(Part::Page(_) | Part::Packed(_)) => return Front::OnDisk,
            None => None,
        };
        self.drop_empty_front();
        entry.map_or(Front::Nothing, Front::Entry)
    }

    /// Calls `look` with the messages in memory from sequence number `mark` on, in order, until it returns
    /// `true` or a message has to be read.
    pub(crate) fn look_from(&self, mark: u64, mut look: impl FnMut(&Entry) -> bool) -> Looked {
        let mut released = self.released.range(mark..).peekable();
        for (at, part) in self.parts.iter().enumerate() {
            match part {
                Part::Page(part) if part.last < mark => {}
                Part::Packed(packed) if packed.last() < mark => {}
                Part::Page(_) | Part::Packed(_) => {
                    let (start, id) = match part {
                        Part::Packed(packed) => (packed.start(), packed.page_from(mark)),
                        Part::Page(part) => (part.start, Some(part.id)),
                        Part::Memory(_) => continue,
                    };
                    let Some(id) = id else { continue };
                    while let Some((sequence, entry)) = released.next_if(|(sequence, _)| **sequence < start) {
                        if look(entry) {
                            return Looked::Stopped(Stand::Released(*sequence));
                        }
                    }
                    return Looked::OnDisk(id);
                }
                Part::Memory(run) => {
                    for (place, fresh) in run.from(mark) {
                        let is_before = |sequence: u64| sequence < fresh.envelope.sequence;
                        while let Some((sequence, entry)) =
                            released.next_if(|(sequence, _)| is_before(**sequence))
                        {
                            if look(entry) {
                                return Looked::Stopped(Stand::Released(*sequence));
                            }
                        }
                        if look(fresh) {
                            return Looked::Stopped(Stand::Fresh(at, place));
                        }
                    }
                }
            }
        }
        match released.find(|(_, entry)| look(entry)) {
            Some((sequence, _)) => Looked::Stopped(Stand::Released(*sequence)),
            None => Looked::End,
        }
    }

    /// Removes the message at this place. Also returns `false` if it was among fresh messages and leaves a hole.
    pub(crate) fn take_at(&mut self, stand: Stand) -> Option<(Entry, bool)> {
        let (at, place) = match stand {
            Stand::Released(sequence) => return self.released.remove(&sequence).map(|entry| (entry, true)),
            Stand::Fresh(at, place) => (at, place),
        };
        let Some(Part::Memory(run)) = self.parts.get_mut(at) else { return None };
        let is_first = at == 0 && run.first_place() == Some(place);
        let entry = run.take_at(place)?;
        self.drop_empty(at);
        Some((entry, is_first))
    }

    /// Finds a message in memory by its sequence number.
    pub(crate) fn entry(&self, sequence: u64) -> Option<&Entry> {
        let mut runs = self.parts.iter().filter_map(|part| match part {
            Part::Memory(run) => Some(run),
            Part::Page(_) | Part::Packed(_) => None,
        });
        self.released.get(&sequence).or_else(|| runs.find_map(|run| run.find(sequence)))
    }

    /// Removes a message from memory by its sequence number, released or fresh.
    pub(crate) fn take(&mut self, sequence: u64) -> Option<Entry> {
        if let Some(entry) = self.released.remove(&sequence) {
            return Some(entry);
        }
        let mut parts = self.parts.iter_mut().enumerate();
        let (at, entry) = parts.find_map(|(at, part)| match part {
            Part::Memory(run) => Some((at, run.take_out(sequence)?)),
            Part::Page(_) | Part::Packed(_) => None,
        })?;
        self.drop_empty(at);
        Some(entry)
    }

    /// Removes a part that became empty. Its neighbours are on disk.
    fn drop_empty(&mut self, at: usize) {
        if self.parts.len() < 2 || !matches!(self.parts.get(at), Some(Part::Memory(run)) if run.is_empty()) {
            return;
        }
        self.parts.remove(at);
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        if let Some(Part::Memory(run)) = self.parts.back_mut() {
            return run.push_back(entry);
        }
        let mut run = Run::default();
        run.push_back(entry);
        self.parts.push_back(Part::Memory(run));
    }

    /// The bytes that can be cut from the newest part if `keep` bytes stay at the front, and the bytes of
    /// that part that have to stay.
    pub(crate) fn cuttable(&self, keep: usize) -> (usize, usize) {
        let Some(Part::Memory(newest)) = self.parts.back() else { return (0, 0) };
        let mut keep = keep;
        for part in self.parts.iter().take(self.parts.len() - 1) {
            if keep == 0 {
                break;
            }
            keep = keep.saturating_sub(match part {
                Part::Memory(run) => run.memory(),
                Part::Page(part) => part.memory,
                Part::Packed(packed) => packed.memory(),
            });
        }
        (newest.memory().saturating_sub(keep), keep)
    }

    /// Cuts `goal` bytes of the newest part into pages, if that part is in memory; its first `keep` bytes
    /// stay. `paged` makes the pages, and returns the messages that it could not use.
    pub(crate) fn cut(&mut self, keep: usize, goal: usize, paged: impl FnOnce(Run) -> (Vec<PagePart>, Run)) {
        let Some(Part::Memory(newest)) = self.parts.back_mut() else { return };
        let mut newest = std::mem::take(newest);
        self.parts.pop_back();
        self.append(newest.cut(keep));
        let (pages, rest) = paged(newest.cut(goal));
        self.parts.extend(pages.into_iter().map(Part::Page));
        self.append(rest);
        self.append(newest);
    }

    /// Cuts the messages in memory below number `mark`, which all seekers have passed, into pages, except the first
    /// `keep` bytes and the newest part. `paged` makes the pages, and returns the messages that it could not use; it
    /// also gets whether the cut ends with a part.
    pub(crate) fn cut_between(
        &mut self,
        keep: usize,
        mark: u64,
        mut paged: impl FnMut(Run, bool) -> (Vec<PagePart>, Run),
    ) {
        let (mut keep, parts) = (keep, std::mem::take(&mut self.parts));
        let newest = parts.len().saturating_sub(1);
        for (at, part) in parts.into_iter().enumerate() {
            match part {
                Part::Page(part) => {
                    keep = keep.saturating_sub(part.memory);
                    self.parts.push_back(Part::Page(part));
                }
                Part::Packed(packed) => {
                    keep = keep.saturating_sub(packed.memory());
                    self.parts.push_back(Part::Packed(packed));
                }
                // An empty part stays if it is the only one.
                Part::Memory(run) if at == newest && self.parts.is_empty() => {
                    self.parts.push_back(Part::Memory(run));
                }
                Part::Memory(run) if at == newest => self.append(run),
                Part::Memory(mut run) => {
                    let kept = run.cut(keep);
                    keep = keep.saturating_sub(kept.memory());
                    self.append(kept);
                    let passed = run.cut_before(mark);
                    if !passed.is_empty() {
                        let (pages, rest) = paged(passed, run.is_empty());
                        self.parts.extend(pages.into_iter().map(Part::Page));
                        self.append(rest);
                    }
                    self.append(run);
                }
            }
        }
    }

    /// Removes a message that is on disk alone; returns its page.
    pub(crate) fn remove_on_disk(&mut self, sequence: u64, pages: &mut Pages) -> Option<PageId> {
        let has = |part: &Part| match part {
            Part::Page(part) => part.last >= sequence,
            Part::Packed(packed) => packed.last() >= sequence,
            Part::Memory(_) => false,
        };
        let mut at = self.parts.iter().position(has)?;
        if let Some(Part::Packed(packed)) = self.parts.get(at) {
            let id = packed.page_from(sequence);
            self.unpack(at, id, 1, pages);
            at =
                self.parts.iter().position(|part| matches!(part, Part::Page(part) if Some(part.id) == id))?;
        }
        let Some(Part::Page(part)) = self.parts.get_mut(at) else { return None };
        if part.start > sequence {
            return None;
        }
        let id = part.id;
        part.len -= 1;
        if part.len == 0 {
            let later = self.parts.split_off(at + 1);
            self.parts.pop_back();
            let mut later = later.into_iter();
            match later.next() {
                Some(Part::Memory(run)) => self.append(run),
                Some(page) => self.parts.push_back(page),
                None => {}
            }
            self.parts.extend(later);
        }
        Some(id)
    }

    /// Cuts all messages in memory but the newest `keep` bytes into pages. `paged` works as in
    /// [`PriorityLane::cut_between`].
    pub(crate) fn cut_oldest(
        &mut self,
        keep: usize,
        mut paged: impl FnMut(Run, bool) -> (Vec<PagePart>, Run),
    ) {
        let of_run = |part: &Part| if let Part::Memory(run) = part { run.memory() } else { 0 };
        let mut surplus = self.parts.iter().map(of_run).sum::<usize>().saturating_sub(keep);
        for part in std::mem::take(&mut self.parts) {
            match part {
                Part::Memory(mut run) if surplus > 0 => {
                    let cut = run.cut(surplus);
                    surplus = surplus.saturating_sub(cut.memory());
                    let (pages, rest) = paged(cut, run.is_empty());
                    self.parts.extend(pages.into_iter().map(Part::Page));
                    self.append(rest);
                    self.append(run);
                }
                Part::Memory(run) => self.append(run),
                page => self.parts.push_back(page),
            }
        }
    }

    /// Replaces a page by its messages.
    pub(crate) fn replace(&mut self, id: PageId, run: Run) {
        let Some(at) = self.find(id) else { return };
        let later = self.parts.split_off(at);
        self.append(run);
        let mut later = later.into_iter().skip(1);
        match later.next() {
            Some(Part::Memory(run)) => self.append(run),
            Some(page) => self.parts.push_back(page),
            None => {}
        }
        self.parts.extend(later);
    }

    /// The part of this page, if it is still only on disk.
    pub(crate) fn part(&self, id: PageId) -> Option<&PagePart> {
        match self.parts.get(self.find(id)?) {
            Some(Part::Page(part)) => Some(part),
            _ => None,
        }
    }

    /// The same part as [`PriorityLane::part`], to be changed.
    pub(crate) fn part_mut(&mut self, id: PageId) -> Option<&mut PagePart> {
        let at = self.find(id)?;
        match self.parts.get_mut(at) {
            Some(Part::Page(part)) => Some(part),
            _ => None,
        }
    }

    fn find(&self, id: PageId) -> Option<usize> {
        self.parts.iter().position(|part| matches!(part, Part::Page(part) if part.id == id))
    }

    /// Packs the pages at rest that follow the last packed part. Pages before it were unpacked as the front reached
    /// them, and stay unpacked.
    pub(crate) fn pack(&mut self, pages: &mut Pages) {
        let last = self.parts.iter().rposition(|part| matches!(part, Part::Packed(_)));
        let newest = self.parts.split_off(last.map_or(0, |last| last + 1));
        for part in newest {
            let packed = match &part {
                Part::Page(part) => {
                    pages.pack(part.id, |page| is_at_rest(page, part)).map(|page| (page, *part))
                }
                Part::Memory(_) | Part::Packed(_) => None,
            };
            let Some((page, part)) = packed else {
                self.parts.push_back(part);
                continue;
            };
            match self.parts.back_mut() {
                Some(Part::Packed(packed)) if packed.takes(&page, &part) => packed.push(&page, &part),
                _ => self.parts.push_back(Part::Packed(Box::new(PackedPages::begin(&page, &part)))),
            }
        }
        if self.parts.capacity() > 4 * self.parts.len() {
            self.parts.shrink_to(2 * self.parts.len());
        }
    }

    /// Unpacks `count` pages of the packed part at index `at`: from page `from` on, or the first ones.
    fn unpack(&mut self, at: usize, from: Option<PageId>, count: usize, pages: &mut Pages) {
        let Some(Part::Packed(packed)) = self.parts.get_mut(at) else { return };
        let before = from.map_or(0, |id| packed.iter().take_while(|(_, part)| part.id != id).count());
        let front = packed.take_front(before);
        let unpacked = packed.take_front(count);
        let is_empty = packed.count() == 0;
        let mut at = at;
        let mut front = front.into_iter();
        if let Some((page, part)) = front.next() {
            let mut packed = PackedPages::begin(&page, &part);
            front.for_each(|(page, part)| packed.push(&page, &part));
            self.parts.insert(at, Part::Packed(Box::new(packed)));
            at += 1;
        }
        for (page, part) in unpacked {
            pages.unpack(part.id, page);
            self.parts.insert(at, Part::Page(part));
            at += 1;
        }
        if is_empty {
            self.parts.remove(at);
        }
    }

    /// Takes all packed pages out of their parts, as the queue is deleted.
    pub(crate) fn take_packed(&mut self, pages: &mut Pages) -> Vec<GonePage> {
        let mut gone = Vec::new();
        for part in &mut self.parts {
            if let Part::Packed(packed) = part {
                let taken = packed.take_front(usize::MAX);
                gone.extend(taken.iter().filter_map(|(page, _)| pages.forget_packed(page)));
            }
        }
        gone
    }

    /// Index of the packed part that contains this page, if one does.
    fn find_packed(&self, id: PageId) -> Option<usize> {
        let has = |packed: &PackedPages| packed.may_have(id) && packed.iter().any(|(_, part)| part.id == id);
        self.parts.iter().position(|part| matches!(part, Part::Packed(packed) if has(packed)))
    }

    /// Requests a page that is only on disk, unless it is requested already, and the pages that follow it, `count` in
    /// all.
    pub(crate) fn ask_for(
        &mut self,
        id: PageId,
        count: usize,
        pages: &mut Pages,
        asked: &mut Vec<(PageId, PageSource)>,
    ) {
        if let Some(at) = self.find_packed(id) {
            self.unpack(at, Some(id), count, pages);
        }
        let Some(at) = self.find(id) else { return };
        if self.part(id).is_some_and(|part| part.is_asked) {
            return;
        }
        for at in at..at + count {
            self.unpack(at, None, count, pages);
            let Some(Part::Page(part)) = self.parts.get_mut(at) else { return };
            let Some(source) = pages.get(part.id).and_then(Page::source) else { return };
            if !part.is_asked {
                part.is_asked = true;
                asked.push((part.id, source));
            }
        }
    }

    /// Requests pages at the front until `goal` bytes there are in memory or requested.
    pub(crate) fn ask(&mut self, goal: usize, pages: &mut Pages, asked: &mut Vec<(PageId, PageSource)>) {
        let (mut ahead, mut at) = (0, 0);
        while ahead < goal {
            self.unpack(at, None, UNPACK_PAGES, pages);
            let Some(part) = self.parts.get_mut(at) else { return };
            at += 1;
            match part {
                Part::Memory(run) => ahead += run.memory(),
                // Does not occur: `unpack` has put pages in its place.
                Part::Packed(_) => {}
                Part::Page(part) => {
                    // A page that is being written can be read afterwards.
                    if !part.is_asked {
                        let Some(source) = pages.get(part.id).and_then(Page::source) else { return };
                        part.is_asked = true;
                        asked.push((part.id, source));
                    }
                    ahead += part.memory;
                }
            }
        }
    }

    /// Adds messages behind all others.
    pub(crate) fn append(&mut self, run: Run) {
        if run.is_empty() {
            return;
        }
        match self.parts.back_mut() {
            Some(Part::Memory(last)) => last.append(run),
            _ => self.parts.push_back(Part::Memory(run)),
        }
    }

    fn drop_empty_front(&mut self) {
        if self.parts.len() > 1 && matches!(self.parts.front(), Some(Part::Memory(run)) if run.is_empty()) {
            self.parts.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confirm::Lsn;
    use crate::entries::{PageFacts, PagePlace, Ranges};
    use crate::id::DurableQueueId;
    use crate::limits::PAGE_BYTES_GOAL;
    use crate::queue::entry;

    /// A lane of `page_count` pages; every `step`-th page of its segments, with 64 pages each, belongs to the lane.
    fn long_lane(page_count: u32, step: u32) -> (PriorityLane, Pages) {
        let (mut lane, mut pages) = (PriorityLane::default(), Pages::default());
        let (mut next, mut lsn) = (1, 1);
        for at in 0..page_count {
            let (len, number) = (250 + at % 13, at * step);
            let facts = PageFacts {
                queue: DurableQueueId(1),
                priority: 0,
                place: PagePlace { segment: number / 64, index: number % 64 },
                count: len,
                first: Lsn(lsn),
                last: Lsn(lsn + u64::from(len * step) - 1),
                first_position: lsn << 8,
                last_position: (lsn + u64::from(len * step) - 1) << 8,
            };
            let id = pages.restore(&facts, len, Ranges::default(), false);
            lsn += u64::from(len * step);
            let (start, last) = (next, next + u64::from(len) - 1);
            next = last + 1;
            let (memory, body_bytes) = (PAGE_BYTES_GOAL, 230_000 + u64::from(at % 999));
            let part = PagePart { id, first: None, len, start, last, memory, body_bytes, is_asked: false };
            lane.parts.push_back(Part::Page(part));
            if pages.may_be_packed() {
                lane.pack(&mut pages);
                pages.note_packed();
            }
        }
        (lane, pages)
    }

    #[test]
    fn the_pages_of_a_terabyte_take_49_mib() {
        /// Pages of 256 KiB in a TiB; the test makes `MADE` of them.
        const PAGES: u64 = 4 << 20;
        const MADE: u64 = PAGES / 8;
        // Either one queue owns all pages, or each segment has pages of many queues.
        for step in [1, 9] {
            let (lane, pages) = long_lane(u32::try_from(MADE).expect("it is"), step);
            let packed = lane.parts.iter().map(|part| match part {
                Part::Packed(packed) => packed.memory_used(),
                Part::Page(_) | Part::Memory(_) => 0,
            });
            let parts = lane.parts.capacity() * size_of::<Part>();
            let bytes = (parts + packed.sum::<usize>() + pages.memory_used()) as u64;
            let of_all = bytes * (PAGES / MADE);
            assert_eq!(pages.len() as u64, MADE);
            assert!(of_all <= 49 << 20, "{of_all} bytes, {} a page", bytes / MADE);
        }
    }

    #[test]
    fn packed_pages_are_asked_for_in_their_order_from_any_of_them() {
        let (mut lane, mut pages) = long_lane(600, 1);
        let packed = lane.parts.iter().filter(|part| matches!(part, Part::Packed(_))).count();
        assert!((3..8).contains(&packed) && lane.parts.len() < 16, "{packed} of {}", lane.parts.len());
        let mut asked = Vec::new();
        lane.ask(3 * PAGE_BYTES_GOAL, &mut pages, &mut asked);
        let place = |number: u32| PageSource::Segment(PagePlace { segment: number / 64, index: number % 64 });
        let places =
            |asked: &[(PageId, PageSource)]| asked.iter().map(|(_, place)| place.clone()).collect::<Vec<_>>();
        assert_eq!(places(&asked), [0, 1, 2].map(place));
        // Page 1 is requested already; a request for another page returns that page and those after it, unless they are
        // requested already.
        for (from, expected) in
            [(1, vec![]), (3, vec![3, 4, 5, 6]), (254, vec![254, 255, 256, 257]), (256, vec![])]
        {
            let mut asked = Vec::new();
            lane.ask_for(PageId::of(from + 1).expect("it is"), 4, &mut pages, &mut asked);
            assert_eq!(places(&asked), expected.into_iter().map(place).collect::<Vec<_>>(), "from {from}");
        }
        let Looked::OnDisk(id) = lane.look_from(100_000, |_| panic!("none is in memory")) else {
            panic!("it is on disk")
        };
        let starts = lane.parts.iter().map(Part::start).collect::<Vec<_>>();
        assert!(starts.is_sorted(), "{starts:?}");
        let mut asked = Vec::new();
        lane.ask_for(id, 1, &mut pages, &mut asked);
        let part = lane.part(id).expect("it is unpacked");
        assert!((part.start..=part.last).contains(&100_000) && asked.len() == 1, "{part:?}");
        assert_eq!(pages.len(), 600);
        let gone = lane.take_packed(&mut pages).len();
        assert_eq!(gone + pages.take_all().len(), 600);
        assert!(pages.is_empty() && lane.take_packed(&mut pages).is_empty());
    }

    #[test]
    fn what_stays_at_the_front_stays_of_the_oldest() {
        let one = entry(Lsn(1), b"body").memory();
        // Parts, as messages in memory or as bytes of a page; bytes to keep; bytes of the newest part that can be cut,
        // and those that stay.
        for (parts, keep, expected) in [
            (&[][..], 0, (0, 0)),
            (&[Ok(3)], 0, (3 * one, 0)),
            (&[Ok(3)], one, (2 * one, one)),
            (&[Ok(3)], 4 * one, (0, 4 * one)),
            (&[Err(500)], 100, (0, 0)),
            (&[Ok(2), Err(500), Ok(3)], 0, (3 * one, 0)),
            (&[Ok(2), Err(500), Ok(3)], one, (3 * one, 0)),
            (&[Ok(2), Err(500), Ok(3)], 2 * one + 500, (3 * one, 0)),
            (&[Ok(2), Err(500), Ok(3)], 3 * one + 500, (2 * one, one)),
            (&[Ok(2), Err(500), Ok(3)], 9 * one + 500, (0, 7 * one)),
            (&[Err(500), Err(500), Ok(3)], 700, (3 * one, 0)),
            (&[Err(500), Err(500), Ok(3)], 1_000 + one, (2 * one, one)),
            (&[Ok(2), Err(500)], 0, (0, 0)),
        ] {
            let (mut lane, mut pages) = (PriorityLane::default(), Pages::default());
            for part in parts {
                match part {
                    Ok(len) => {
                        let mut run = Run::default();
                        run.extend((0..*len).map(|lsn| entry(Lsn(lsn), b"body")));
                        lane.append(run);
                    }
                    Err(memory) => lane.parts.push_back(Part::Page(PagePart {
                        id: pages.begin(0, true, 1),
                        first: None,
                        len: 1,
                        start: 0,
                        last: u64::MAX,
                        memory: *memory,
                        body_bytes: 0,
                        is_asked: false,
                    })),
                }
            }
            assert_eq!(lane.cuttable(keep), expected, "{keep} of {parts:?}, {one} each");
        }
    }
}
