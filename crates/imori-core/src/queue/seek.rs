//! Delivery to seekers, the consumers that select or browse: each looks through the queue on its own, once.
//!
//! A look ends at a message that the consumer wants, at a page on disk, which is then read, or when others
//! should have the queue. It resumes at the next change of the queue.

use std::sync::Arc;

use super::leave::Effects;
use super::queue::Queue;
use crate::consumers::{Seeker, Selection, ends_group, is_grouped};
use crate::delivery::{Delivery, Taken};
use crate::entries::{Entry, Looked, PageId, Stand};
use crate::id::Reader;
use crate::limits::SEEK_AT_ONCE;
use crate::message::{DeathReason, MessageView};
use crate::time::Time;

/// The result of a look.
enum Sought {
    /// A wanted message, its priority and where it stands.
    Message(Entry, u8, Stand),
    /// The priority of an expired message and where it stands.
    Expired(u8, Stand),
    /// The priority of a message that no consumer wants, and where it stands.
    Unwanted(u8, Stand),
    /// The priority of a page that has to be read first, and the page.
    OnDisk(u8, PageId),
    /// The budget is spent: others should have the queue first.
    Busy,
    /// No message is left.
    End,
}

impl Queue {
    /// Lets all seekers look on for as long as their consumers take messages.
    pub(crate) fn seek(
        &mut self,
        now: Time,
        offer: &mut impl FnMut(Reader, &Delivery<'_>) -> Taken,
        effects: &mut Effects,
    ) {
        self.seek_again = None;
        self.sought.clear();
        if !self.consumers.has_seekers() {
            return;
        }
        let (mut budget, mut after) = (SEEK_AT_ONCE, None);
        while !self.is_held_up()
            && let Some((turn, reader)) = self.consumers.next_seeker(after)
        {
            let Some(mut seeker) = self.consumers.lend(reader) else { return };
            let sought = self.look(Some(reader), &mut seeker, now, &mut budget);
            let mut is_full = false;
            let is_first_of_group = |entry: &Entry| is_grouped(&entry.message.view());
            match sought {
                Sought::Message(entry, ..) if !self.consumers.has_groups() && is_first_of_group(&entry) => {
                    self.consumers.give_back(reader, seeker);
                    self.begin_groups();
                    continue;
                }
                Sought::Message(entry, priority, stand) => {
                    let taken = offer(reader, &entry.delivery(&entry.address()));
                    is_full = matches!(taken, Taken::Full | Taken::Gone);
                    if !is_full {
                        let message = Arc::clone(&entry.message);
                        self.hand_over(&mut seeker, (entry, priority, stand), taken, now, effects);
                        self.consumers.served(reader, &message.view());
                        // Seekers at the end may want what the ended group held back: start again with the
                        // first.
                        after = after.filter(|_| !ends_group(&message.view()));
                    }
                }
                Sought::Expired(priority, stand) => {
                    if let Some(entry) = self.take_out(priority, stand) {
                        self.die(entry, DeathReason::Expired, now, effects);
                    }
                }
                Sought::Unwanted(priority, stand) => {
                    if let Some(entry) = self.take_out(priority, stand) {
                        self.leave(&entry);
                        effects.settled.extend(self.record_ref(entry.envelope.lsn));
                    }
                }
                Sought::OnDisk(priority, page) => {
                    self.sought.push((priority, page));
                    after = Some(turn);
                }
                Sought::Busy => self.seek_again = Some(now),
                Sought::End => {
                    seeker.end_at(self.next_sequence);
                    after = Some(turn);
                }
            }
            self.consumers.give_back(reader, seeker);
            if is_full {
                self.consumers.wait(reader);
            }
            if self.seek_again.is_some() {
                return;
            }
        }
    }

    /// Keeps groups of messages together from now on.
    #[cold]
    pub(crate) fn begin_groups(&mut self) {
        self.consumers.begin_groups();
        self.renew_features();
    }

    /// Lets seekers look on after the last message of a group was delivered, for what the group held back.
    #[inline]
    pub(crate) fn seek_behind(
        &mut self,
        given_out: &MessageView<'_>,
        now: Time,
        offer: &mut impl FnMut(Reader, &Delivery<'_>) -> Taken,
        effects: &mut Effects,
    ) {
        if ends_group(given_out) {
            self.seek(now, offer, effects);
        }
    }

    /// Looks for the next message that `reader` (`None` for a get) wants.
    fn look(&self, reader: Option<Reader>, seeker: &mut Seeker, now: Time, budget: &mut usize) -> Sought {
        for (priority, lane) in self.ready.lanes_by_priority() {
            while let Some(sequence) = seeker.returned(priority) {
                if *budget == 0 {
                    return Sought::Busy;
                }
                *budget -= 1;
                let is_wanted = |entry: &&Entry| {
                    let address = entry.address();
                    let delivery = entry.delivery(&address);
                    seeker.selects(&delivery) && self.may_have(reader, seeker, &delivery)
                };
                if let Some(entry) = lane.released.get(&sequence).filter(is_wanted) {
                    return Sought::Message(entry.clone(), priority, Stand::Released(sequence));
                }
                seeker.forget_returned(priority, sequence);
            }
            let (before, mut mark, mut is_busy) = (seeker.mark(priority), 0, false);
            let (mut found, mut is_unwanted) = (None, false);
            let looked = lane.look_from(before, |entry| {
                is_busy = *budget == 0;
                if is_busy {
                    return true;
                }
                *budget -= 1;
                let (is_expired, address) = (self.is_expired(entry, now), entry.address());
                let delivery = entry.delivery(&address);
                let is_selected = is_expired || seeker.selects(&delivery);
                if is_expired || is_selected && self.may_have(reader, seeker, &delivery) {
                    found = Some(entry).filter(|_| !is_expired).cloned();
                    return true;
                }
                mark = entry.envelope.sequence + 1;
                is_unwanted = !is_selected && seeker.drops_unwanted();
                is_unwanted
            });
            if mark > before {
                seeker.set_mark(priority, mark);
            }
            match (looked, found) {
                (Looked::Stopped(_), _) if is_busy => return Sought::Busy,
                (Looked::Stopped(stand), _) if is_unwanted => return Sought::Unwanted(priority, stand),
                (Looked::Stopped(stand), Some(entry)) => return Sought::Message(entry, priority, stand),
                (Looked::Stopped(stand), None) => return Sought::Expired(priority, stand),
                (Looked::OnDisk(page), _) => return Sought::OnDisk(priority, page),
                (Looked::End, _) => {}
            }
        }
        Sought::End
    }

    /// Takes the first message in memory that a client may get without being a consumer.
    pub(crate) fn take_allowed(&mut self, now: Time) -> Option<Entry> {
        let (mut all, mut budget) = (Seeker::new(Selection::all()), SEEK_AT_ONCE);
        match self.look(None, &mut all, now, &mut budget) {
            Sought::Message(_, priority, stand) | Sought::Expired(priority, stand) => {
                self.take_out(priority, stand)
            }
            Sought::Unwanted(..) | Sought::OnDisk(..) | Sought::Busy | Sought::End => None,
        }
    }

    /// Whether `reader` (`None` for a get) may take this message: it did not refuse it, and no other has its
    /// group.
    #[inline]
    fn may_have(&self, reader: Option<Reader>, seeker: &Seeker, delivery: &Delivery<'_>) -> bool {
        let is_free = seeker.is_browser() || self.consumers.may_have(reader, delivery);
        is_free && !seeker.has_refused(delivery.sequence)
    }

    /// Notes that a consumer took the message that it was offered. A browser only moves on.
    fn hand_over(
        &mut self,
        seeker: &mut Seeker,
        (entry, priority, stand): (Entry, u8, Stand),
        taken: Taken,
        now: Time,
        effects: &mut Effects,
    ) {
        let sequence = entry.envelope.sequence;
        seeker.forget_returned(priority, sequence);
        if sequence >= seeker.mark(priority) {
            seeker.set_mark(priority, sequence + 1);
        }
        if seeker.is_browser() {
            return;
        }
        self.activity.delivered(taken, entry.envelope.is_redelivered);
        if let Some(entry) = self.take_out(priority, stand) {
            self.note_taken(entry, taken, now, effects);
        }
    }

    /// Takes a message out of its place in memory.
    fn take_out(&mut self, priority: u8, stand: Stand) -> Option<Entry> {
        let (entry, is_first) = self.ready.take_at(priority, stand)?;
        if let Some(page) = entry.page.filter(|_| !is_first) {
            self.pages.note_hole(page, entry.envelope.sequence);
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests;
