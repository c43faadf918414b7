//! Gives out one message to a client that asks for it and is no consumer.

use super::leave::Effects;
use super::queue::Queue;
use crate::consumers::is_grouped;
use crate::delivery::{Delivery, Outcome, RecordRef, Taken};
use crate::entries::Entry;
use crate::features::QueueFeatures;
use crate::id::ConnectionId;
use crate::message::DeathReason;
use crate::time::Time;

/// The answer to a client that asks for one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Got {
    /// A message is on its way.
    Delivered {
        /// Messages that wait behind it.
        left: usize,
    },
    /// No message waits, or only such as are in groups of others.
    Empty,
    /// The first message is on disk. The asker is told to go on once the answer is known, and asks again.
    Pending,
}

impl Queue {
    /// Gives out the first message that waits and is in no group that somebody has; `give` takes it and how many wait.
    pub fn get(
        &mut self,
        now: Time,
        asker: ConnectionId,
        give: &mut impl FnMut(&Delivery<'_>, usize) -> Taken,
        effects: &mut Effects,
    ) -> Got {
        self.send_pending_dead_letters(now, effects);
        self.move_due(now, effects);
        self.expire(now, effects);
        while !self.is_held_up()
            && let Some(entry) = self.take_for_asker(now)
        {
            if self.is_expired(&entry, now) {
                self.die(entry, DeathReason::Expired, now, effects);
                continue;
            }
            let left = self.ready.len();
            let taken = give(&entry.delivery(&entry.address()), left);
            self.activity.got(taken, entry.envelope.is_redelivered);
            match taken {
                Taken::Settled => {
                    self.note_wait(&entry, now, effects);
                    self.leave(&entry);
                    effects.settled.extend(self.record_ref(entry.envelope.lsn));
                }
                Taken::Unsettled => {
                    self.note_wait(&entry, now, effects);
                    self.note_given_out(&entry, effects);
                    if !self.consumers.has_groups() && is_grouped(&entry.message.view()) {
                        // Until it is settled nobody else gets a message of its group.
                        self.begin_groups();
                    }
                    self.give_out(entry);
                    self.charge_room();
                }
                // The connection ends, and nobody reads the answer.
                Taken::Full | Taken::Gone => {
                    self.ready.put_back(entry);
                    return Got::Empty;
                }
            }
            return Got::Delivered { left };
        }
        if self.ready.is_empty() || self.ready.has_front() && !self.is_held_up() {
            return Got::Empty;
        }
        self.features.add(QueueFeatures::ASKERS);
        let waiting = self.askers.get_or_insert_default();
        if !waiting.contains(&asker) {
            waiting.push(asker);
        }
        Got::Pending
    }

    fn take_for_asker(&mut self, now: Time) -> Option<Entry> {
        if self.consumers.has_groups() { self.take_allowed(now) } else { self.ready.pop() }
    }

    /// Gives out up to `count` messages that wait in memory, of at most `bytes_max` bytes of bodies but for the first, to
    /// an operator who settles all of them so at once. Each comes with how many wait behind it.
    pub fn take(
        &mut self,
        now: Time,
        (count, bytes_max): (usize, usize),
        outcome: Outcome,
        effects: &mut Effects,
    ) -> Vec<(Entry, usize)> {
        self.send_pending_dead_letters(now, effects);
        self.move_due(now, effects);
        self.expire(now, effects);
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while taken.len() < count
            && !self.is_held_up()
            && let Some(entry) = self.ready.pop()
        {
            if self.is_expired(&entry, now) {
                self.die(entry, DeathReason::Expired, now, effects);
                continue;
            }
            bytes += entry.message.view().body.len();
            if bytes > bytes_max && !taken.is_empty() {
                self.ready.put_back(entry);
                break;
            }
            self.activity.got(Taken::Unsettled, entry.envelope.is_redelivered);
            self.note_wait(&entry, now, effects);
            taken.push((entry.clone(), self.ready.len()));
            self.give_out(entry);
            self.charge_room();
        }
        for (entry, _) in &taken {
            self.settle(entry.envelope.sequence, outcome, now, effects);
        }
        taken
    }

    /// Takes a message out that waits in memory and goes elsewhere; gives the record that said it was here, which is
    /// none where it had no record. `None` where it is not there.
    pub(crate) fn take_waiting(&mut self, priority: u8, sequence: u64) -> Option<Option<RecordRef>> {
        let entry = self.ready.take(priority, sequence)?;
        if let Some(page) = entry.page {
            self.pages.note_hole(page, sequence);
        }
        self.leave(&entry);
        Some(self.record_ref(entry.envelope.lsn))
    }

    /// The connections that asked for a message and can be answered now.
    pub(crate) fn answerable(&mut self) -> Vec<ConnectionId> {
        let is_known = !self.is_held_up() && (self.ready.is_empty() || self.ready.has_front());
        if is_known { self.take_askers() } else { Vec::new() }
    }

    /// The connections that asked for a message and wait; they are answered as the queue is deleted.
    pub fn take_askers(&mut self) -> Vec<ConnectionId> {
        self.askers.take().map_or_else(Vec::new, |askers| *askers)
    }
}
