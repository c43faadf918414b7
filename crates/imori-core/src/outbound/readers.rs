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
    /// Messages as they are published.
    Live(Box<Subscription>),
}

/// The exchange, key and group of a live subscription, so that it can be unbound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// The exchange.
    pub exchange: Name,
    /// The pattern, in the wildcard syntax that its client used.
    pub key: crate::route::BindingKey,
    /// The group it is a member of.
    pub group: Option<Name>,
}

/// The properties of a reader, as it is added.
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
    /// How much it may have.
    pub credit: Credit,
    /// The name under which its client finds it again, from another connection too.
    pub name: Option<Name>,
}

/// A reader and its state.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) spec: ReaderSpec,
    /// The slot of its session.
    pub(super) session: u16,
    /// Its place in the session's list of readers.
    pub(super) place: u32,
    /// The reader waits in its session's line.
    pub(super) is_in_line: bool,
    /// The reader's queue was told that it can take no more, and waits to be told otherwise.
    pub(super) is_starved: bool,
    /// Messages may wait in its queue: what comes past the queue would overtake them.
    pub(super) is_behind: bool,
    /// The reader gets nothing before an answer that waits for the journal has left.
    pub(super) is_held: bool,
    /// The reader gives up its credit once it has all that there is.
    pub(super) is_draining: bool,
    /// The reader has a filter, a selector or a limit: a delivery to a reader that has none pays one test.
    pub(super) has_conditions: bool,
    /// Live deliveries it had.
    pub(super) delivered: u32,
    /// Live deliveries it may have in all.
    pub(super) delivered_max: Option<NonZeroU32>,
    /// Subjects that its rights keep from it, though its pattern matches them.
    pub(super) filter: Option<SubjectFilter>,
    /// The condition of a live subscription, and the readers of what it names.
    pub(super) selector: Option<Box<(Selector, HeaderReaders)>>,
}

impl Record {
    /// Notes whether it has any of the conditions of a live delivery, once one of them has changed.
    pub(super) fn note_conditions(&mut self) {
        self.has_conditions =
            self.filter.is_some() || self.selector.is_some() || self.delivered_max.is_some();
    }

    /// Tells whether a live subscription wants a message.
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

    /// The queue of a consumer.
    pub(super) fn queue(&self) -> Option<QueueId> {
        let Source::Queue(queue) = self.spec.source else { return None };
        Some(queue)
    }

    /// How many more live deliveries it may have, if that is limited.
    pub(super) fn left(&self) -> Option<usize> {
        self.delivered_max.map(|max| max.get().saturating_sub(self.delivered) as usize)
    }
}

/// A table of readers whose ids are not reused.
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

    /// The readers from this slot on, each with its slot.
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

    /// Takes at most this many readers out, each with its source. No reader can be added after that.
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
