//! Spilling a queue that is longer than its memory: moves entries to pages and back, and knows which records
//! the queue needs.

use std::time::Duration;

use super::draft::{PageDraft, PageWork, Tally};
use crate::confirm::Lsn;
use crate::delivery::{AnnotatedMessage, DeliveryCount, EarlierDeliveries};
use crate::entries::{
    Entry, GonePage, PageId, PageKeep, PagePart, PagePlace, PageSource, Pages, Part, Run, first_position,
};
use crate::features::QueueFeatures;
use crate::limits::{PAGE_BYTES_GOAL, PAGED_BYTES_GOAL, SEEK_PAGES};
use crate::queue::{Effects, Overflow, Queue};
use crate::time::Time;

/// Time for which a queue keeps messages that could not be written, before it tries again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl Queue {
    /// Returns the queue's present requests to the pager, if it may keep `share` bytes in memory.
    pub fn page_work(&mut self, now: Time, share: usize) -> Vec<PageWork> {
        if self.stream.is_some() {
            return self.stream_page_work(now, share);
        }
        let mut work = Vec::new();
        let may_write = self.writing == 0 && self.page_retry.is_none_or(|at| at <= now);
        if may_write && self.ready.memory() + self.delayed_memory() > share {
            let mut drafts = self.shelve_delayed(share);
            drafts.append(&mut self.cut_between(share));
            if self.ready.memory() > share {
                drafts.append(&mut self.cut(share));
            }
            self.writing += drafts.len();
            if !drafts.is_empty() {
                self.features.add(QueueFeatures::PAGES);
                self.page_retry = None;
                work.push(PageWork::Write(drafts));
            }
        }
        if !self.pages.is_empty() {
            let mut asked = self.ready.ask(share / 8, &mut self.pages);
            for sought in std::mem::take(&mut self.sought) {
                self.has_sought = true;
                self.ready.ask_for(sought, SEEK_PAGES, &mut self.pages, &mut asked);
            }
            asked.append(&mut self.ask_delayed(share));
            if !asked.is_empty() {
                work.push(PageWork::Read(asked));
            }
            self.ready.pack(&mut self.pages);
        }
        self.report_pages(&mut work);
        work
    }

    /// Reports the pages that became free since the last report: transient ones to discard, durable ones counted.
    pub(super) fn report_pages(&mut self, work: &mut Vec<PageWork>) {
        let gone = self.pages.take_transient_gone();
        if !gone.is_empty() {
            work.push(PageWork::Gone(gone));
        }
        match self.pages.take_untold() {
            0 => {}
            spared => work.push(PageWork::Spared(spared)),
        }
    }

    /// Moves the messages that all seekers have looked at out of memory. Most of them are still on disk.
    fn cut_between(&mut self, share: usize) -> Vec<PageDraft> {
        let mut drafts: Vec<PageDraft> = Vec::new();
        if !self.has_sought || self.ready.memory() <= share {
            return drafts;
        }
        self.has_sought = self.consumers.has_seekers();
        let page_bytes = PAGE_BYTES_GOAL.min(share / 16).max(1);
        let keeps = self.keeps_records();
        let Queue { ready, pages, gauge, consumers, .. } = self;
        let mut dropped = Vec::new();
        let mark = |priority| consumers.least_mark(priority);
        ready.cut_between(share / 4, mark, |priority, run, is_whole| {
            let is_durable = |entry: &Entry| keeps && entry.envelope.lsn != Lsn::NONE;
            let (drafts, dropped) = (&mut drafts, &mut dropped);
            let mut cutter = Cutter { pages, priority, page_bytes, is_whole, drafts, dropped };
            cutter.cut(run, is_durable)
        });
        let moved = drafts.iter().map(|draft| draft.entries.len()).sum::<usize>() + dropped.len();
        gauge.sub(moved * Entry::CHARGE);
        drafts
    }

    fn cut(&mut self, share: usize) -> Vec<PageDraft> {
        let page_bytes = PAGE_BYTES_GOAL.min(share / 16).max(1);
        let goal = PAGED_BYTES_GOAL.min(self.ready.memory() - share / 2);
        let keeps = self.keeps_records();
        let Queue { ready, pages, gauge, .. } = self;
        let mut drafts: Vec<PageDraft> = Vec::new();
        let mut dropped = Vec::new();
        ready.cut((share / 4, share / 64, goal, share / 16), |priority, run| {
            let is_durable = |entry: &Entry| keeps && entry.envelope.lsn != Lsn::NONE;
            let (drafts, dropped) = (&mut drafts, &mut dropped);
            let mut cutter = Cutter { pages, priority, page_bytes, is_whole: false, drafts, dropped };
            cutter.cut(run, is_durable)
        });
        let moved = drafts.iter().map(|draft| draft.entries.len()).sum::<usize>() + dropped.len();
        gauge.sub(moved * Entry::CHARGE);
        drafts
    }

    /// Notes that a page is on disk, whatever happened to its entries meanwhile.
    pub fn page_written(&mut self, draft: &PageDraft, place: PagePlace) {
        for entry in &draft.entries {
            let lsn = entry.envelope.lsn;
            let page = self.pages.get(draft.id);
            let number = self.number_in_page(entry);
            let has_left = draft.is_copy && page.is_none_or(|page| page.is_settled(number));
            match entry.page.filter(|_| !draft.is_copy) {
                // The message was delayed before, and no longer needs the page that it was in then.
                Some(before) => self.pages.settle(before, number),
                None if draft.is_durable && !has_left => self.live_records.remove(lsn),
                None => {}
            }
        }
        self.pages.written(draft.id, place, draft.is_durable);
        if draft.is_copy {
            self.copying -= 1;
        } else {
            self.writing -= 1;
        }
    }

    /// Takes back the entries of a page that could not be written.
    pub fn page_failed(&mut self, draft: PageDraft, now: Time) {
        if draft.is_copy {
            self.copying -= 1;
            self.pages.failed(draft.id);
            return;
        }
        self.writing -= 1;
        self.page_retry = Some(now.after(RETRY_AFTER));
        let (id, is_durable) = (draft.id, draft.is_durable);
        let gone = if !draft.dues.is_empty() {
            self.unshelve_failed(draft)
        } else if self.ready.part(draft.priority, id).is_some() {
            let mut run = Run::default();
            run.extend(draft.entries);
            self.gauge.add(run.len() * Entry::CHARGE);
            self.ready.replace(draft.priority, id, run);
            Vec::new()
        } else {
            draft.entries
        };
        for entry in gone {
            match entry.page {
                Some(before) => self.pages.settle(before, entry.envelope.lsn),
                None if is_durable => self.live_records.remove(entry.envelope.lsn),
                None => {}
            }
        }
        self.pages.failed(id);
        self.pages.forget(id);
        self.renew_features();
    }

    /// Takes the readable entries of a page into memory; returns how many are lost.
    pub fn page_read(
        &mut self,
        id: PageId,
        mut entries: Vec<Entry>,
        now: Time,
        effects: &mut Effects,
    ) -> u32 {
        self.delayed_answered(id);
        let Some(page) = self.pages.get(id) else { return 0 };
        if page.delayed.is_some() {
            return self.delayed_read(id, entries, now, effects);
        }
        let priority = page.priority;
        let Some(part) = self.ready.part(priority, id).copied() else { return 0 };
        let in_journal = page.in_journal.as_ref();
        for (position, entry) in in_journal.iter().flat_map(|page| page.positions()).zip(&mut entries) {
            entry.position = position;
        }
        let (is_in_journal, page_of) = match in_journal {
            Some(in_journal) => (true, in_journal.is_moving.then_some(id)),
            None => (false, Some(id)),
        };
        let (mut run, mut failed) = (Run::default(), Vec::new());
        let keep = match self.stream.is_some() {
            true => PageKeep::of(page, &part).by_sequence(),
            false => PageKeep::of(page, &part),
        };
        for (index, mut entry) in (0..).zip(entries) {
            if !keep.keeps(index, &mut entry, run.len() + failed.len()) {
                continue;
            }
            if let Some(count) = self.counts.get(&entry.envelope.lsn) {
                count.apply_to(&mut entry.envelope);
            }
            entry.page = page_of;
            self.gauge.add(Entry::CHARGE);
            match self.death_reason(&entry.envelope).filter(|_| self.stream.is_none()) {
                Some(reason) => failed.push((entry, reason)),
                None => run.push_back(entry),
            }
        }
        let lost = part.len.saturating_sub(u32::try_from(run.len() + failed.len()).unwrap_or(u32::MAX));
        self.pages.join(
            id,
            run.iter().chain(failed.iter().map(|(entry, _)| entry)).map(|entry| entry.envelope.lsn),
        );
        self.ready.replace(priority, id, run);
        if is_in_journal {
            self.pages.leave_journal(id);
        }
        for (entry, reason) in failed {
            self.die(entry, reason, now, effects);
        }
        if lost > 0 {
            self.pages.let_go(id, lost);
        }
        if self.settings().overflow == Overflow::DropHead {
            self.drop_surplus(now, effects);
        }
        lost
    }

    /// Notes that a page cannot be read in this run; its entries stay on disk for the next. Returns how many
    /// there are.
    pub fn page_unreadable(&mut self, id: PageId, source: &PageSource) -> u32 {
        self.delayed_answered(id);
        let Some(page) = self.pages.get(id) else { return 0 };
        if page.source().is_some_and(|now| now != *source) {
            // The page moved meanwhile, and will be requested from its new location.
            self.ready.forget_asked(page.priority, id);
            return 0;
        }
        if page.delayed.is_some() {
            return self.delayed_withheld(id);
        }
        let priority = page.priority;
        let len = self.ready.part(priority, id).map_or(0, |part| part.len);
        self.ready.replace(priority, id, Run::default());
        len
    }

    /// The lowest record that the queue needs, or one below it.
    pub fn floor(&self) -> Option<Lsn> {
        self.live_records.floor()
    }

    /// Copies messages with records up to `through`, or not far above, into pages if they are in none; about
    /// `bytes_max` bytes.
    pub fn spill(&mut self, through: Lsn, bytes_max: usize) -> Vec<PageDraft> {
        let (count, end) = self.live_records.through(through);
        if count == 0 || !self.keeps_records() {
            return Vec::new();
        }
        let Queue { ready, unsettled, pages, .. } = self;
        let mut spill =
            Spill { pages, end, left: count, bytes: 0, bytes_max, drafts: Vec::new(), open: None };
        let levels = ready.lanes().count();
        let mut of_level: Vec<Vec<&mut Entry>> = (0..levels).map(|_| Vec::new()).collect();
        for entry in unsettled.values_mut() {
            let at = levels.checked_sub(1 + usize::from(entry.envelope.priority));
            if let Some(of_level) = at.and_then(|at| of_level.get_mut(at)) {
                of_level.push(entry);
            }
        }
        for (level, mut out) in ready.lanes_mut().zip(of_level) {
            out.extend(level.released.values_mut());
            out.sort_unstable_by_key(|entry| entry.envelope.sequence);
            // A released message may follow fresh ones, if a consumer had selected it from the middle of the queue.
            let front = level.parts.front().map_or(u64::MAX, Part::start);
            let is_apart = out.last().is_some_and(|last| last.envelope.sequence > front);
            out.into_iter().for_each(|entry| spill.visit(entry));
            if is_apart {
                spill.open = None;
            }
            for part in &mut level.parts {
                match part {
                    Part::Memory(run) => {
                        for entry in run.iter_mut() {
                            if spill.is_done() {
                                break;
                            }
                            spill.visit(entry);
                        }
                    }
                    Part::Page(_) | Part::Packed(_) => spill.open = None,
                }
            }
            spill.open = None;
        }
        let Spill { bytes, mut drafts, .. } = spill;
        drafts.append(&mut self.spill_delayed(end, bytes_max.saturating_sub(bytes)));
        let is_stream = self.is_stream();
        drafts.iter_mut().for_each(|draft| draft.is_of_stream = is_stream);
        self.copying += drafts.len();
        self.renew_features();
        drafts
    }

    /// Takes the facts for the next checkpoint. Each freed page is named once.
    pub fn tally(&mut self) -> Tally {
        let gone = self.pages.take_gone();
        let settled = self.pages.partly_settled().map(|(place, ranges)| (place, ranges.clone())).collect();
        let mut counts: Vec<DeliveryCount> = self.counts.values().map(|earlier| earlier.count).collect();
        let noted = |earlier: &EarlierDeliveries| {
            let annotations = earlier.annotations.clone()?;
            Some(AnnotatedMessage { record_ref: earlier.count.record_ref, annotations })
        };
        let mut annotations: Vec<AnnotatedMessage> = self.counts.values().filter_map(noted).collect();
        let limit = self.settings().delivery_limit;
        let is_kept = |entry: &&Entry| {
            entry.page.and_then(|page| self.pages.get(page)).is_some_and(|page| page.is_kept())
        };
        // Unsettled messages may still fail, so they count as failed.
        let of_out = |entry: &Entry| u32::from(limit.is_some() && !self.is_pending_dead_letter(entry));
        let out = self.unsettled.values().map(|entry| (entry, of_out(entry)));
        let released = self.ready.lanes().flat_map(|level| level.released.values()).map(|entry| (entry, 0));
        for (entry, failures) in out.chain(released).filter(|(entry, _)| is_kept(entry)) {
            let failures = entry.envelope.failures.saturating_add(failures);
            annotations.extend(self.annotated(entry));
            let envelope = &entry.envelope;
            if failures > 0 || envelope.is_redelivered || envelope.is_rejected {
                counts.extend(self.count(entry, failures));
            }
        }
        Tally { floor: self.floor(), settled, gone, counts, annotations }
    }

    /// Gives up all pages, because the queue is deleted.
    pub fn take_pages(&mut self) -> Vec<GonePage> {
        let mut all = self.ready.take_packed(&mut self.pages);
        all.append(&mut self.pages.take_all());
        all
    }

    /// Number of pages on disk or about to be written, with messages that the queue still has.
    pub fn pages_len(&self) -> usize {
        self.pages.len()
    }

    /// The position of a message that arrives now: behind all others of its priority, regardless of its record.
    pub(crate) fn next_position(&mut self, priority: u8, lsn: Lsn) -> u64 {
        let Some(level) = self.ready.lane(priority) else { return 0 };
        if lsn != Lsn::NONE {
            level.position = first_position(lsn).max(level.position + 1);
        }
        level.position
    }

    /// Whether the queue keeps records of persistent messages.
    pub(crate) fn keeps_records(&self) -> bool {
        self.durability().is_some_and(|durability| durability.level > crate::confirm::Level::Memory)
    }
}

/// Makes pages of entries that leave memory.
pub(super) struct Cutter<'a> {
    pub(super) pages: &'a mut Pages,
    pub(super) priority: u8,
    pub(super) page_bytes: usize,
    /// The run ends with a part, so that its last page does not continue behind it.
    pub(super) is_whole: bool,
    pub(super) drafts: &'a mut Vec<PageDraft>,
    pub(super) dropped: &'a mut Vec<Entry>,
}

/// The way in which an entry leaves memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    /// It goes to a new page, which is durable or not.
    Write(bool),
    /// It is in this page already.
    Drop(PageId),
    /// It has to stay until it is written.
    Stay,
}

impl Cutter<'_> {
    pub(super) fn cut(&mut self, run: Run, is_durable: impl Fn(&Entry) -> bool) -> (Vec<PagePart>, Run) {
        let (mut parts, mut rest) = (Vec::new(), Run::default());
        let mut entries = run.into_entries().peekable();
        while let Some(first) = entries.peek() {
            let action = self.action(first, &is_durable);
            let mut memory = 0;
            let mut group = Vec::new();
            while let Some(entry) =
                entries.next_if(|entry| memory < self.page_bytes && self.action(entry, &is_durable) == action)
            {
                // Entries that are in one page already are not split.
                memory += if let Action::Write(_) = action { entry.memory() } else { 0 };
                group.push(entry);
            }
            match action {
                Action::Write(is_durable) => parts.push(self.write(group, is_durable)),
                // The last page of the cut may continue behind it.
                Action::Drop(id) if self.is_whole || entries.peek().is_some() => {
                    parts.push(part_of(id, &group, group.first().map(|first| first.envelope.sequence)));
                    self.pages.set_apart(id, group.iter().map(|entry| entry.envelope.lsn));
                    self.dropped.extend(group);
                }
                Action::Drop(_) | Action::Stay => {
                    rest.extend(group);
                    rest.extend(entries.by_ref());
                }
            }
        }
        (parts, rest)
    }

    fn action(&self, entry: &Entry, is_durable: impl Fn(&Entry) -> bool) -> Action {
        let Some(id) = entry.page else { return Action::Write(is_durable(entry)) };
        match self.pages.get(id) {
            // The message was delayed when it was written there, and now has another position.
            Some(page) if page.place.is_some() && page.delayed.is_some() => Action::Write(page.is_durable),
            Some(page) if page.place.is_some() => Action::Drop(id),
            Some(page) if page.is_failed => Action::Write(page.is_durable),
            _ => Action::Stay,
        }
    }

    fn write(&mut self, mut entries: Vec<Entry>, is_durable: bool) -> PagePart {
        let count = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        let id = self.pages.begin(self.priority, is_durable, count);
        for entry in &mut entries {
            // The old page of a message is needed until the message is in this one.
            if let Some(failed) =
                entry.page.take_if(|page| self.pages.get(*page).is_none_or(|page| page.is_failed))
            {
                self.pages.let_go(failed, 1);
            }
        }
        self.pages.set_apart(id, entries.iter().map(|entry| entry.envelope.lsn));
        let part = part_of(id, &entries, None);
        let priority = self.priority;
        self.drafts.push(PageDraft {
            id,
            priority,
            is_durable,
            is_copy: false,
            entries,
            dues: Vec::new(),
            is_of_stream: false,
        });
        part
    }
}

fn part_of(id: PageId, entries: &[Entry], first: Option<u64>) -> PagePart {
    PagePart {
        id,
        first,
        len: u32::try_from(entries.len()).unwrap_or(u32::MAX),
        start: entries.first().map_or(0, |entry| entry.envelope.sequence),
        last: entries.last().map_or(0, |entry| entry.envelope.sequence),
        memory: entries.iter().map(Entry::memory).sum(),
        body_bytes: entries.iter().map(Entry::body_bytes).sum(),
        is_asked: false,
    }
}

/// Makes pages of entries that stay in memory.
struct Spill<'a> {
    pages: &'a mut Pages,
    end: Lsn,
    /// Number of entries up to `end` that were not visited yet.
    left: usize,
    bytes: usize,
    bytes_max: usize,
    drafts: Vec<PageDraft>,
    /// Bytes of the draft that takes the next entries; `None` if the next entry begins a new one.
    open: Option<usize>,
}

impl Spill<'_> {
    fn is_done(&self) -> bool {
        self.left == 0 || self.bytes >= self.bytes_max
    }

    fn visit(&mut self, entry: &mut Entry) {
        let lsn = entry.envelope.lsn;
        if lsn == Lsn::NONE {
            return;
        }
        let (is_needed, is_pending) = match entry.page.and_then(|page| self.pages.get(page)) {
            Some(page) => (!page.is_kept(), !page.is_kept() && !page.is_failed),
            None => (true, false),
        };
        let is_meant = is_needed && lsn <= self.end;
        self.left -= usize::from(is_meant);
        // A page has no foreign entries between its own, so that pages can be ordered.
        if !is_meant || is_pending || self.bytes >= self.bytes_max {
            self.open = None;
            return;
        }
        if self.open.is_none_or(|bytes| bytes >= PAGE_BYTES_GOAL) {
            let priority = entry.envelope.priority;
            let id = self.pages.begin(priority, true, 0);
            self.drafts.push(PageDraft {
                id,
                priority,
                is_durable: true,
                is_copy: true,
                entries: Vec::new(),
                dues: Vec::new(),
                is_of_stream: false,
            });
            self.open = Some(0);
        }
        let (Some(draft), Some(bytes)) = (self.drafts.last_mut(), &mut self.open) else { return };
        if let Some(failed) = entry.page {
            self.pages.let_go(failed, 1);
        }
        self.pages.grow(draft.id, lsn);
        entry.page = Some(draft.id);
        *bytes += entry.memory();
        self.bytes += entry.memory();
        draft.entries.push(entry.clone());
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod bounds;
#[cfg(test)]
mod steps;
