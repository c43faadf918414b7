//! Groups of messages: all messages of a group go to one consumer, as long as it is there.
//!
//! ```text
//!         delivered               its consumer leaves,           all settled
//!  free ─────────────► with one ──────────────────────► handed over ───────────► free
//!                      consumer   or gets its last one  (no owner)
//! ```
//!
//! Groups are told apart by a hash of their names, so that the memory for them is bounded: groups with the
//! same hash are one group.

use std::cell::Cell;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::id::Reader;
use crate::limits::GROUPS_MAX;
use crate::message::{MessageView, Property};

/// The groups of a queue that have an owner or unsettled deliveries.
#[derive(Debug, Default)]
pub(crate) struct Groups(HashMap<u16, Group, FixedState>);

#[derive(Debug)]
struct Group {
    /// The consumer that gets all its messages; `None` while the group is handed over.
    owner: Option<Reader>,
    /// Number of unsettled deliveries.
    unsettled: u32,
    /// The lowest number of a message that another consumer passed because of the owner.
    passed: Cell<u64>,
}

/// Whether a message is in a group.
#[inline]
pub(crate) fn is_grouped(message: &MessageView<'_>) -> bool {
    message.properties.has(Property::GroupId)
}

/// Whether a message is the last of its group.
#[inline]
pub(crate) fn ends_group(message: &MessageView<'_>) -> bool {
    message.properties.has(Property::GroupEnd)
}

impl Groups {
    /// Whether `reader` (`None` for a get) may take this message: its group is free, or belongs to the
    /// reader.
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

    /// Notes that a consumer got a message. The consumer owns its group from now on, or no longer if this was
    /// the last message. Returns the same as [`Groups::note_back`].
    pub(crate) fn give(&mut self, reader: Reader, message: &MessageView<'_>) -> Option<u64> {
        let number = number(message)?;
        let is_last = ends_group(message);
        self.group(number).owner = Some(reader).filter(|_| !is_last);
        self.free(number)
    }

    /// Notes an unsettled delivery.
    pub(crate) fn note_out(&mut self, message: &MessageView<'_>) {
        if let Some(group) = number(message).map(|number| self.group(number)) {
            group.unsettled += 1;
        }
    }

    /// Notes that a delivery is settled. If this frees its group, returns the number from which on other
    /// consumers may want messages that they passed.
    pub(crate) fn note_back(&mut self, message: &MessageView<'_>) -> Option<u64> {
        let number = number(message)?;
        let group = self.0.get_mut(&number)?;
        group.unsettled = group.unsettled.saturating_sub(1);
        self.free(number)
    }

    /// Takes the groups from a consumer that leaves. Returns the same as [`Groups::note_back`].
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

    /// Whether all groups are free.
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

    /// Forgets a group if it is free.
    fn free(&mut self, number: u16) -> Option<u64> {
        let is_free = |group: &Group| group.owner.is_none() && group.unsettled == 0;
        if !self.0.get(&number).is_some_and(is_free) {
            return None;
        }
        let passed = self.0.remove(&number)?.passed.get();
        Some(passed).filter(|passed| *passed < u64::MAX)
    }
}

/// The number of a message's group, from the hash of its name.
fn number(message: &MessageView<'_>) -> Option<u16> {
    let hash = FixedState::default().hash_one(message.property(Property::GroupId)?);
    u16::try_from(hash % u64::from(GROUPS_MAX)).ok()
}
