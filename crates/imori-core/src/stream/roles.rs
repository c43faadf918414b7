//! The messages of a stream that have a part besides being read: they never expire, mark a deletion, or are published
//! again at a time.

use std::collections::{BTreeMap, BTreeSet};

use crate::message::MessageRole;
use crate::time::Time;

/// The parts of messages by sequence number. Most streams have none.
#[derive(Debug, Default)]
pub(crate) struct Roles {
    all: BTreeMap<u64, MessageRole>,
    due: BTreeSet<(Time, u64)>,
}

impl Roles {
    /// Whether no message has a part.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The part of a message.
    pub(crate) fn of(&self, sequence: u64) -> MessageRole {
        self.all.get(&sequence).copied().unwrap_or_default()
    }

    /// Sets the part of a message.
    pub(crate) fn set(&mut self, sequence: u64, role: MessageRole) {
        self.remove(sequence);
        if role == MessageRole::default() {
            return;
        }
        self.all.insert(sequence, role);
        self.due.extend(role.next_due.map(|due| (due, sequence)));
    }

    /// Forgets a message that is gone.
    pub(crate) fn remove(&mut self, sequence: u64) {
        if let Some(due) = self.all.remove(&sequence).and_then(|role| role.next_due) {
            self.due.remove(&(due, sequence));
        }
    }

    /// The message that is to be published first, and when.
    pub(crate) fn first_due(&self) -> Option<(Time, u64)> {
        self.due.first().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_that_is_due_first_is_found_until_it_is_gone() {
        let mut roles = Roles::default();
        let due = |at| MessageRole { next_due: Some(Time(at)), ..MessageRole::default() };
        roles.set(1, due(20));
        roles.set(2, due(10));
        roles.set(3, MessageRole { never_expires: true, ..MessageRole::default() });
        roles.set(4, MessageRole::default());
        assert_eq!(roles.first_due(), Some((Time(10), 2)));
        roles.set(2, due(30));
        assert_eq!(roles.first_due(), Some((Time(20), 1)));
        assert!(roles.of(3).never_expires);
        (1..4).for_each(|sequence| roles.remove(sequence));
        assert!(roles.is_empty());
        assert_eq!(roles.first_due(), None);
    }
}
