//! Groups of messages: all messages of a group go to one consumer, as long as that is there.
//!
//! ```text
//!         delivered               its consumer goes,             all settled
//!  free ─────────────► with one ──────────────────────► handed over ───────────► free
//!                      consumer   or gets its last one  (nobody has it)
//! ```
//!
//! Groups are told apart by a hash of their names, so that what is remembered of them is bounded: groups of one hash
//! are one group.

use std::cell::Cell;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::id::Reader;
use crate::limits::GROUPS_MAX;
use crate::message::{MessageView, Property};

/// The groups of a queue that somebody has.
#[derive(Debug, Default)]
pub(crate) struct Groups(HashMap<u16, Group, FixedState>);

#[derive(Debug)]
struct Group {
    /// The consumer that gets all its messages; `None` while it is handed over.
    owner: Option<Reader>,
    /// Deliveries of it that are not settled.
    unsettled: u32,
    /// The lowest number of a message that a consumer passed because another has the group.
    passed: Cell<u64>,
}

/// Tells whether a message is in a group.
#[inline]
pub(crate) fn is_grouped(message: &MessageView<'_>) -> bool {
    message.properties.has(Property::GroupId)
}

/// Tells whether a message is the last of its group.
#[inline]
pub(crate) fn ends_group(message: &MessageView<'_>) -> bool {
    message.properties.has(Property::GroupEnd)
}

impl Groups {
    /// Tells whether a consumer, or somebody who is none, may have this message: nobody has its group, or the consumer
    /// has it.
    pub(crate) fn allow(&self, reader: Option<Reader>, message: &MessageView<'_>, sequence: u64) -> bool {
        let Some(group) = number(message).and_then(|number| self.0.get(&number)) else { return true };
        let is_allowed = match group.owner {
            Some(owner) => Some(owner) == reader,
            None => group.unsettled == 0,
        };
        if !is_allowed {
            group.passed.set(group.passed.get().min(sequence));
        }
        is_allowed
    }

    /// Notes that a consumer got a message: its group is the consumer's, or nobody's where that was its last one. Gives
    /// what [`Groups::note_back`] gives.
    pub(crate) fn give(&mut self, reader: Reader, message: &MessageView<'_>) -> Option<u64> {
        let number = number(message)?;
        let is_last = ends_group(message);
        self.group(number).owner = Some(reader).filter(|_| !is_last);
        self.free(number)
    }

    /// Notes a delivery that is not settled.
    pub(crate) fn note_out(&mut self, message: &MessageView<'_>) {
        if let Some(group) = number(message).map(|number| self.group(number)) {
            group.unsettled += 1;
        }
    }

    /// Notes that a delivery is settled. Where that frees its group, gives the number from which on somebody may want
    /// messages now.
    pub(crate) fn note_back(&mut self, message: &MessageView<'_>) -> Option<u64> {
        let number = number(message)?;
        let group = self.0.get_mut(&number)?;
        group.unsettled = group.unsettled.saturating_sub(1);
        self.free(number)
    }

    /// Takes its groups from a consumer that goes; gives what [`Groups::note_back`] gives.
    pub(crate) fn leave(&mut self, reader: Reader) -> Option<u64> {
        let mut own: Vec<u16> = Vec::new();
        for (number, group) in &mut self.0 {
            if group.owner == Some(reader) {
                group.owner = None;
                own.push(*number);
            }
        }
        own.into_iter().filter_map(|number| self.free(number)).min()
    }

    /// Tells whether nobody has any.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn group(&mut self, number: u16) -> &mut Group {
        self.0.entry(number).or_insert_with(|| Group {
            owner: None,
            unsettled: 0,
            passed: Cell::new(u64::MAX),
        })
    }

    /// Forgets a group that nobody has.
    fn free(&mut self, number: u16) -> Option<u64> {
        let is_free = |group: &Group| group.owner.is_none() && group.unsettled == 0;
        if !self.0.get(&number).is_some_and(is_free) {
            return None;
        }
        let passed = self.0.remove(&number)?.passed.get();
        Some(passed).filter(|passed| *passed < u64::MAX)
    }
}

/// The number of a message's group.
fn number(message: &MessageView<'_>) -> Option<u16> {
    let hash = FixedState::default().hash_one(message.property(Property::GroupId)?);
    u16::try_from(hash % u64::from(GROUPS_MAX)).ok()
}
