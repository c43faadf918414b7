//! The look of consumers that do not take just what comes first: they select, browse, or must not have some messages.
//!
//! A seeker goes through the queue in order and remembers how far it has looked, so that it looks once at what it does
//! not want. What comes back to a place that it has passed is noted, and looked at again.

use std::collections::BTreeSet;

use crate::delivery::Delivery;
use crate::limits::{REFUSED_MAX, RETURNED_MAX};
use crate::message::{HeaderReaders, NoHeaders};
use crate::selector::{MessageFields, Selector};

/// The messages that a consumer wants of its queue, other than all.
#[derive(Debug, Clone)]
pub struct Selection {
    /// Only messages of which this is true.
    pub selector: Option<Selector>,
    /// The consumer sees messages and takes none.
    pub is_browser: bool,
    /// Messages that the selector does not take are dropped: the queue is there for this selector alone.
    pub drops_unwanted: bool,
    /// The readers of what the selector names.
    pub headers: HeaderReaders,
}

impl Selection {
    /// All messages; the consumer cannot have just what comes first for another reason.
    pub(crate) fn all() -> Selection {
        Selection { selector: None, is_browser: false, drops_unwanted: false, headers: |_| &NoHeaders }
    }
}

/// How far a consumer has looked, or several of one selector together.
#[derive(Debug, Clone)]
pub(crate) struct Seeker {
    selection: Selection,
    /// For each priority, the number below which it has looked at all messages.
    marks: Vec<u64>,
    /// The number below which it has looked at all messages of any priority.
    end: u64,
    /// Priority and number of messages that came back to places that it has passed.
    returned: BTreeSet<(u8, u64)>,
    /// Numbers of messages that its consumer had, and does not get again.
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

    /// The selector by which others may share it, and whether messages are dropped that this does not take.
    pub(crate) fn key(&self) -> Option<(Selector, bool)> {
        Some((self.selection.selector.clone()?, self.selection.drops_unwanted))
    }

    /// Tells whether it wants a message.
    #[inline]
    pub(crate) fn wants(&self, delivery: &Delivery<'_>) -> bool {
        !self.has_refused(delivery.sequence) && self.selects(delivery)
    }

    /// Tells whether its consumer refused a message that waits.
    #[inline]
    pub(crate) fn has_refused(&self, sequence: u64) -> bool {
        !self.refused.is_empty() && self.refused.contains(&sequence)
    }

    /// Tells whether its selector, if it has one, is true of a message.
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

    /// The number below which it has looked at all messages of a priority but those that came back.
    #[inline]
    pub(crate) fn mark(&self, priority: u8) -> u64 {
        self.marks.get(usize::from(priority)).copied().unwrap_or(0).max(self.end)
    }

    /// Notes that it has looked at all messages of a priority below this number.
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

    /// Notes that it has looked at all messages below this number.
    pub(crate) fn end_at(&mut self, end: u64) {
        self.end = end;
        self.marks.clear();
    }

    /// Goes back to this number, from which on something may be wanted now that was not.
    pub(crate) fn look_again_from(&mut self, sequence: u64) {
        if !self.selection.is_browser {
            self.end = self.end.min(sequence);
            self.marks.iter_mut().for_each(|mark| *mark = (*mark).min(sequence));
            self.returned.retain(|(_, returned)| *returned < sequence);
        }
    }

    /// Tells whether it has looked at all messages below this number.
    pub(crate) fn is_at(&self, end: u64) -> bool {
        self.end >= end && self.returned.is_empty()
    }

    /// Tells whether a message is still to be looked at.
    pub(crate) fn is_new(&self, priority: u8, sequence: u64) -> bool {
        sequence >= self.mark(priority) || self.returned.contains(&(priority, sequence))
    }

    /// Notes that a message came back to its place. A browser has seen it, or does without.
    pub(crate) fn note_returned(&mut self, priority: u8, sequence: u64) {
        if self.selection.is_browser || sequence >= self.mark(priority) {
            return;
        }
        self.returned.insert((priority, sequence));
        if self.returned.len() > RETURNED_MAX {
            // So many are found as soon by looking through the queue again.
            self.returned.clear();
            self.end_at(0);
        }
    }

    /// The first message of a priority that came back.
    pub(crate) fn returned(&self, priority: u8) -> Option<u64> {
        self.returned.range((priority, 0)..=(priority, u64::MAX)).next().map(|(_, sequence)| *sequence)
    }

    /// Notes that it has looked at a message that came back.
    pub(crate) fn forget_returned(&mut self, priority: u8, sequence: u64) {
        self.returned.remove(&(priority, sequence));
    }

    /// Notes that its consumer refused a message; false where these are [`REFUSED_MAX`] already.
    pub(crate) fn refuse(&mut self, sequence: u64) -> bool {
        // SECURITY LIM-10.
        self.refused.len() < REFUSED_MAX && self.refused.insert(sequence)
    }

    /// Forgets that a message was refused; tells whether it was.
    pub(crate) fn forget_refused(&mut self, sequence: u64) -> bool {
        self.refused.remove(&sequence)
    }

    /// How many messages it refused that wait.
    pub(crate) fn refused_len(&self) -> usize {
        self.refused.len()
    }
}
