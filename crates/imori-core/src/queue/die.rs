//! The death of a message: it is dead-lettered, or stays as a pending dead letter while the disk has no room.
//!
//! A dead letter is recorded anew, and its old record is freed only after that. It may use the disk space
//! that is not needed to free more. Otherwise it stays in the queue as unsettled, held by no consumer. Its
//! own record still says that it is here, and a record of a few bytes says that it was rejected.

use super::leave::Effects;
use super::pending_dead_letters::PendingDeadLetters;
use super::queue::Queue;
use crate::entries::Entry;
use crate::features::QueueFeatures;
use crate::limits::{PENDING_DEAD_LETTER_BYTES_MAX, RECORD_SLACK_BYTES};
use crate::message::{DeathReason, Deaths, Envelope};
use crate::time::Time;

/// Unit in which the move of a message takes disk space, if it is written alone.
const MOVED_BYTES: usize = 4096;

/// Estimated bytes of one death in a history; most names are short.
const DEATH_BYTES: usize = 128;

impl Queue {
    /// Removes an entry that is no longer ready or unsettled. It is dead-lettered as soon as the disk has
    /// room.
    pub(crate) fn die(&mut self, mut entry: Entry, reason: DeathReason, now: Time, effects: &mut Effects) {
        // The message has a record here, or may get one in its next queue.
        let is_kept =
            || self.record_ref(entry.envelope.lsn).is_some() || entry.message.view().properties.is_persistent;
        let moves = self.settings().dead_letter.is_some() && is_kept();
        // No dead letter overtakes the pending ones.
        if !moves || self.pending_dead_letters.is_none() && effects.take_room(moved_bytes(&entry)) {
            self.leave(&entry);
            self.dead_letter(&entry, reason, now, effects);
            return;
        }
        if reason == DeathReason::Rejected {
            entry.envelope.is_rejected = true;
        }
        if self.death_reason(&entry.envelope).is_some() {
            let counted = self.count(&entry, entry.envelope.failures);
            effects.rare_mut().pending_dead_letters.extend(counted);
        }
        let sequence = entry.envelope.sequence;
        self.features.add(QueueFeatures::PENDING_DEAD_LETTERS);
        let pending = self.pending_dead_letters.get_or_insert_with(|| Box::new(PendingDeadLetters::new(now)));
        pending.add(sequence, reason, entry.memory());
        self.give_out(entry);
        self.charge_room();
    }

    /// Sends the pending dead letters, oldest first, as far as there is room.
    pub fn send_pending_dead_letters(&mut self, now: Time, effects: &mut Effects) {
        let Some(mut pending) = self.pending_dead_letters.take() else { return };
        while let Some((sequence, reason)) = pending.first() {
            let bytes = self.unsettled.get(&sequence).map_or(0, moved_bytes);
            if !effects.take_room(bytes) {
                pending.tried(now);
                self.pending_dead_letters = Some(pending);
                return;
            }
            let entry = self.take_back(sequence);
            pending.remove(sequence, entry.as_ref().map_or(0, Entry::memory));
            if let Some(entry) = entry {
                self.give_back_room();
                self.leave(&entry);
                self.dead_letter(&entry, reason, now, effects);
            }
        }
    }

    /// Whether the pending dead letters are at their limit. Then no other message dies, and none is delivered
    /// that could.
    pub(crate) fn is_held_up(&self) -> bool {
        self.pending_dead_letters
            .as_ref()
            .is_some_and(|pending| pending.memory() >= PENDING_DEAD_LETTER_BYTES_MAX)
    }

    /// Whether this message is a pending dead letter.
    pub(crate) fn is_pending_dead_letter(&self, entry: &Entry) -> bool {
        self.pending_dead_letters.as_ref().is_some_and(|pending| pending.has(entry.envelope.sequence))
    }

    /// The reason why a message must not be delivered again, if there is one.
    pub(crate) fn death_reason(&self, envelope: &Envelope) -> Option<DeathReason> {
        self.death_reason_after(envelope, envelope.failures)
    }

    /// The reason why a message could not be delivered again after this many failures, if there is one.
    pub(crate) fn death_reason_after(&self, envelope: &Envelope, failures: u32) -> Option<DeathReason> {
        if envelope.is_rejected {
            return Some(DeathReason::Rejected);
        }
        let limit = self.settings().delivery_limit?;
        (failures > limit).then_some(DeathReason::DeliveryLimit)
    }
}

/// Estimated bytes of the journal that moving an entry takes.
fn moved_bytes(entry: &Entry) -> usize {
    let deaths = entry.envelope.deaths.as_deref().map_or(0, Deaths::len);
    let bytes = entry.written_bytes() + (deaths + 1) * DEATH_BYTES + 2 * RECORD_SLACK_BYTES;
    bytes.next_multiple_of(MOVED_BYTES)
}

#[cfg(test)]
mod tests;
