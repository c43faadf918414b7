//! Publishing under the locks of all its queues, taken in ascending order of id.
//!
//! Checking the id, recording and enqueuing form one step: otherwise a duplicate could be confirmed
//! on the strength of an original that is then refused. A transaction handles all its messages this
//! way, as all or nothing.

use super::plan::kept_by;
use super::report::PublishReport;
use crate::confirm::{Confirm, Level, Lsn};
use crate::id::QueueId;
use crate::message::{AddressView, Publication};
use crate::queue::{Arrival, Queue, QueueFull};
use crate::record::{InStreams, NewRecord, RecordKind, encode_for_streams};
use crate::route::DurabilityPlan;
use crate::time::Time;

/// The locked queues in ascending order of id, as far as they exist.
pub(crate) struct LockedQueues<'a, 'q> {
    ids: &'a [QueueId],
    queues: &'a mut [Option<&'q mut Queue>],
}

impl<'a, 'q> LockedQueues<'a, 'q> {
    /// Wraps the queues with these ids, which must be ascending.
    pub(crate) fn new(ids: &'a [QueueId], queues: &'a mut [Option<&'q mut Queue>]) -> LockedQueues<'a, 'q> {
        LockedQueues { ids, queues }
    }

    /// The queue with this id, if it is locked.
    pub(crate) fn find(&mut self, id: QueueId) -> Option<&mut Queue> {
        let at = self.ids.binary_search(&id).ok()?;
        self.queues.get_mut(at)?.as_deref_mut()
    }

    /// The existing queues with their ids.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (QueueId, &mut Queue)> {
        let queues = self.ids.iter().zip(&mut *self.queues);
        queues.filter_map(|(id, queue)| Some((*id, queue.as_deref_mut()?)))
    }
}

/// The plan for one message, made while its queues are locked.
#[derive(Default)]
pub(crate) struct LockedPlan {
    /// Queues that take the message, or refuse it because they are full.
    pub(crate) takers: Vec<QueueId>,
    /// The number of queues that already had a message with this id.
    pub(crate) had_by: usize,
    /// The confirm of that earlier message.
    pub(crate) earlier: Option<Confirm>,
    /// The takers that store it on disk, filled by [`LockedPlan::keep`].
    pub(crate) durability: DurabilityPlan,
}

impl LockedPlan {
    /// Finds the queues of a route that have had no message with this id.
    pub(crate) fn of(
        queues: &mut LockedQueues<'_, '_>,
        route: &[QueueId],
        message_id: Option<&[u8]>,
        now: Time,
    ) -> LockedPlan {
        let mut plan = LockedPlan::default();
        for id in route {
            let Some(queue) = queues.find(*id) else { continue };
            let seen = message_id.and_then(|message| queue.dedup()?.find(message, now));
            let Some(lsn) = seen else {
                plan.takers.push(*id);
                continue;
            };
            let durability = queue.durability().filter(|_| lsn != Lsn::NONE);
            let first = Confirm::of(durability.map_or(Level::Memory, |durability| durability.level), lsn);
            plan.earlier = Some(plan.earlier.map_or(first, |confirm| confirm.and(first)));
            plan.had_by += 1;
        }
        plan
    }

    /// Determines which takers store the message on disk, and builds its record if any does.
    pub(crate) fn keep(
        &mut self,
        queues: &mut LockedQueues<'_, '_>,
        publication: &Publication<'_>,
        address: &AddressView<'_>,
        now: Time,
    ) -> Option<NewRecord> {
        let is_persistent = publication.view().properties.is_persistent;
        let (mut asked, mut streams) = (Vec::with_capacity(self.takers.len()), Vec::new());
        for id in &self.takers {
            let Some(queue) = queues.find(*id).filter(|queue| is_persistent || queue.is_stream()) else {
                continue;
            };
            asked.push(kept_by(queue));
            let sequence = queue.reserve_sequence(publication, address.subject());
            let durability = queue.durability().zip(sequence);
            streams.extend(durability.map(|(durability, sequence)| (*id, durability.id, sequence)));
        }
        self.durability = DurabilityPlan::among(asked);
        let kept = &self.durability.queues;
        if kept.is_empty() {
            return None;
        }
        // A stream that is kept in memory alone is not in the record.
        streams.retain(|(_, durable, _)| kept.contains(durable));
        let encode =
            |in_streams| encode_for_streams(&publication.view(), address, None, (kept, in_streams), now);
        let payload = match &*streams {
            [] => encode(InStreams::default()),
            streams => {
                let sequences: Vec<_> =
                    streams.iter().map(|(_, durable, sequence)| (*durable, *sequence)).collect();
                let removals = streams.iter().filter_map(|(id, durable, _)| {
                    queues.find(*id)?.reserved_removals().map(|removals| (*durable, removals.clone()))
                });
                let removals: Vec<_> = removals.collect();
                let removals: Vec<_> =
                    removals.iter().map(|(durable, removals)| (*durable, removals)).collect();
                let schedule = publication.asks().and_then(|asked| asked.schedule.as_deref());
                encode(InStreams { sequences: &sequences, removals: &removals, schedule })
            }
        };
        Some(NewRecord::new(RecordKind::Message, payload))
    }

    /// The confirm once all records up to `through` are durable. If every queue already had the
    /// message, the earlier one's confirm applies.
    pub(crate) fn confirm(&self, through: Lsn) -> Confirm {
        let DurabilityPlan { queues, level, wait, .. } = &self.durability;
        let own =
            if queues.is_empty() { Confirm::NOW } else { Confirm::of(*wait, through).promising(*level) };
        match self.earlier {
            Some(earlier) if self.takers.is_empty() => earlier,
            Some(earlier) => earlier.and(own),
            None => own,
        }
    }

    /// Enqueues the recorded message in its takers, which note its id.
    pub(crate) fn enqueue(
        &self,
        queues: &mut LockedQueues<'_, '_>,
        message_id: Option<&[u8]>,
        arrival: &Arrival<'_>,
        report: &mut PublishReport,
        mut put: impl FnMut(QueueId, &mut Queue) -> Result<(), QueueFull>,
    ) {
        report.receivers += self.had_by;
        for id in &self.takers {
            let Some(queue) = queues.find(*id) else { continue };
            if put(*id, queue).is_err() {
                report.refused_by = Some(queue.name().clone());
                continue;
            }
            report.receivers += 1;
            let lsn = if self.is_kept_by(queue) { arrival.lsn } else { Lsn::NONE };
            let sequence = queue.last_sequence();
            if let Some((dedup, message)) = queue.dedup().zip(message_id) {
                dedup.note_at(message, arrival.now, lsn, sequence);
            }
        }
    }

    /// Whether the record names this queue.
    fn is_kept_by(&self, queue: &Queue) -> bool {
        queue.durability().is_some_and(|durability| self.durability.queues.contains(&durability.id))
    }
}
