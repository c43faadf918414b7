//! Inspection of waiting messages, which changes nothing: no credit, no mark of redelivery, no wake-up.
//!
//! A peek returns messages in memory at once. For a page on disk it returns where to read the page and which
//! of its entries the queue still has, so that the caller reads it without the lock.

use super::queue::Queue;
use crate::entries::{Entry, Looked, Page, PageId, PageKeep, PagePart, PageSource, Part};
use crate::index::Filter;

/// A part of the messages that a peek found, in the order of delivery.
#[derive(Debug)]
pub enum PeekPart {
    /// Messages in memory.
    Entries(Vec<Entry>),
    /// Messages on disk.
    Page(PeekPage),
}

/// Messages of a page that the caller has to read.
#[derive(Debug)]
pub struct PeekPage {
    /// Where to read the page.
    pub source: PageSource,
    keep: PageKeep<'static>,
    skip: usize,
    count: usize,
    /// The sequence numbers of the requested messages of a stream; `None` for any.
    sequences: Option<Vec<u64>>,
}

/// The messages that a peek found.
#[derive(Debug, Default)]
pub struct Peek {
    /// The parts, in the order of delivery.
    pub parts: Vec<PeekPart>,
    /// A page is still being written and cannot be read yet. Messages behind it are missing: try again later.
    pub is_being_written: bool,
}

impl PeekPage {
    /// Picks the requested messages from the entries of the page, given as they stand on disk.
    #[must_use]
    pub fn pick(&self, entries: Vec<Entry>) -> Vec<Entry> {
        let mut kept = 0;
        let mut picked = Vec::new();
        for (index, mut entry) in (0..).zip(entries) {
            if self.keep.keeps(index, &mut entry, kept) {
                kept += 1;
                let sequence = entry.envelope.sequence;
                if self.sequences.as_ref().is_none_or(|wanted| wanted.contains(&sequence)) {
                    picked.push(entry);
                }
            }
        }
        picked.into_iter().skip(self.skip).take(self.count).collect()
    }
}

impl Queue {
    /// Looks at up to `count` waiting messages, behind the first `skip`.
    #[must_use]
    pub fn peek(&self, mut skip: usize, mut count: usize) -> Peek {
        let mut peek = Peek::default();
        for lane in self.ready.lanes() {
            let mut released = lane.released.values().peekable();
            for part in &lane.parts {
                let start = part.start();
                let before = std::iter::from_fn(|| released.next_if(|entry| entry.envelope.sequence < start));
                peek.take(before, &mut skip, &mut count);
                if count == 0 {
                    return peek;
                }
                match part {
                    Part::Memory(run) if skip >= run.len() => skip -= run.len(),
                    Part::Memory(run) => peek.take(run.iter(), &mut skip, &mut count),
                    Part::Page(part) if skip >= part.len as usize => skip -= part.len as usize,
                    Part::Page(part) => {
                        let page = self.pages.get(part.id);
                        match page.and_then(|page| self.peek_page(page, part, skip, count)) {
                            Some(page) => {
                                count -= count.min(part.len as usize - skip);
                                skip = 0;
                                peek.parts.push(PeekPart::Page(page));
                            }
                            None => {
                                peek.is_being_written = true;
                                return peek;
                            }
                        }
                    }
                    Part::Packed(packed) if skip >= packed.len() as usize => skip -= packed.len() as usize,
                    Part::Packed(packed) => {
                        for (page, part) in packed.iter() {
                            if skip >= part.len as usize {
                                skip -= part.len as usize;
                                continue;
                            }
                            let peeked = self.peek_page(&page, &part, skip, count);
                            peek.parts.extend(peeked.map(PeekPart::Page));
                            count -= count.min(part.len as usize - skip);
                            skip = 0;
                            if count == 0 {
                                return peek;
                            }
                        }
                    }
                }
            }
            peek.take(released, &mut skip, &mut count);
        }
        peek
    }

    /// Looks at up to `count` messages of a stream that readers may see: those from the sequence number `from` on whose
    /// subjects `filter` takes.
    #[must_use]
    pub fn peek_stream(&self, from: u64, filter: &Filter, count: usize) -> Peek {
        let mut peek = Peek::default();
        let (Some(stream), Some(lane)) = (&self.stream, self.ready.lanes().next()) else { return peek };
        let (mut next, mut left) = (stream.index.next(filter, from), count);
        while let Some(sequence) = next.filter(|sequence| left > 0 && *sequence < stream.visible_end) {
            let mut entry = None;
            let looked = lane.look_from(sequence, |found| {
                entry = (found.envelope.sequence == sequence).then(|| found.clone());
                true
            });
            let mut last = sequence;
            match looked {
                Looked::Stopped(_) | Looked::End => {
                    let (mut skip, mut one) = (0, 1);
                    peek.take(entry.iter(), &mut skip, &mut one);
                    left -= 1;
                }
                Looked::OnDisk(id) => {
                    let mut wanted = vec![sequence];
                    let Some(mut page) = self.peek_stream_page(id, sequence) else {
                        peek.is_being_written = true;
                        return peek;
                    };
                    while let Some(follows) =
                        last.checked_add(1).and_then(|from| stream.index.next(filter, from))
                        && wanted.len() < left
                        && follows <= page.1
                        && follows < stream.visible_end
                    {
                        wanted.push(follows);
                        last = follows;
                    }
                    left -= wanted.len();
                    page.0.sequences = Some(wanted);
                    peek.parts.push(PeekPart::Page(page.0));
                }
            }
            next = last.checked_add(1).and_then(|from| stream.index.next(filter, from));
        }
        peek
    }

    /// The page of a stream that has the message `sequence`, and the number of the page's last message.
    fn peek_stream_page(&self, id: PageId, sequence: u64) -> Option<(PeekPage, u64)> {
        let lane = self.ready.lanes().next()?;
        let has = |part: &PagePart| part.start <= sequence && sequence <= part.last;
        for part in &lane.parts {
            match part {
                Part::Page(part) if part.id == id => {
                    return Some((self.peek_page(self.pages.get(id)?, part, 0, usize::MAX)?, part.last));
                }
                Part::Packed(packed) if packed.start() <= sequence && sequence <= packed.last() => {
                    let (page, part) = packed.iter().find(|(_, part)| has(part))?;
                    return Some((self.peek_page(&page, &part, 0, usize::MAX)?, part.last));
                }
                Part::Page(_) | Part::Packed(_) | Part::Memory(_) => {}
            }
        }
        None
    }

    /// Tells an entry, which was read from a page and not taken in, how often it failed before the last start.
    pub fn recall(&self, entry: &mut Entry) {
        if let Some(count) = self.counts.get(&entry.envelope.lsn) {
            count.apply_to(&mut entry.envelope);
        }
    }

    pub(super) fn peek_page(
        &self,
        page: &Page,
        part: &PagePart,
        skip: usize,
        count: usize,
    ) -> Option<PeekPage> {
        let keep = PageKeep::of(page, part);
        let keep = if self.stream.is_some() { keep.by_sequence() } else { keep };
        Some(PeekPage { source: page.source()?, keep: keep.into_owned(), skip, count, sequences: None })
    }

    /// Finds a message that waits in memory, by priority and sequence number.
    pub(crate) fn waiting(&self, priority: u8, sequence: u64) -> Option<&Entry> {
        self.ready.find(priority, sequence)
    }
}

impl Peek {
    fn take<'e>(&mut self, entries: impl Iterator<Item = &'e Entry>, skip: &mut usize, count: &mut usize) {
        let mut found = Vec::new();
        for entry in entries {
            match (*skip, *count) {
                (_, 0) => break,
                (0, _) => {
                    *count -= 1;
                    found.push(entry.clone());
                }
                _ => *skip -= 1,
            }
        }
        match self.parts.last_mut() {
            Some(PeekPart::Entries(last)) => last.append(&mut found),
            _ if found.is_empty() => {}
            _ => self.parts.push(PeekPart::Entries(found)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::QueueSettings;
    use super::super::test_stage::{Stage, properties_with};
    use super::*;
    use crate::delivery::Outcome;

    fn bodies(peek: &Peek) -> String {
        let entries = peek.parts.iter().flat_map(|part| match part {
            PeekPart::Entries(entries) => entries.as_slice(),
            PeekPart::Page(_) => &[],
        });
        entries.map(|entry| String::from_utf8_lossy(entry.message.view().body).into_owned()).collect()
    }

    #[test]
    fn a_peek_gives_what_would_come_next_and_changes_nothing() {
        let mut stage = Stage::with_reader(QueueSettings { priority_max: Some(2), ..Default::default() }, 2);
        for (body, priority) in [("a", 0), ("b", 0), ("c", 0), ("d", 2), ("e", 1), ("f", 2)] {
            stage.publish_with(body, &properties_with(Some(priority), None), None).unwrap();
        }
        stage.settle(1, Outcome::Release { failed: false });
        let before = format!("{:?}", stage.queue);
        for (skip, count, expected) in [
            (0, 9, "dfeac"),
            (0, 2, "df"),
            (1, 2, "fe"),
            (4, 1, "c"),
            (5, 1, ""),
            (0, 0, ""),
            (usize::MAX, usize::MAX, ""),
        ] {
            assert_eq!(bodies(&stage.queue.peek(skip, count)), expected, "{count} behind {skip}");
        }
        assert_eq!(format!("{:?}", stage.queue), before);
    }
}
