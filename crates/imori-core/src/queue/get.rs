//! Delivery of one message to a client that is not a consumer.

use super::leave::Effects;
use super::queue::Queue;
use crate::consumers::is_grouped;
use crate::delivery::{Delivery, Outcome, RecordRef, Taken};
use crate::entries::Entry;
use crate::features::QueueFeatures;
use crate::id::ConnectionId;
use crate::message::DeathReason;
use crate::time::Time;

/// The result of getting one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Got {
    /// A message was delivered.
    Delivered {
        /// Number of ready messages behind it.
        left: usize,
    },
    /// No message is ready, or every ready message belongs to a group that a consumer holds.
    Empty,
    /// The first message is on disk. The client's connection resumes once its page is read, and tries again.
    Pending,
}

impl Queue {
    /// Delivers the first ready message that may go to a client that is not a consumer. `give` takes the
    /// delivery and the number of ready messages behind it.
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
                        // No other reader gets a message of this group until this one is settled.
                        self.begin_groups();
                    }
                    self.give_out(entry);
                    self.charge_room();
                }
                // The connection is closing, and the answer will not be read.
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

    /// Takes up to `count` ready messages from memory, for an operator, and settles all of them with
    /// `outcome`. Stops before their bodies exceed `bytes_max` bytes, but takes at least one. Returns each
    /// message with the number of ready messages behind it.
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

    /// Removes a ready message in memory that is being moved elsewhere. Returns its record, if it had one; `None` if
    /// there is no such message.
    pub(crate) fn take_waiting(&mut self, priority: u8, sequence: u64) -> Option<Option<RecordRef>> {
        let entry = self.ready.take(priority, sequence)?;
        if let Some(page) = entry.page {
            self.pages.note_hole(page, sequence);
        }
        self.leave(&entry);
        Some(self.record_ref(entry.envelope.lsn))
    }

    /// Takes the connections that wait to get a message, if the queue can answer them now.
    pub(crate) fn answerable(&mut self) -> Vec<ConnectionId> {
        let is_known = !self.is_held_up() && (self.ready.is_empty() || self.ready.has_front());
        if is_known { self.take_askers() } else { Vec::new() }
    }

    /// Takes the connections that wait to get a message, so that they are answered when the queue is deleted.
    pub fn take_askers(&mut self) -> Vec<ConnectionId> {
        self.askers.take().map_or_else(Vec::new, |askers| *askers)
    }
}
