//! Pages in the journal: a start found their records there and left them.
//!
//! Such a page is a list of records. When the queue has read it like any other page, its messages are in
//! memory as if they had just arrived. Before the journal frees the first of these records, the page is
//! written into a segment. From then on it is like all others.

use super::draft::PageDraft;
use crate::confirm::Lsn;
use crate::entries::{Entry, Gathered, InJournal, JournalRead, PageId, PagePart, Part};
use crate::features::QueueFeatures;
use crate::message::MessageView;
use crate::queue::Queue;
use crate::time::Time;

impl Queue {
    /// Describes a message that the queue had before a restart, is not delayed, and stays in the journal.
    /// Also returns the delayed messages that were due before it arrived.
    pub(crate) fn found_in_journal(
        &mut self,
        view: &MessageView<'_>,
        (lsn, file): (Lsn, u32),
        came: Time,
    ) -> (Vec<Entry>, InJournal) {
        let before = self.due_before(came);
        self.need_record(lsn);
        let message = InJournal {
            lsn,
            file,
            priority: self.priority_of(view.properties),
            memory: Entry::memory_of(view),
            body_bytes: view.body.len() as u64,
        };
        (before, message)
    }

    /// Makes a page of the gathered messages, behind all others of their priority.
    pub(crate) fn restore_gathered(&mut self, priority: u8, gathered: &mut Gathered, doubtful_below: Lsn) {
        let is_doubtful = gathered.lsns.first().is_some_and(|first| *first < doubtful_below);
        let gathered = std::mem::take(gathered);
        let Ok(len @ 1..) = u32::try_from(gathered.lsns.len()) else { return };
        let (memory, body_bytes) = (gathered.memory, gathered.body_bytes);
        let first = self.next_sequence;
        self.next_sequence += u64::from(len);
        let page = gathered.into_page();
        let id = self.pages.restore_in_journal(priority, page, first, is_doubtful);
        let last = self.next_sequence - 1;
        let part = PagePart { id, first: None, len, start: first, last, memory, body_bytes, is_asked: false };
        self.ready.restore(priority, Part::Page(part));
    }

    /// Requests the pages in the journal with records up to `through`, or not far above, to be read and
    /// written into a segment.
    ///
    /// Returns about `bytes_max` bytes. The caller answers for each page with [`Queue::draft_of`] or
    /// [`Queue::not_moved`].
    pub fn moving_pages(&mut self, through: Lsn, bytes_max: usize) -> Vec<(PageId, JournalRead)> {
        let (_, end) = self.live_records.through(through);
        let (mut moving, mut bytes) = (Vec::new(), 0);
        for id in self.pages.in_journal() {
            if bytes >= bytes_max {
                break;
            }
            let Some(page) = self.pages.get_mut(id) else { continue };
            let Some(in_journal) = &mut page.in_journal else { continue };
            if in_journal.is_moving || in_journal.read.lsns.first().is_none_or(|first| *first > end) {
                continue;
            }
            in_journal.is_moving = true;
            moving.push((id, in_journal.read.clone()));
            bytes += self.ready.part(page.priority, id).map_or(0, |part| part.memory);
        }
        moving
    }

    /// Makes a draft of a moving page's entries; `None` if the page is no longer needed.
    pub fn draft_of(&mut self, id: PageId, mut entries: Vec<Entry>) -> Option<PageDraft> {
        let page = self.pages.get(id)?;
        let positions = page.in_journal.as_ref()?.positions();
        for ((index, position), entry) in (0..).zip(positions).zip(&mut entries) {
            entry.position = position;
            entry.envelope.sequence = page.first_sequence.unwrap_or(0) + index;
            entry.envelope.is_redelivered = page.is_doubtful;
        }
        let priority = page.priority;
        self.copying += 1;
        self.features.add(QueueFeatures::PAGES);
        Some(PageDraft {
            id,
            priority,
            is_durable: true,
            is_copy: true,
            entries,
            dues: Vec::new(),
            is_of_stream: false,
        })
    }

    /// Notes that a page could not be read and moved; it stays in the journal.
    pub fn not_moved(&mut self, id: PageId) {
        self.pages.failed(id);
    }
}

#[cfg(test)]
mod tests {
    use super::super::restore::RestoredPart;
    use super::*;
    use crate::entries::PagePlace;
    use crate::id::{DurableQueueId, VhostId};
    use crate::memory::Gauge;
    use crate::name::Name;
    use crate::queue::{QueueSettings, entry};

    /// Two of these messages make a page.
    const MEMORY: usize = 100;

    /// A queue that found eight messages in the journal, two to a page: 1 and 2, 3 and 4, and so on. A page
    /// is split where the doubtful messages end.
    fn queue(doubtful_below: u64) -> Queue {
        let settings = QueueSettings { is_durable: true, ..QueueSettings::default() };
        let mut queue = Queue::new(VhostId(0), Name::from("q"), settings, Gauge::default(), Time(1));
        queue.make_durable(DurableQueueId(1));
        let found = (1..=8).map(|lsn| {
            queue.need_record(Lsn(lsn));
            RestoredPart::InJournal(InJournal {
                lsn: Lsn(lsn),
                file: 0,
                priority: 0,
                memory: MEMORY,
                body_bytes: 10,
            })
        });
        let found = found.collect();
        assert!(queue.restore(0, found, (2 * MEMORY, Lsn(doubtful_below))).is_empty());
        assert_eq!((queue.ready_len(), queue.ready.body_bytes(), queue.floor()), (8, 80, Some(Lsn(1))));
        queue
    }

    #[test]
    fn the_oldest_pages_move_as_many_as_are_asked_for() {
        for (through, bytes_max, expected) in [
            (8, 0, &[][..]),
            (8, 1, &[1]),
            (8, 2 * MEMORY, &[1]),
            (8, 2 * MEMORY + 1, &[1, 3]),
            (8, 4 * MEMORY, &[1, 3]),
            (8, usize::MAX, &[1, 3, 5, 7]),
            (0, usize::MAX, &[]),
            (2, usize::MAX, &[1]),
            (3, usize::MAX, &[1, 3]),
        ] {
            let moving = queue(0).moving_pages(Lsn(through), bytes_max);
            let firsts: Vec<u64> = moving.iter().map(|(_, read)| read.lsns[0].0).collect();
            assert_eq!(firsts, expected, "through {through}, {bytes_max} bytes");
        }
    }

    #[test]
    fn what_moves_keeps_its_place_and_is_as_doubtful_as_it_was() {
        // The record below which messages are doubtful; the number of doubtful messages.
        for (doubtful_below, doubtful) in [(0, 0), (1, 0), (2, 1), (3, 2), (7, 6), (9, 8)] {
            let mut queue = queue(doubtful_below);
            let moving = queue.moving_pages(Lsn(8), usize::MAX);
            let drafts = moving.into_iter().map(|(id, read)| {
                let entries = read.lsns.iter().copied().map(|lsn| entry(lsn, b"body")).collect();
                queue.draft_of(id, entries).expect("it is needed")
            });
            let drafts: Vec<PageDraft> = drafts.collect();
            for (segment, draft) in (0..).zip(&drafts) {
                queue.page_written(draft, PagePlace { segment, index: 0 });
            }
            assert_eq!((queue.ready_len(), queue.pages_len(), queue.floor()), (8, drafts.len(), None));
            let entries: Vec<Entry> = drafts.into_iter().flat_map(|draft| draft.entries).collect();
            let shown =
                |entry: &Entry| (entry.envelope.sequence, entry.position, entry.envelope.is_redelivered);
            let expected: Vec<_> = (1..=8).map(|lsn| (lsn, lsn << 8, lsn <= doubtful)).collect();
            assert_eq!(entries.iter().map(shown).collect::<Vec<_>>(), expected, "below {doubtful_below}");
        }
    }

    #[test]
    fn what_could_not_be_moved_stays_and_is_tried_again() {
        let mut queue = queue(0);
        for round in 0..3 {
            let moving = queue.moving_pages(Lsn(8), usize::MAX);
            assert_eq!(moving.len(), 4, "round {round}");
            assert!(queue.moving_pages(Lsn(8), usize::MAX).is_empty(), "they are on their way");
            moving.into_iter().for_each(|(id, _)| queue.not_moved(id));
            assert_eq!((queue.ready_len(), queue.pages_len(), queue.floor()), (8, 4, Some(Lsn(1))));
        }
    }
}
