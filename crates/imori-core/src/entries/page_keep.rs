//! The rule by which entries of a page on disk become messages of its queue again.

use std::borrow::Cow;

use super::entry::Entry;
use super::page_part::PagePart;
use super::pages::Page;
use super::ranges::Ranges;

/// Selects the entries of a page on disk that its queue still has.
#[derive(Debug)]
pub(crate) struct PageKeep<'p> {
    /// The sequence number of the page's first entry, if the entries were renumbered.
    first_sequence: Option<u64>,
    /// The sequence number of the first needed entry.
    from: Option<u64>,
    len: usize,
    /// Records that are settled; `None` if the page is not durable.
    settled: Option<Cow<'p, Ranges>>,
    /// Sequence numbers of entries that were taken out.
    holes: Cow<'p, Ranges>,
    is_doubtful: bool,
    priority: u8,
}

impl PageKeep<'_> {
    /// The rule for a part of a page.
    pub(crate) fn of<'p>(page: &'p Page, part: &PagePart) -> PageKeep<'p> {
        PageKeep {
            first_sequence: page.first_sequence,
            from: part.first,
            len: part.len as usize,
            settled: page.is_durable.then_some(Cow::Borrowed(page.settled())),
            holes: Cow::Borrowed(page.holes()),
            is_doubtful: page.is_doubtful,
            priority: page.priority,
        }
    }

    /// The rule for a page of a stream, of which removed entries are known by their sequence numbers alone.
    pub(crate) fn by_sequence(self) -> Self {
        PageKeep { settled: None, ..self }
    }

    /// Makes the rule independent of its page.
    pub(crate) fn into_owned(self) -> PageKeep<'static> {
        let settled = self.settled.map(|settled| Cow::Owned(settled.into_owned()));
        PageKeep { settled, holes: Cow::Owned(self.holes.into_owned()), ..self }
    }

    /// Whether the queue still has the entry at `index` in the page, if `kept` entries before it are kept.
    /// Also gives the entry its sequence number and state in the queue.
    pub(crate) fn keeps(&self, index: u64, entry: &mut Entry, kept: usize) -> bool {
        let envelope = &mut entry.envelope;
        if let Some(first) = self.first_sequence {
            envelope.sequence = first + index;
        }
        let is_before = self.from.is_some_and(|from| envelope.sequence < from);
        let is_settled = self.settled.as_ref().is_some_and(|settled| settled.contains(envelope.lsn.0));
        let is_out = self.holes.contains(envelope.sequence);
        if is_before || is_out || kept >= self.len || is_settled {
            return false;
        }
        envelope.is_redelivered |= self.is_doubtful;
        envelope.priority = self.priority;
        true
    }
}
