//! Paging of streams: the newest messages stay in memory, and readers of older ones ask for their pages.

use super::draft::{PageDraft, PageWork};
use super::spill::Cutter;
use crate::confirm::Lsn;
use crate::entries::Entry;
use crate::features::QueueFeatures;
use crate::limits::{PAGE_BYTES_GOAL, SEEK_PAGES};
use crate::queue::Queue;
use crate::time::Time;

impl Queue {
    /// Returns the requests of a stream to the pager, if it may keep `share` bytes in memory.
    pub(super) fn stream_page_work(&mut self, now: Time, share: usize) -> Vec<PageWork> {
        let mut work = Vec::new();
        self.note_first_ageing();
        let may_write = self.writing == 0 && self.page_retry.is_none_or(|at| at <= now);
        if may_write && self.ready.memory() > share {
            let drafts = self.cut_oldest(share);
            self.writing += drafts.len();
            if !drafts.is_empty() {
                self.page_retry = None;
                work.push(PageWork::Write(drafts));
            }
        }
        if !self.pages.is_empty() {
            self.features.add(QueueFeatures::PAGES);
            let mut asked = Vec::new();
            if let Some(page) = self.page_of_first_ageing() {
                self.sought.push((0, page));
            }
            for sought in std::mem::take(&mut self.sought) {
                self.ready.ask_for(sought, SEEK_PAGES, &mut self.pages, &mut asked);
            }
            if !asked.is_empty() {
                work.push(PageWork::Read(asked));
            }
            self.ready.pack(&mut self.pages);
        }
        self.report_pages(&mut work);
        work
    }

    /// Moves the oldest messages out of memory. Most of those that were read are still on disk.
    fn cut_oldest(&mut self, share: usize) -> Vec<PageDraft> {
        let page_bytes = PAGE_BYTES_GOAL.min(share / 16).max(1);
        let keeps = self.keeps_records();
        let Queue { ready, pages, gauge, .. } = self;
        let (mut drafts, mut dropped): (Vec<PageDraft>, Vec<Entry>) = (Vec::new(), Vec::new());
        ready.cut_oldest(share / 2, |run, is_whole| {
            let is_durable = |entry: &Entry| keeps && entry.envelope.lsn != Lsn::NONE;
            let (drafts, dropped) = (&mut drafts, &mut dropped);
            let mut cutter = Cutter { pages, priority: 0, page_bytes, is_whole, drafts, dropped };
            cutter.cut(run, is_durable)
        });
        let moved = drafts.iter().map(|draft| draft.entries.len()).sum::<usize>() + dropped.len();
        gauge.sub(moved * Entry::CHARGE);
        drafts.iter_mut().for_each(|draft| draft.is_of_stream = true);
        drafts
    }

    /// The number by which a page knows an entry: its sequence number in a stream, otherwise its record.
    pub(super) fn number_in_page(&self, entry: &Entry) -> Lsn {
        if self.stream.is_some() { Lsn(entry.envelope.sequence) } else { entry.envelope.lsn }
    }
}
