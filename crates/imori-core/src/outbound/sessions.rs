//! The sessions of a connection, found by id or, when delivering, by slot.

use super::answers::Held;
use super::session::Session;
use crate::confirm::Progress;
use crate::id::SessionId;

/// The slot of [`SessionId::FIRST`].
pub(super) const FIRST_SLOT: u16 = 0;

/// The open sessions, and the ended ones that still have waiting answers.
#[derive(Debug)]
pub(super) struct Sessions {
    /// The first is always in use; the others are in use if `by_id` lists them.
    slots: Vec<Session>,
    free: Vec<u16>,
    /// All sessions but the first, by rising id.
    by_id: Vec<(SessionId, u16)>,
    /// Slots of the sessions with waiting answers, in the order in which they began to wait.
    record_ref: Vec<u16>,
    /// Number of deliveries of forgotten sessions.
    delivered_before: u64,
    /// The last round in which sessions were marked as seen.
    round: u64,
}

impl Default for Sessions {
    fn default() -> Self {
        Sessions {
            slots: vec![Session::default()],
            free: Vec::new(),
            by_id: Vec::new(),
            record_ref: Vec::new(),
            delivered_before: 0,
            round: 0,
        }
    }
}

impl Sessions {
    /// Number of sessions, including the first.
    pub(super) fn len(&self) -> usize {
        self.by_id.len() + 1
    }

    /// All sessions but the first, by rising id. An ended session is included until nothing of it is left.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Session> {
        self.by_id.iter().filter_map(|(_, slot)| self.at(*slot))
    }

    #[inline]
    pub(super) fn slot(&self, id: SessionId) -> Option<u16> {
        if id == SessionId::FIRST {
            return Some(FIRST_SLOT);
        }
        let index = self.by_id.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.by_id.get(index).map(|(_, slot)| *slot)
    }

    #[inline]
    pub(super) fn at(&self, slot: u16) -> Option<&Session> {
        self.slots.get(usize::from(slot))
    }

    #[inline]
    pub(super) fn at_mut(&mut self, slot: u16) -> Option<&mut Session> {
        self.slots.get_mut(usize::from(slot))
    }

    pub(super) fn find(&self, id: SessionId) -> Option<&Session> {
        self.at(self.slot(id)?)
    }

    pub(super) fn find_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.at_mut(self.slot(id)?)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.slots.iter_mut()
    }

    /// Adds a session; `false` if the id is in use or all slots are taken.
    pub(super) fn add(&mut self, id: SessionId) -> bool {
        let Err(index) = self.by_id.binary_search_by_key(&id, |(id, _)| *id) else { return false };
        if id == SessionId::FIRST {
            return false;
        }
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let Ok(slot) = u16::try_from(self.slots.len()) else { return false };
                self.slots.push(Session::default());
                slot
            }
        };
        if let Some(session) = self.at_mut(slot) {
            session.id = id;
        }
        self.by_id.insert(index, (id, slot));
        true
    }

    /// Forgets a session that has ended and has nothing left. Its id may be used again.
    pub(super) fn forget_if_over(&mut self, slot: u16) {
        let Some(session) = self.at_mut(slot) else { return };
        if !session.is_over() {
            return;
        }
        let (id, delivered) = (session.id, session.delivered());
        *session = Session::default();
        self.delivered_before += delivered;
        if let Ok(index) = self.by_id.binary_search_by_key(&id, |(id, _)| *id) {
            self.by_id.remove(index);
            self.free.push(slot);
        }
    }

    /// Number of deliveries sent, settled or not.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered_before + self.slots.iter().map(Session::delivered).sum::<u64>()
    }

    /// Begins a round in which no session was seen yet.
    pub(super) fn next_round(&mut self) -> u64 {
        self.round += 1;
        self.round
    }

    // ---- Waiting answers.

    pub(super) fn is_any_holding(&self) -> bool {
        !self.record_ref.is_empty()
    }

    pub(super) fn hold(&mut self, slot: u16, held: Held) {
        let Some(session) = self.slots.get_mut(usize::from(slot)) else { return };
        if session.answers.is_empty() {
            self.record_ref.push(slot);
        }
        session.answers.hold(held);
    }

    /// Takes the list of sessions with waiting answers, for [`Sessions::put_back_holding`] to restore.
    pub(super) fn take_holding(&mut self) -> Vec<u16> {
        std::mem::take(&mut self.record_ref)
    }

    /// Restores the list, without the sessions that have no waiting answers left.
    pub(super) fn put_back_holding(&mut self, mut record_ref: Vec<u16>) {
        record_ref.retain(|slot| self.at(*slot).is_some_and(|session| !session.answers.is_empty()));
        self.record_ref = record_ref;
    }

    /// Whether the last waiting answer of some session only waits for the journal to be written, not synced.
    pub(super) fn wait_for_write(&self, journal: Progress) -> bool {
        let mut record_ref = self.record_ref.iter().filter_map(|slot| self.at(*slot));
        record_ref.any(|session| session.answers.wait_for_write(journal))
    }

    /// Drops the waiting answers of one session.
    pub(super) fn clear_answers_of(&mut self, slot: u16) {
        if let Some(session) = self.at_mut(slot) {
            session.answers.clear();
        }
        self.record_ref.retain(|record_ref| *record_ref != slot);
    }

    /// Drops all waiting answers.
    pub(super) fn clear_answers(&mut self) {
        for slot in self.take_holding() {
            if let Some(session) = self.at_mut(slot) {
                session.answers.clear();
            }
        }
    }
}
