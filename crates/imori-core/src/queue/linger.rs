//! A message dies, and lingers where a full disk has no room for it elsewhere.
//!
//! One that moves is written anew, and the place that it had is free only after that. So it takes room for as long as
//! there is enough of it for what gives room back. Without, it is out to nobody: its record says that it is here, and
//! another, of a few bytes, that it was rejected, by who had it or by a queue that had no place for it.

use super::entry::Entry;
use super::leave::Effects;
use super::lingering::Lingering;
use super::queue::Queue;
use crate::limits::{LINGERING_BYTES_MAX, RECORD_SLACK_BYTES};
use crate::message::{DeathReason, Deaths, Envelope};
use crate::time::Time;

/// Bytes of which a move takes a multiple, where it is written without others.
const MOVED_BYTES: usize = 4096;

/// Bytes of one death of a history, as most names are short.
const DEATH_BYTES: usize = 128;

impl Queue {
    /// Lets an entry go that is neither ready nor out any more: it is buried, as soon as there is room for that.
    pub(super) fn die(&mut self, mut entry: Entry, reason: DeathReason, now: Time, effects: &mut Effects) {
        // It has a record here, or may get one where it goes.
        let is_kept =
            || self.holding(entry.envelope.lsn).is_some() || entry.message.view().head.is_persistent;
        let moves = self.settings().dead_letter.is_some() && is_kept();
        // Nothing overtakes what lingers.
        if !moves || self.lingering.is_none() && effects.take_room(moved_bytes(&entry)) {
            self.leave(&entry);
            self.bury(&entry, reason, now, effects);
            return;
        }
        if reason == DeathReason::Rejected {
            entry.envelope.is_rejected = true;
        }
        if self.doom(&entry.envelope).is_some() {
            effects.lingering.extend(self.count(&entry, entry.envelope.failures));
        }
        let sequence = entry.envelope.sequence;
        let lingering = self.lingering.get_or_insert_with(|| Box::new(Lingering::new(now)));
        lingering.add(sequence, reason, entry.memory());
        self.unsettled.insert(sequence, entry);
        self.charge_room();
    }

    /// Buries what lingers, as far as there is room.
    pub fn bury_lingering(&mut self, now: Time, effects: &mut Effects) {
        let Some(mut lingering) = self.lingering.take() else { return };
        while let Some((sequence, reason)) = lingering.first() {
            let bytes = self.unsettled.get(&sequence).map_or(0, moved_bytes);
            if !effects.take_room(bytes) {
                lingering.tried(now);
                self.lingering = Some(lingering);
                return;
            }
            let entry = self.unsettled.remove(&sequence);
            lingering.remove(sequence, entry.as_ref().map_or(0, Entry::memory));
            if let Some(entry) = entry {
                self.give_back_room();
                self.leave(&entry);
                self.bury(&entry, reason, now, effects);
            }
        }
    }

    /// Tells whether so much lingers that nothing else dies, and nothing is given out that could.
    pub(super) fn is_held_up(&self) -> bool {
        self.lingering.as_ref().is_some_and(|lingering| lingering.memory() >= LINGERING_BYTES_MAX)
    }

    /// Tells whether this message died and is still here.
    pub(super) fn lingers(&self, entry: &Entry) -> bool {
        self.lingering.as_ref().is_some_and(|lingering| lingering.has(entry.envelope.sequence))
    }

    /// Tells why a message is not given out again, if that is so.
    pub(super) fn doom(&self, envelope: &Envelope) -> Option<DeathReason> {
        self.doom_after(envelope, envelope.failures)
    }

    /// Tells why a message would not be given out again after so many failures, if that is so.
    pub(super) fn doom_after(&self, envelope: &Envelope, failures: u32) -> Option<DeathReason> {
        if envelope.is_rejected {
            return Some(DeathReason::Rejected);
        }
        let limit = self.settings().delivery_limit?;
        (failures > limit).then_some(DeathReason::DeliveryLimit)
    }
}

/// About how many bytes of the journal it takes that an entry moves.
fn moved_bytes(entry: &Entry) -> usize {
    let deaths = entry.envelope.deaths.as_deref().map_or(0, Deaths::len);
    let bytes = entry.written_bytes() + (deaths + 1) * DEATH_BYTES + 2 * RECORD_SLACK_BYTES;
    bytes.next_multiple_of(MOVED_BYTES)
}

#[cfg(test)]
mod tests;
