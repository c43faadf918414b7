//! Seekers: the looks of consumers that do not take messages in order, because they select, browse or must
//! not have some messages.
//!
//! A seeker goes through the queue in order and remembers how far it has looked, so that it looks at unwanted
//! messages once. A message that is released to a place behind that mark is noted, and looked at again.

use std::collections::BTreeSet;

use crate::delivery::Delivery;
use crate::limits::{REFUSED_MAX, RETURNED_MAX};
use crate::message::{HeaderReaders, NoHeaders};
use crate::selector::{MessageFields, Selector};

/// The messages that a consumer wants from its queue, if these are not all.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The condition on messages; `None` for all.
    pub selector: Option<Selector>,
    /// The consumer sees messages and takes none.
    pub is_browser: bool,
    /// Messages that the selector does not match are dropped: the queue exists for this selector alone.
    pub drops_unwanted: bool,
    /// The readers of the headers that the selector names.
    pub headers: HeaderReaders,
}

impl Selection {
    /// Selects all messages, for a consumer that cannot take them in order for another reason.
    pub(crate) fn all() -> Selection {
        Selection { selector: None, is_browser: false, drops_unwanted: false, headers: |_| &NoHeaders }
    }
}

/// The position up to which a consumer, or several consumers with one selector, has looked.
#[derive(Debug, Clone)]
pub(crate) struct Seeker {
    selection: Selection,
    /// For each priority, the number below which all messages were looked at.
    marks: Vec<u64>,
    /// The number below which all messages of any priority were looked at.
    end: u64,
    /// Priority and number of messages that were released to places already passed.
    returned: BTreeSet<(u8, u64)>,
    /// Numbers of messages that the consumer refused, and does not get again.
    refused: BTreeSet<u64>,
}

impl Seeker {
    pub(crate) fn new(selection: Selection) -> Seeker {
        Seeker { selection, marks: Vec::new(), end: 0, returned: BTreeSet::new(), refused: BTreeSet::new() }
    }

    pub(crate) fn is_browser(&self) -> bool {
        self.selection.is_browser
    }

    pub(crate) fn drops_unwanted(&self) -> bool {
        self.selection.drops_unwanted
    }

    /// The key by which consumers share a seeker: the selector, and whether unmatched messages are dropped.
    pub(crate) fn key(&self) -> Option<(Selector, bool)> {
        Some((self.selection.selector.clone()?, self.selection.drops_unwanted))
    }

    /// Whether the seeker wants a message.
    #[inline]
    pub(crate) fn wants(&self, delivery: &Delivery<'_>) -> bool {
        !self.has_refused(delivery.sequence) && self.selects(delivery)
    }

    /// Whether the consumer refused a message that is ready.
    #[inline]
    pub(crate) fn has_refused(&self, sequence: u64) -> bool {
        !self.refused.is_empty() && self.refused.contains(&sequence)
    }

    /// Whether the selector, if there is one, matches a message.
    #[inline]
    pub(crate) fn selects(&self, delivery: &Delivery<'_>) -> bool {
        let Some(selector) = &self.selection.selector else { return true };
        let Delivery { message, address, failures, is_redelivered, .. } = *delivery;
        let headers = (self.selection.headers)(message.properties.origin);
        selector.matches(&MessageFields {
            message,
            headers,
            subject: address.subject(),
            failures,
            is_redelivered,
        })
    }

    /// The number below which all messages of a priority were looked at, except the released ones.
    #[inline]
    pub(crate) fn mark(&self, priority: u8) -> u64 {
        self.marks.get(usize::from(priority)).copied().unwrap_or(0).max(self.end)
    }

    /// Notes that all messages of a priority below this number were looked at.
    #[inline]
    pub(crate) fn set_mark(&mut self, priority: u8, mark: u64) {
        let at = usize::from(priority);
        if self.marks.len() <= at {
            self.marks.resize(at + 1, 0);
        }
        if let Some(place) = self.marks.get_mut(at) {
            *place = mark;
        }
    }

    /// Notes that all messages below this number were looked at.
    pub(crate) fn end_at(&mut self, end: u64) {
        self.end = end;
        self.marks.clear();
    }

    /// Goes back to this number, because a message from there on may be wanted now.
    pub(crate) fn look_again_from(&mut self, sequence: u64) {
        if !self.selection.is_browser {
            self.end = self.end.min(sequence);
            self.marks.iter_mut().for_each(|mark| *mark = (*mark).min(sequence));
            self.returned.retain(|(_, returned)| *returned < sequence);
        }
    }

    /// Whether all messages below this number were looked at.
    pub(crate) fn is_at(&self, end: u64) -> bool {
        self.end >= end && self.returned.is_empty()
    }

    /// Whether a message has not been looked at yet.
    pub(crate) fn is_new(&self, priority: u8, sequence: u64) -> bool {
        sequence >= self.mark(priority) || self.returned.contains(&(priority, sequence))
    }

    /// Notes that a message was released. A browser has seen it, or does without.
    pub(crate) fn note_returned(&mut self, priority: u8, sequence: u64) {
        if self.selection.is_browser || sequence >= self.mark(priority) {
            return;
        }
        self.returned.insert((priority, sequence));
        if self.returned.len() > RETURNED_MAX {
            // Looking through the queue again finds this many as fast.
            self.returned.clear();
            self.end_at(0);
        }
    }

    /// The first released message of a priority.
    pub(crate) fn returned(&self, priority: u8) -> Option<u64> {
        self.returned.range((priority, 0)..=(priority, u64::MAX)).next().map(|(_, sequence)| *sequence)
    }

    /// Notes that a released message was looked at.
    pub(crate) fn forget_returned(&mut self, priority: u8, sequence: u64) {
        self.returned.remove(&(priority, sequence));
    }

    /// Notes that the consumer refused a message; `false` if it refused [`REFUSED_MAX`] already.
    pub(crate) fn refuse(&mut self, sequence: u64) -> bool {
        // SECURITY LIM-10.
        self.refused.len() < REFUSED_MAX && self.refused.insert(sequence)
    }

    /// Forgets a refusal; returns whether there was one.
    pub(crate) fn forget_refused(&mut self, sequence: u64) -> bool {
        self.refused.remove(&sequence)
    }

    /// Number of ready messages that the consumer refused.
    pub(crate) fn refused_len(&self) -> usize {
        self.refused.len()
    }
}
