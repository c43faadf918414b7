//! The ready messages of a queue, in order, in memory or on disk.

use super::entry::Entry;
use super::page_part::PagePart;
use super::pages::{GonePage, PageId, PageSource, Pages};
use super::priority_lane::{Front, Part, PriorityLane, Stand};
use super::run::Run;

/// Ready messages: the highest priority first, then by sequence number.
#[derive(Debug)]
pub(crate) struct Ready {
    /// A lane for each priority, the highest first.
    lanes: Vec<PriorityLane>,
    len: usize,
    body_bytes: u64,
    /// The number of messages in memory, and the bytes that they occupy.
    len_in_memory: usize,
    memory: usize,
}

impl Ready {
    pub(crate) fn new(priority_max: Option<u8>) -> Ready {
        let lanes = usize::from(priority_max.unwrap_or(0)) + 1;
        let lanes = (0..lanes).map(|_| PriorityLane::default()).collect();
        Ready { lanes, len: 0, body_bytes: 0, len_in_memory: 0, memory: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn len_in_memory(&self) -> usize {
        self.len_in_memory
    }

    /// Whether the first message is in memory.
    pub(crate) fn has_front(&self) -> bool {
        let mut fronts = self.lanes.iter().map(PriorityLane::front);
        fronts
            .find(|front| !matches!(front, Front::Nothing))
            .is_some_and(|front| matches!(front, Front::Entry(_)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of the bodies of all messages, as far as they are known.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Bytes that the messages in memory occupy.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        self.count(&entry);
        if let Some(lane) = self.lane(entry.envelope.priority) {
            lane.push(entry);
        }
    }

    /// Puts a message back in its place.
    pub(crate) fn put_back(&mut self, entry: Entry) {
        self.count(&entry);
        if let Some(lane) = self.lane(entry.envelope.priority) {
            lane.released.insert(entry.envelope.sequence, entry);
        }
    }

    /// Takes the next message, unless it has to be read first.
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        let entry = first(self.lanes.iter_mut().map(PriorityLane::pop))?;
        self.uncount(&entry);
        Some(entry)
    }

    /// Takes the message that is dropped first on overflow, the oldest of the lowest priority, unless it has
    /// to be read first.
    pub(crate) fn pop_to_drop(&mut self) -> Option<Entry> {
        let entry = first(self.lanes.iter_mut().rev().map(PriorityLane::pop))?;
        self.uncount(&entry);
        Some(entry)
    }

    /// The front message of each priority, as far as it is in memory.
    pub(crate) fn fronts(&self) -> impl Iterator<Item = &Entry> {
        self.lanes.iter().filter_map(|lane| entry_of(lane.front()))
    }

    /// Takes a front message for which `is_due` holds, if there is one.
    pub(crate) fn pop_if(&mut self, is_due: impl Fn(&Entry) -> bool) -> Option<Entry> {
        let lane = self.lanes.iter_mut().find(|lane| entry_of(lane.front()).is_some_and(&is_due))?;
        let entry = entry_of(lane.pop())?;
        self.uncount(&entry);
        Some(entry)
    }

    /// Finds a message in memory by its priority and sequence number.
    pub(crate) fn find(&self, priority: u8, sequence: u64) -> Option<&Entry> {
        self.lanes.get(self.at(priority)?)?.entry(sequence)
    }

    /// The priority of a released message, if it is ready.
    pub(crate) fn priority_of_released(&self, sequence: u64) -> Option<u8> {
        let mut lanes = self.lanes_by_priority();
        lanes.find(|(_, lane)| lane.released.contains_key(&sequence)).map(|(priority, _)| priority)
    }

    /// Takes a message out of memory, wherever it stands.
    pub(crate) fn take(&mut self, priority: u8, sequence: u64) -> Option<Entry> {
        let entry = self.lane(priority)?.take(sequence)?;
        self.uncount(&entry);
        Some(entry)
    }

    /// Takes a message out of its place. Also returns `false` if it stood among fresh messages and leaves a
    /// hole.
    pub(crate) fn take_at(&mut self, priority: u8, stand: Stand) -> Option<(Entry, bool)> {
        let taken = self.lane(priority)?.take_at(stand)?;
        self.uncount(&taken.0);
        Some(taken)
    }

    /// Removes a message that is on disk alone; returns its page. The page may have no such message.
    pub(crate) fn remove_on_disk(&mut self, sequence: u64, pages: &mut Pages) -> Option<PageId> {
        let lane = self.lanes.last_mut()?;
        let page = lane.remove_on_disk(sequence, pages)?;
        self.len -= 1;
        Some(page)
    }

    /// Cuts all messages in memory but the newest `keep` bytes. `paged` works as in [`Ready::cut`].
    pub(crate) fn cut_oldest(
        &mut self,
        keep: usize,
        mut paged: impl FnMut(Run, bool) -> (Vec<PagePart>, Run),
    ) {
        let mut change = (0, 0);
        let Some(lane) = self.lanes.last_mut() else { return };
        lane.cut_oldest(keep, |run, is_whole| {
            let (len, memory) = (run.len(), run.memory());
            let (pages, rest) = paged(run, is_whole);
            change = (change.0 + len - rest.len(), change.1 + memory - rest.memory());
            (pages, rest)
        });
        self.len_in_memory -= change.0;
        self.memory -= change.1;
    }

    /// Cuts the messages in memory below the `mark` of their priority, except the first `keep` bytes and the
    /// newest part. `paged` works as in [`Ready::cut`], and also gets whether the cut ends with a part.
    pub(crate) fn cut_between(
        &mut self,
        keep: usize,
        mark: impl Fn(u8) -> u64,
        mut paged: impl FnMut(u8, Run, bool) -> (Vec<PagePart>, Run),
    ) {
        let levels = self.lanes.len();
        let mut change = (0, 0);
        for (at, lane) in self.lanes.iter_mut().enumerate() {
            let priority = u8::try_from(levels - 1 - at).unwrap_or(u8::MAX);
            lane.cut_between(keep, mark(priority), |run, is_whole| {
                let (len, memory) = (run.len(), run.memory());
                let (pages, rest) = paged(priority, run, is_whole);
                change = (change.0 + len - rest.len(), change.1 + memory - rest.memory());
                (pages, rest)
            });
        }
        self.len_in_memory -= change.0;
        self.memory -= change.1;
    }

    /// Requests a page and the pages that follow it, `count` in all.
    pub(crate) fn ask_for(
        &mut self,
        (priority, id): (u8, PageId),
        count: usize,
        pages: &mut Pages,
        asked: &mut Vec<(PageId, PageSource)>,
    ) {
        if let Some(lane) = self.lane(priority) {
            lane.ask_for(id, count, pages, asked);
        }
    }

    /// Cuts the newest messages of the priority that has most of them in memory. `paged` gets the priority
    /// and the cut messages; it makes pages of them, and returns the messages that it could not use. Nothing
    /// is cut if that would be less than `least` bytes.
    pub(crate) fn cut(
        &mut self,
        (keep, keep_below, goal, least): (usize, usize, usize, usize),
        paged: impl FnOnce(u8, Run) -> (Vec<PagePart>, Run),
    ) {
        let top = self.lanes.iter().position(|lane| !matches!(lane.front(), Front::Nothing));
        let keep_of = |at| if Some(at) == top { keep } else { keep_below };
        let cuttable = |(at, lane): (usize, &PriorityLane)| {
            let (memory, keep) = lane.cuttable(keep_of(at));
            (memory, at, keep)
        };
        let Some((memory, at, keep)) = self.lanes.iter().enumerate().map(cuttable).max() else { return };
        if memory < least.max(1) {
            return;
        }
        let priority = u8::try_from(self.lanes.len() - 1 - at).unwrap_or(u8::MAX);
        let Some(lane) = self.lanes.get_mut(at) else { return };
        let mut change = (0, 0);
        lane.cut(keep, goal, |run| {
            let (len, memory) = (run.len(), run.memory());
            let (pages, rest) = paged(priority, run);
            change = (len - rest.len(), memory - rest.memory());
            (pages, rest)
        });
        self.len_in_memory -= change.0;
        self.memory -= change.1;
    }

    /// Returns the pages to read: as much as is read ahead of the highest priority that has any messages, and the
    /// front of the others.
    pub(crate) fn ask(&mut self, ahead: usize, pages: &mut Pages) -> Vec<(PageId, PageSource)> {
        let mut asked = Vec::new();
        let mut goal = ahead;
        for lane in self.lanes.iter_mut().filter(|lane| !matches!(lane.front(), Front::Nothing)) {
            lane.ask(goal, pages, &mut asked);
            goal = 1;
        }
        asked
    }

    /// Packs the pages at rest, if there are enough of them to be worth it.
    pub(crate) fn pack(&mut self, pages: &mut Pages) {
        if !pages.may_be_packed() {
            return;
        }
        self.lanes.iter_mut().for_each(|lane| lane.pack(pages));
        pages.note_packed();
    }

    /// Takes all packed pages out, as the queue is deleted.
    pub(crate) fn take_packed(&mut self, pages: &mut Pages) -> Vec<GonePage> {
        self.lanes.iter_mut().flat_map(|lane| lane.take_packed(pages)).collect()
    }

    /// The part of a page that is on disk alone.
    pub(crate) fn part(&self, priority: u8, id: PageId) -> Option<&PagePart> {
        self.lanes.get(self.at(priority)?)?.part(id)
    }

    /// Notes that a page is no longer being read.
    pub(crate) fn forget_asked(&mut self, priority: u8, id: PageId) {
        if let Some(part) = self.lane(priority).and_then(|lane| lane.part_mut(id)) {
            part.is_asked = false;
        }
    }

    /// Replaces a page that was on disk alone by its messages.
    pub(crate) fn replace(&mut self, priority: u8, id: PageId, run: Run) {
        let Some(part) = self.part(priority, id).copied() else { return };
        self.len = self.len + run.len() - part.len as usize;
        self.len_in_memory += run.len();
        self.memory += run.memory();
        self.body_bytes = self.body_bytes + run.iter().map(Entry::body_bytes).sum::<u64>() - part.body_bytes;
        if let Some(lane) = self.lane(priority) {
            lane.replace(id, run);
        }
    }

    /// Adds a part behind all others, as after a restart.
    pub(crate) fn restore(&mut self, priority: u8, part: Part) {
        match &part {
            Part::Memory(run) => {
                self.len += run.len();
                self.len_in_memory += run.len();
                self.memory += run.memory();
                self.body_bytes += run.iter().map(Entry::body_bytes).sum::<u64>();
            }
            Part::Page(page) => {
                self.len += page.len as usize;
                self.body_bytes += page.body_bytes;
            }
            // Pages are packed where they stand.
            Part::Packed(_) => {}
        }
        let Some(lane) = self.lane(priority) else { return };
        match part {
            Part::Memory(run) => lane.append(run),
            page => lane.parts.push_back(page),
        }
    }

    /// The lane of each priority, the highest first.
    pub(crate) fn lanes_mut(&mut self) -> impl Iterator<Item = &mut PriorityLane> {
        self.lanes.iter_mut()
    }

    /// The lane of each priority, the highest first.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = &PriorityLane> {
        self.lanes.iter()
    }

    /// The lanes with their priorities, the highest first.
    pub(crate) fn lanes_by_priority(&self) -> impl Iterator<Item = (u8, &PriorityLane)> {
        let highest = u8::try_from(self.lanes.len() - 1).unwrap_or(u8::MAX);
        (0..=highest).rev().zip(&self.lanes)
    }

    /// Number of messages that fit without growing.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        let parts = self.lanes.iter().flat_map(|lane| &lane.parts);
        parts.map(|part| if let Part::Memory(run) = part { run.capacity() } else { 0 }).sum()
    }

    fn count(&mut self, entry: &Entry) {
        self.len += 1;
        self.len_in_memory += 1;
        self.memory += entry.memory();
        self.body_bytes += entry.body_bytes();
    }

    fn uncount(&mut self, entry: &Entry) {
        self.len -= 1;
        self.len_in_memory -= 1;
        self.memory -= entry.memory();
        self.body_bytes -= entry.body_bytes();
    }

    pub(crate) fn lane(&mut self, priority: u8) -> Option<&mut PriorityLane> {
        let at = self.at(priority)?;
        self.lanes.get_mut(at)
    }

    fn at(&self, priority: u8) -> Option<usize> {
        self.lanes.len().checked_sub(1 + usize::from(priority))
    }
}

/// The first message; `None` if a message before it has to be read.
fn first(fronts: impl Iterator<Item = Front<Entry>>) -> Option<Entry> {
    for front in fronts {
        match front {
            Front::Entry(entry) => return Some(entry),
            Front::OnDisk => return None,
            Front::Nothing => {}
        }
    }
    None
}

fn entry_of<T>(front: Front<T>) -> Option<T> {
    match front {
        Front::Entry(entry) => Some(entry),
        Front::OnDisk | Front::Nothing => None,
    }
}
