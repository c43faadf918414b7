//! What durable queues get and let go becomes records: a message's before they have it, so that none is in
//! a queue without its record.

use super::letter::Letter;
use crate::confirm::{Confirm, Level, Lsn};
use crate::delivery::Holding;
use crate::error::BrokerError;
use crate::id::DurableQueueId;
use crate::limits::RECORD_SLACK_BYTES;
use crate::message::{AddressView, Deaths, Property, Publication};
use crate::queue::{Dead, Durability, Effects, Queue};
use crate::record::{
    NewRecord, RecordKind, count_records, encode_message, encode_settle, message_bytes_max, settle_records,
};
use crate::route::Route;
use crate::world::World;

/// What one look at each queue of a route tells, before any of them gets a letter.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// Who keeps it on disk.
    keepers: Keepers,
    /// It has an id, and some queue takes none twice. A dead letter is no repetition.
    pub(super) is_for_once: bool,
}

impl Look {
    /// Looks at the queues of a route, if a letter makes a difference between them.
    #[inline]
    pub(super) fn at<W: World>(world: &W, route: &Route, letter: &Letter<'_>) -> Look {
        let Some(view) = letter.run.first().map(Publication::view) else { return Look::default() };
        let has_id = letter.deaths.is_none() && view.property(Property::MessageId).is_some();
        if route.queues.is_empty() || !view.head.is_persistent && !has_id {
            return Look::default();
        }
        let mut is_for_once = false;
        let durabilities = route.queues.iter().filter_map(|id| {
            world.with_queue(*id, |queue| {
                let is_circle = letter.deaths.as_ref().is_some_and(|deaths| deaths.is_cycle(queue.name()));
                is_for_once |= has_id && queue.dedup().is_some();
                queue.durability().filter(|_| !is_circle)
            })
        });
        let keepers = Keepers::among(durabilities);
        let keepers = if view.head.is_persistent { keepers } else { Keepers::default() };
        Look { keepers, is_for_once }
    }

    /// Sees to it that the journal takes the record of a letter, whose messages are of one length. Where only some of
    /// its queues take it, the record is shorter.
    ///
    /// # Errors
    /// [`BrokerError::RecordTooLarge`].
    #[inline]
    pub(super) fn check<W: World>(&self, world: &W, letter: &Letter<'_>) -> Result<(), BrokerError> {
        let queues = self.keepers.queues.len();
        let Some(first) = letter.run.first().filter(|_| queues > 0) else { return Ok(()) };
        let payload = message_bytes_max(&first.view(), letter.address, letter.deaths.as_deref(), queues);
        let (bytes, bytes_max) = (payload + RECORD_SLACK_BYTES, world.group_bytes_max());
        if bytes > bytes_max {
            return Err(BrokerError::RecordTooLarge { bytes, bytes_max, queues });
        }
        Ok(())
    }
}

/// Records the messages of a letter for the durable queues of its route; gives the number of the first and
/// what their confirm waits for.
pub(super) fn record_letter<W: World>(world: &W, look: &Look, letter: &Letter<'_>) -> (Lsn, Confirm) {
    let Keepers { queues, level, wait } = &look.keepers;
    if queues.is_empty() {
        return (Lsn::NONE, Confirm::NOW);
    }
    let records = letter.run.iter().map(|publication| message(world, publication, letter, queues));
    let appended = world.append(records.collect());
    (appended.first, Confirm { level: *level, ..Confirm::of(*wait, appended.through) })
}

/// Records that a dead letter leaves a queue and comes to those of its route, in one; gives the number of its record
/// there. `None` where the journal does not take it as one: then nothing is recorded.
pub(super) fn record_move<W: World>(
    world: &W,
    route: &Route,
    letter: &Letter<'_>,
    from: Option<Holding>,
) -> Option<Lsn> {
    let Some(message) = moved_record(world, route, letter) else {
        record_settled(world, from.as_slice());
        return Some(Lsn::NONE);
    };
    let mut records = vec![message];
    records.extend(from.map(|from| NewRecord::new(RecordKind::Settle, encode_settle(&[from]))));
    if group_bytes(&records) > world.group_bytes_max() {
        return None;
    }
    let appended = if records.len() > 1 { world.append_group(records) } else { world.append(records) };
    Some(appended.first)
}

/// The bytes of records that [`World::group_bytes_max`] bounds.
pub(super) fn group_bytes<'a>(records: impl IntoIterator<Item = &'a NewRecord>) -> usize {
    records.into_iter().map(|record| record.payload.len() + RECORD_SLACK_BYTES).sum()
}

/// The record of a dead letter in the durable queues of its route, if there are any.
pub(super) fn moved_record<W: World>(world: &W, route: &Route, letter: &Letter<'_>) -> Option<NewRecord> {
    let queues = Look::at(world, route, letter).keepers.queues;
    let publication = letter.run.first().filter(|_| !queues.is_empty())?;
    Some(message(world, publication, letter, &queues))
}

/// Records what follows from a change of a queue but for what [`record_counts`] does, and gives the dead letters, whose
/// records move with them.
pub(super) fn record_effects<W: World>(world: &W, effects: Effects) -> Vec<Dead> {
    let Effects { dead, settled, counted, lingering, .. } = effects;
    debug_assert!(
        counted.is_empty() && lingering.is_empty(),
        "they are recorded while their queue is locked"
    );
    record_settled(world, &settled);
    dead
}

/// Records what is known of deliveries, for whoever has the queue locked: of two records of one message the later
/// counts, and it has to be the one of what came later.
pub(super) fn record_counts<W: World>(world: &W, effects: &mut Effects) {
    if !effects.counted.is_empty() || !effects.lingering.is_empty() {
        let mut counted = std::mem::take(&mut effects.counted);
        // What lingers was given out before.
        counted.append(&mut effects.lingering);
        world.append(count_records(&counted));
    }
}

/// Records that queues are done with these messages; gives the number of the last record.
pub(super) fn record_settled<W: World>(world: &W, settled: &[Holding]) -> Lsn {
    if settled.is_empty() {
        return Lsn::NONE;
    }
    world.append(settle_records(settled)).through
}

/// The record of a message that goes to these queues.
pub(super) fn message_record(
    publication: &Publication<'_>,
    address: &AddressView<'_>,
    deaths: Option<&Deaths>,
    queues: &[DurableQueueId],
    now: crate::time::Time,
) -> NewRecord {
    let payload = encode_message(&publication.view(), address, deaths, queues, now);
    NewRecord::new(RecordKind::Message, payload)
}

fn message<W: World>(
    world: &W,
    publication: &Publication<'_>,
    letter: &Letter<'_>,
    queues: &[DurableQueueId],
) -> NewRecord {
    message_record(publication, letter.address, letter.deaths.as_deref(), queues, world.now())
}

/// Who keeps a message on disk, and what that is worth.
#[derive(Debug, Default)]
pub(super) struct Keepers {
    /// The queues that stand in its record.
    pub(super) queues: Vec<DurableQueueId>,
    /// The lowest level among all queues that get it.
    pub(super) level: Level,
    /// The highest: for that its confirm waits.
    pub(super) wait: Level,
}

impl Keepers {
    /// Those among the queues that a persistent message goes to; `None` is one that does not outlive the broker.
    pub(super) fn among(queues: impl Iterator<Item = Option<Durability>>) -> Keepers {
        let mut keepers = Keepers::default();
        let mut level = None;
        for durability in queues {
            let of_queue = durability.map_or(Level::Memory, |durability| durability.level);
            level = Some(level.map_or(of_queue, |level: Level| level.min(of_queue)));
            keepers.wait = keepers.wait.max(of_queue);
            let kept = durability.filter(|_| of_queue > Level::Memory);
            keepers.queues.extend(kept.map(|durability| durability.id));
        }
        keepers.level = level.unwrap_or_default();
        keepers
    }

    /// The record of this number as the queue knows it: none where it does not stand in it.
    pub(super) fn lsn_in(&self, queue: &Queue, lsn: Lsn) -> Lsn {
        let is_kept = queue.durability().is_some_and(|durability| self.queues.contains(&durability.id));
        if is_kept { lsn } else { Lsn::NONE }
    }
}
