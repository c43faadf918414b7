//! Queues that take no message of an id twice: who of a route takes it, and what the confirm waits for where
//! somebody had it before.
//!
//! A look at the ids, the record and the place in the queue are one step, under the locks of all queues of the
//! route, taken by rising id: else one of two publishers could be confirmed what the other then is refused.

use super::asked::Asked;
use super::distribute::PublishReport;
use super::letter::Letter;
use super::move_room::effects_of_arrival;
use super::offer::offer;
use super::record::{Keepers, message_record, record_effects};
use crate::confirm::{Confirm, Level, Lsn};
use crate::id::QueueId;
use crate::limits::SEEN_BYTES_MAX;
use crate::message::{Property, Publication};
use crate::queue::{Arrival, Dead, Queue};
use crate::record::{NewRecord, RecordKind, encode_seen};
use crate::route::Route;
use crate::time::Time;
use crate::world::World;

/// The queues of a route, as far as they are there, by rising id.
pub(super) type Lent<'a, 'q> = (&'a [QueueId], &'a mut [Option<&'q mut Queue>]);

/// What queues make of a message at first sight.
#[derive(Debug, Default)]
pub(super) struct Sifted {
    /// They take it, or refuse it for another reason.
    pub(super) takers: Vec<QueueId>,
    /// So many had one of this id.
    pub(super) had_by: usize,
    /// What its confirm waits for on their behalf, if there are any.
    pub(super) confirm: Option<Confirm>,
}

/// Tells which queues of a route have had a message of this id.
pub(super) fn sift(
    (ids, queues): Lent<'_, '_>,
    route: &[QueueId],
    message: Option<&[u8]>,
    now: Time,
) -> Sifted {
    let mut sifted = Sifted::default();
    for id in route {
        let Some(queue) = find((ids, queues), *id) else { continue };
        let seen = message.and_then(|message| queue.dedup()?.find(message, now));
        let Some(lsn) = seen else {
            sifted.takers.push(*id);
            continue;
        };
        let durability = queue.durability().filter(|_| lsn != Lsn::NONE);
        let first = Confirm::of(durability.map_or(Level::Memory, |durability| durability.level), lsn);
        sifted.confirm = Some(sifted.confirm.map_or(first, |confirm| confirm.and(first)));
        sifted.had_by += 1;
    }
    sifted
}

/// Notes that a queue took the message of this id; `lsn` is the message's record if the queue stands in it.
pub(super) fn note(queue: &mut Queue, message: Option<&[u8]>, now: Time, lsn: Lsn) {
    if let Some((dedup, message)) = queue.dedup().zip(message) {
        dedup.note(message, now, lsn);
    }
}

/// The queue of this id among those that are lent.
pub(super) fn find<'a>((ids, queues): Lent<'a, '_>, id: QueueId) -> Option<&'a mut Queue> {
    let at = ids.binary_search(&id).ok()?;
    queues.get_mut(at)?.as_deref_mut()
}

/// Gives one message to those queues of a route that take it, with its record; gives what its confirm waits for.
/// What leaves full queues goes to `bury`.
pub(super) fn enqueue_once<W: World>(
    world: &W,
    route: &Route,
    letter: &Letter<'_>,
    publication: &Publication<'_>,
    report: &mut PublishReport,
    bury: &mut dyn FnMut(Vec<Dead>),
) -> Confirm {
    let now = world.now();
    let view = publication.view();
    let message = view.property(Property::MessageId);
    let mut ids = route.queues.clone();
    ids.sort_unstable();
    let (mut effects, mut asked) = (effects_of_arrival(world), Vec::new());
    let confirm = world.with_queues(&ids, |queues| {
        let Sifted { mut takers, had_by, confirm } = sift((&ids, queues), &ids, message, now);
        report.receivers += had_by;
        let mut arrival = Arrival { address: letter.address, deaths: None, lsn: Lsn::NONE, now };
        takers.retain(|id| {
            let Some(queue) = find((&ids, queues), *id) else { return false };
            // What is refused has no record: after a crash its id would be taken for that of a message.
            let is_refused = queue.dedup().is_some() && queue.refuses(1, view.body.len() as u64);
            if is_refused {
                queue.refuse(publication, &arrival, &mut effects);
                report.refused_by = Some(queue.name().clone());
            }
            !is_refused
        });
        let durable = takers.iter().filter_map(|id| Some(find((&ids, queues), *id)?.durability()));
        let keepers = if view.head.is_persistent { Keepers::among(durable) } else { Keepers::default() };
        let mut appended = Confirm::NOW;
        if !keepers.queues.is_empty() {
            let record = message_record(publication, letter.address, None, &keepers.queues, now);
            let lsns = world.append(vec![record]);
            arrival.lsn = lsns.first;
            appended = Confirm { level: keepers.level, ..Confirm::of(keepers.wait, lsns.through) };
        }
        for id in &takers {
            let Some(queue) = find((&ids, queues), *id) else { continue };
            let taken = queue.publish(
                publication,
                &arrival,
                &mut |reader, delivery| offer(world, *id, reader, delivery),
                &mut effects,
            );
            if taken.is_err() {
                report.refused_by = Some(queue.name().clone());
                continue;
            }
            report.receivers += 1;
            note(queue, message, now, keepers.lsn_in(queue, arrival.lsn));
        }
        for id in &ids {
            let queue = find((&ids, queues), *id);
            asked.extend(queue.map(|queue| (*id, Asked::by(world, queue, &mut effects, now))));
        }
        match confirm {
            Some(confirm) if takers.is_empty() => confirm,
            Some(confirm) => confirm.and(appended),
            None => appended,
        }
    });
    asked.into_iter().for_each(|(id, asked)| asked.answer(world, id));
    let dead = record_effects(world, effects);
    if !dead.is_empty() {
        bury(dead);
    }
    confirm
}

/// Records anew the ids of a queue whose records stand below `floor`, so that after these records are durable the
/// journal needs nothing below for them. What the queue holds is not spoken of.
pub fn renew_seen<W: World>(world: &W, queue: QueueId, floor: Lsn) {
    let now = world.now();
    let append = |record| world.append(vec![record]).first;
    // Others have the queue between two records.
    while world.with_queue(queue, |queue| renew_some_seen(queue, floor, now, append)) == Some(true) {}
}

/// The same with as many ids as one record takes, for whoever has the queue; `append` gives the record's number.
/// Tells whether there were any.
pub fn renew_some_seen(
    queue: &mut Queue,
    floor: Lsn,
    now: Time,
    append: impl FnOnce(NewRecord) -> Lsn,
) -> bool {
    let durability = queue.durability();
    let Some((durability, dedup)) = durability.zip(queue.dedup()) else { return false };
    let below = dedup.below(floor, SEEN_BYTES_MAX, now);
    if below.is_empty() {
        return false;
    }
    dedup.renew(&below, append(NewRecord::new(RecordKind::Seen, encode_seen(durability.id, &below))));
    true
}
