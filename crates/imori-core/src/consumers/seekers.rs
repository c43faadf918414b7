//! All seekers of a queue. Consumers with the same selector share one, so that each message is looked at once
//! for all.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::seeker::{Seeker, Selection};
use crate::selector::Selector;

/// The index of a seeker among those of its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeekerId(usize);

/// The seekers of a queue.
#[derive(Debug, Default)]
pub(crate) struct Seekers {
    slots: Vec<Slot>,
    /// Indices of empty slots.
    free: Vec<usize>,
    /// Seekers that others may join, by selector and whether they drop unmatched messages.
    shared: HashMap<(Selector, bool), SeekerId, FixedState>,
    /// Number of ready messages that consumers refused.
    refused: usize,
}

#[derive(Debug, Default)]
struct Slot {
    /// Number of consumers that use the seeker; 0 if the slot is free.
    users: usize,
    /// `None` while it is lent.
    seeker: Option<Box<Seeker>>,
}

impl Seekers {
    /// Adds a consumer. One with a selector joins the others with the same selector, unless it `is_alone`.
    pub(crate) fn join(&mut self, selection: Selection, is_alone: bool) -> SeekerId {
        let is_shared = !is_alone && !selection.is_browser;
        let key = selection.selector.clone().filter(|_| is_shared);
        let Some(key) = key.map(|selector| (selector, selection.drops_unwanted)) else {
            return self.add(Seeker::new(selection));
        };
        if let Some(id) = self.shared.get(&key).copied()
            && let Some(slot) = self.slots.get_mut(id.0)
        {
            slot.users += 1;
            return id;
        }
        let id = self.add(Seeker::new(selection));
        self.shared.insert(key, id);
        id
    }

    fn add(&mut self, seeker: Seeker) -> SeekerId {
        let slot = Slot { users: 1, seeker: Some(Box::new(seeker)) };
        match self.free.pop() {
            Some(at) => {
                if let Some(place) = self.slots.get_mut(at) {
                    *place = slot;
                }
                SeekerId(at)
            }
            None => {
                self.slots.push(slot);
                SeekerId(self.slots.len() - 1)
            }
        }
    }

    /// Removes one consumer of a seeker.
    pub(crate) fn leave(&mut self, id: SeekerId) {
        let Some(slot) = self.slots.get_mut(id.0) else { return };
        slot.users -= 1;
        if slot.users > 0 {
            return;
        }
        let slot = std::mem::take(slot);
        self.free.push(id.0);
        if let Some(seeker) = slot.seeker {
            self.refused -= seeker.refused_len();
            self.close(id, &seeker);
        }
    }

    /// Lets one consumer of a seeker go on alone from the same place.
    pub(crate) fn part(&mut self, id: SeekerId) -> SeekerId {
        let Some(slot) = self.slots.get_mut(id.0) else { return id };
        let Some(seeker) = slot.seeker.as_deref().cloned() else { return id };
        if slot.users > 1 {
            slot.users -= 1;
            return self.add(seeker);
        }
        self.close(id, &seeker);
        id
    }

    /// Lets no other consumer join a seeker.
    fn close(&mut self, id: SeekerId, seeker: &Seeker) {
        if let Some(key) = seeker.key()
            && self.shared.get(&key) == Some(&id)
        {
            self.shared.remove(&key);
        }
    }

    /// Finds a seeker, unless it is lent.
    #[inline]
    pub(crate) fn find(&self, id: SeekerId) -> Option<&Seeker> {
        self.slots.get(id.0)?.seeker.as_deref()
    }

    /// Finds a seeker to be changed, unless it is lent.
    pub(crate) fn find_mut(&mut self, id: SeekerId) -> Option<&mut Seeker> {
        self.slots.get_mut(id.0)?.seeker.as_deref_mut()
    }

    /// Lends a seeker, until [`Seekers::give_back`] returns it.
    pub(crate) fn lend(&mut self, id: SeekerId) -> Option<Box<Seeker>> {
        self.slots.get_mut(id.0)?.seeker.take()
    }

    /// Takes back a seeker that was lent.
    pub(crate) fn give_back(&mut self, id: SeekerId, seeker: Box<Seeker>) {
        if let Some(slot) = self.slots.get_mut(id.0).filter(|slot| slot.users > 0) {
            slot.seeker = Some(seeker);
        }
    }

    /// All seekers that are not lent.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut Seeker> {
        self.slots.iter_mut().filter_map(|slot| slot.seeker.as_deref_mut())
    }

    /// Notes that the only consumer of a seeker refused a message; `false` if it refused too many to remember
    /// another.
    pub(crate) fn refuse(&mut self, id: SeekerId, sequence: u64) -> bool {
        let noted = self.find_mut(id).is_some_and(|seeker| seeker.refuse(sequence));
        self.refused += usize::from(noted);
        noted
    }

    /// Notes that a message has left the queue.
    #[inline]
    pub(crate) fn note_left(&mut self, sequence: u64) {
        if self.refused > 0 {
            let forgotten = self.all_mut().filter_map(|seeker| seeker.forget_refused(sequence).then_some(()));
            let forgotten = forgotten.count();
            self.refused -= forgotten;
        }
    }
}
