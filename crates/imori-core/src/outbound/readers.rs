//! The consumers and live subscriptions of one connection.

use std::num::NonZeroU32;

use super::credit::Credit;
use crate::delivery::Delivery;
use crate::id::SessionId;
use crate::id::{QueueId, ReaderId};
use crate::message::HeaderReaders;
use crate::name::Name;
use crate::route::SubjectFilter;
use crate::selector::{MessageFields, Selector};

/// The source of a reader's messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A queue, as its consumer.
    Queue(QueueId),
    /// Live messages, as they are published.
    Live(Box<Subscription>),
}

/// The exchange, key and group of a live subscription, which are needed to unbind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// The exchange whose messages it gets.
    pub exchange: Name,
    /// The pattern, in the wildcard syntax that its client used.
    pub key: crate::route::BindingKey,
    /// Its group, if it is a member of one.
    pub group: Option<Name>,
}

/// The properties of a reader when it is added.
#[derive(Debug, Clone)]
pub struct ReaderSpec {
    /// The session that numbers its deliveries.
    pub session: SessionId,
    /// The label that the protocol writes at the head of each delivery.
    pub label: Box<[u8]>,
    /// The source of its messages.
    pub source: Source,
    /// The reader settles its deliveries.
    pub settles: bool,
    /// Its allowance of deliveries.
    pub credit: Credit,
    /// The name by which its client can find it again, even from another connection.
    pub name: Option<Name>,
}

/// A reader and its state.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) spec: ReaderSpec,
    /// The slot of its session.
    pub(super) session: u16,
    /// Its index in the session's list of readers.
    pub(super) place: u32,
    /// The reader waits in its session's line for the window.
    pub(super) is_in_line: bool,
    /// The reader refused a delivery, and its queue waits until it is woken.
    pub(super) is_starved: bool,
    /// Messages may wait in its queue: a message sent past the queue would overtake them.
    pub(super) is_behind: bool,
    /// The reader gets nothing until an answer that waits for the journal has left.
    pub(super) is_held: bool,
    /// The reader gives up its credit once its queue has nothing left for it.
    pub(super) is_draining: bool,
    /// The reader has a filter, a selector or a limit; one flag, so that other readers pay one test per
    /// delivery.
    pub(super) has_conditions: bool,
    /// Number of live deliveries so far.
    pub(super) delivered: u32,
    /// Maximum number of live deliveries; `None` for no limit.
    pub(super) delivered_max: Option<NonZeroU32>,
    /// Withholds subjects that its pattern matches but its rights deny.
    pub(super) filter: Option<SubjectFilter>,
    /// The selector of a live subscription, and the readers of the headers that it names.
    pub(super) selector: Option<Box<(Selector, HeaderReaders)>>,
}

impl Record {
    /// Recomputes `has_conditions`, after one of the conditions changed.
    pub(super) fn note_conditions(&mut self) {
        self.has_conditions =
            self.filter.is_some() || self.selector.is_some() || self.delivered_max.is_some();
    }

    /// Whether a live subscription's selector matches a message.
    pub(super) fn wants(&self, delivery: &Delivery<'_>) -> bool {
        let Some((selector, headers)) = self.selector.as_deref() else { return true };
        let Delivery { message, address, failures, is_redelivered, .. } = *delivery;
        let headers = headers(message.properties.origin);
        selector.matches(&MessageFields {
            message,
            headers,
            subject: address.subject(),
            failures,
            is_redelivered,
        })
    }

    /// The queue, if this is a consumer.
    pub(super) fn queue(&self) -> Option<QueueId> {
        let Source::Queue(queue) = self.spec.source else { return None };
        Some(queue)
    }

    /// Number of live deliveries that the reader may still have, if that is limited.
    pub(super) fn left(&self) -> Option<usize> {
        self.delivered_max.map(|max| max.get().saturating_sub(self.delivered) as usize)
    }
}

/// A table of readers; ids are never reused.
#[derive(Debug, Default)]
pub(super) struct Readers {
    slots: Vec<(u32, Option<Record>)>,
    free: Vec<u32>,
}

impl Readers {
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn add(&mut self, spec: ReaderSpec, session: u16, place: u32) -> ReaderId {
        let record = Some(Record {
            spec,
            session,
            place,
            is_in_line: false,
            is_starved: false,
            is_behind: true,
            is_held: false,
            is_draining: false,
            has_conditions: false,
            delivered: 0,
            delivered_max: None,
            filter: None,
            selector: None,
        });
        if let Some(slot) = self.free.pop()
            && let Some((generation, place)) = self.slots.get_mut(slot as usize)
        {
            *place = record;
            return ReaderId { slot, generation: *generation };
        }
        let slot = u32::try_from(self.slots.len()).expect("readers a connection are limited to far fewer");
        self.slots.push((0, record));
        ReaderId { slot, generation: 0 }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (ReaderId, &Record)> {
        (0..).zip(&self.slots).filter_map(|(slot, (generation, record))| {
            Some((ReaderId { slot, generation: *generation }, record.as_ref()?))
        })
    }

    pub(super) fn get_mut(&mut self, id: ReaderId) -> Option<&mut Record> {
        match self.slots.get_mut(id.slot as usize) {
            Some((generation, record)) if *generation == id.generation => record.as_mut(),
            _ => None,
        }
    }

    pub(super) fn get(&self, id: ReaderId) -> Option<&Record> {
        match self.slots.get(id.slot as usize) {
            Some((generation, record)) if *generation == id.generation => record.as_ref(),
            _ => None,
        }
    }

    pub(super) fn remove(&mut self, id: ReaderId) -> Option<Record> {
        let (generation, place) = self.slots.get_mut(id.slot as usize)?;
        if *generation != id.generation {
            return None;
        }
        let record = place.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(id.slot);
        Some(record)
    }

    /// The reader in this slot.
    pub(super) fn in_slot(&mut self, slot: u32) -> Option<(ReaderId, &mut Record)> {
        let (generation, record) = self.slots.get_mut(slot as usize)?;
        Some((ReaderId { slot, generation: *generation }, record.as_mut()?))
    }

    /// The readers from this slot on, with their slots.
    pub(super) fn specs(&self, first_slot: usize) -> impl Iterator<Item = (usize, &ReaderSpec)> {
        let slots = self.slots.iter().enumerate().skip(first_slot);
        slots.filter_map(|(slot, (_, record))| Some((slot, &record.as_ref()?.spec)))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (ReaderId, &mut Record)> {
        self.slots.iter_mut().enumerate().filter_map(|(slot, (generation, record))| {
            let slot = u32::try_from(slot).ok()?;
            Some((ReaderId { slot, generation: *generation }, record.as_mut()?))
        })
    }

    /// Removes up to `max` readers, and returns them with their sources. No reader can be added afterwards.
    pub(super) fn take(&mut self, max: usize) -> Vec<(ReaderId, Source)> {
        self.free.clear();
        let mut taken = Vec::new();
        while taken.len() < max
            && let Some((generation, record)) = self.slots.pop()
        {
            let slot = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
            taken.extend(record.map(|record| (ReaderId { slot, generation }, record.spec.source)));
        }
        taken
    }
}
