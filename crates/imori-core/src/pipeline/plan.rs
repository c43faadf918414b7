//! The plan of a batch: which queues store it on disk, and which have to be locked before it is recorded.
//!
//! A queue never changes either property, so a cached route keeps the answer of the first message.

use std::borrow::Cow;

use super::batch::Batch;
use super::proposal::admit;
use crate::confirm::Level;
use crate::error::BrokerError;
use crate::id::DurableQueueId;
use crate::limits::{RECORD_SLACK_BYTES, SUBJECT_BYTES_MAX};
use crate::message::{Deaths, Property};
use crate::queue::{Durability, Queue};
use crate::record::message_bytes_max;
use crate::room::Purpose;
use crate::route::{DurabilityPlan, Route};
use crate::world::World;

/// Bytes of the sequence number of a message in one stream, in its record.
const SEQUENCE_BYTES_MAX: usize = 16;

/// Bytes of what a publisher asks of streams, in the record of the message: subjects of a schedule, and its times.
const ASKS_BYTES_MAX: usize = 3 * SUBJECT_BYTES_MAX + 256;

/// The plan of a batch that no queue has yet.
pub(crate) struct Plan<'r> {
    /// The queues that store the batch on disk, if any.
    pub(crate) durability: Option<Cow<'r, DurabilityPlan>>,
    /// Whether the queues are locked before the batch is recorded: the messages have ids and some queue
    /// de-duplicates, or some queue is a stream, in which records and messages have one order.
    pub(crate) is_locked: bool,
}

impl<'r> Plan<'r> {
    /// Makes the plan of a publisher's batch.
    #[inline]
    pub(crate) fn of<W: World>(world: &W, route: &'r Route, batch: &Batch<'_>) -> Plan<'r> {
        let none = Plan { durability: None, is_locked: false };
        let Some(first) = batch.messages.first() else { return none };
        let view = first.view();
        let has_id = view.property(Property::MessageId).is_some();
        if route.queues.is_empty() {
            return none;
        }
        let durability = durability_of(world, route);
        if !view.properties.is_persistent && !has_id && !durability.has_streams {
            return none;
        }
        let is_locked = has_id && durability.has_dedup || durability.has_streams;
        let is_persistent = view.properties.is_persistent || durability.has_streams;
        let is_kept = is_persistent && !durability.queues.is_empty();
        Plan { durability: is_kept.then_some(durability), is_locked }
    }

    /// Checks that the journal takes the messages, and that each fits into a record. The size is an upper bound: the
    /// record is shorter if some queues do not take the message.
    ///
    /// # Errors
    /// [`BrokerError::RecordTooLarge`] or [`BrokerError::Unavailable`].
    #[inline]
    pub(crate) fn check<W: World>(&self, world: &W, batch: &Batch<'_>) -> Result<(), BrokerError> {
        let Some((durability, first)) = self.durability.as_ref().zip(batch.messages.first()) else {
            return Ok(());
        };
        let queues = durability.queues.len();
        let numbers = if durability.has_streams { SEQUENCE_BYTES_MAX * (queues + 1) } else { 0 };
        let asks = if first.asks().is_some() { ASKS_BYTES_MAX } else { 0 };
        let payload = message_bytes_max(&first.view(), batch.address, None, queues) + numbers + asks;
        let (bytes, bytes_max) = (payload + RECORD_SLACK_BYTES, world.group_bytes_max());
        if bytes > bytes_max {
            return Err(BrokerError::RecordTooLarge { bytes, bytes_max, queues });
        }
        // A stream answers its publisher itself.
        if durability.has_streams {
            return Ok(());
        }
        admit(world, Purpose::Publish, batch.address.subject())
    }
}

/// Whether the batch needs a plan: its messages are persistent or have ids, or its route may have a stream.
#[inline]
pub(crate) fn needs_plan(route: &Route, batch: &Batch<'_>) -> bool {
    let properties = batch.messages.first().map(|first| first.view().properties);
    properties.is_some_and(|properties| properties.is_persistent || properties.has(Property::MessageId))
        || route.durability.get().is_none_or(|durability| durability.has_streams)
}

/// The plan of a dead letter, without the queues that it would reach again in a cycle without a rejection.
pub(crate) fn plan_dead_letter<W: World>(world: &W, route: &Route, deaths: &Deaths) -> DurabilityPlan {
    // A stream records what it gets itself, as it enters.
    let ask =
        |queue: &mut Queue| kept_by(queue).filter(|_| !queue.is_stream() && !deaths.is_cycle(queue.name()));
    DurabilityPlan::among(route.queues.iter().filter_map(|id| world.with_queue(*id, ask)))
}

/// The durable id and level of a queue, if it outlives the broker.
pub(crate) fn kept_by(queue: &Queue) -> Option<(DurableQueueId, Level)> {
    queue.durability().map(|Durability { id, level }| (id, level))
}

/// The plan for all queues of a route.
#[inline]
fn durability_of<'r, W: World>(world: &W, route: &'r Route) -> Cow<'r, DurabilityPlan> {
    match route.durability.get() {
        Some(durability) => Cow::Borrowed(&**durability),
        None => ask_queues(world, route),
    }
}

/// Asks each queue of a route, and caches the answers if all queues still exist.
#[cold]
fn ask_queues<'r, W: World>(world: &W, route: &'r Route) -> Cow<'r, DurabilityPlan> {
    let (mut asked, mut has_dedup) = (Vec::with_capacity(route.queues.len()), false);
    let mut has_streams = false;
    for id in &route.queues {
        asked.extend(world.with_queue(*id, |queue| {
            has_dedup |= queue.dedup().is_some();
            has_streams |= queue.is_stream();
            kept_by(queue)
        }));
    }
    let is_complete = asked.len() == route.queues.len();
    let durability = DurabilityPlan { has_dedup, has_streams, ..DurabilityPlan::among(asked) };
    if is_complete {
        return Cow::Borrowed(&**route.durability.get_or_init(|| Box::new(durability)));
    }
    Cow::Owned(durability)
}
