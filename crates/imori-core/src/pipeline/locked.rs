//! The steps of a publish under the locks of all its queues, taken by rising id.
//!
//! The look at an id, the record and the place in the queue are one step there: else one of two publishers could be
//! confirmed what the other then is refused. A transaction does all its messages so, and all of them or none.

use super::plan::kept_by;
use super::record::message_record;
use super::report::PublishReport;
use crate::confirm::{Confirm, Level, Lsn};
use crate::id::QueueId;
use crate::message::{AddressView, Publication};
use crate::queue::{Arrival, Queue, QueueFull};
use crate::record::NewRecord;
use crate::route::DurabilityPlan;
use crate::time::Time;

/// Locked queues by rising id, as far as they exist.
pub(crate) struct LockedQueues<'a, 'q> {
    ids: &'a [QueueId],
    queues: &'a mut [Option<&'q mut Queue>],
}

impl<'a, 'q> LockedQueues<'a, 'q> {
    /// The queues of these ids, which rise.
    pub(crate) fn new(ids: &'a [QueueId], queues: &'a mut [Option<&'q mut Queue>]) -> LockedQueues<'a, 'q> {
        LockedQueues { ids, queues }
    }

    /// The queue of this id, if it is one of them.
    pub(crate) fn find(&mut self, id: QueueId) -> Option<&mut Queue> {
        let at = self.ids.binary_search(&id).ok()?;
        self.queues.get_mut(at)?.as_deref_mut()
    }

    /// The queues that exist, with their ids.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (QueueId, &mut Queue)> {
        let queues = self.ids.iter().zip(&mut *self.queues);
        queues.filter_map(|(id, queue)| Some((*id, queue.as_deref_mut()?)))
    }
}

/// The plan of one message, made under the locks of its queues.
#[derive(Default)]
pub(crate) struct LockedPlan {
    /// Queues that take it, or refuse it for want of room.
    pub(crate) takers: Vec<QueueId>,
    /// How many queues had a message of this id.
    pub(crate) had_by: usize,
    /// The confirm of the earlier message on their behalf.
    pub(crate) earlier: Option<Confirm>,
    /// The takers that keep it, once [`LockedPlan::keep`] has asked them.
    pub(crate) durability: DurabilityPlan,
}

impl LockedPlan {
    /// Finds the queues of a route that had no message of this id.
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

    /// Asks the takers whether they keep it on disk, and makes its record if any does.
    pub(crate) fn keep(
        &mut self,
        queues: &mut LockedQueues<'_, '_>,
        publication: &Publication<'_>,
        address: &AddressView<'_>,
        now: Time,
    ) -> Option<NewRecord> {
        let is_persistent = publication.view().properties.is_persistent;
        let takers = self.takers.iter().filter(|_| is_persistent);
        self.durability = DurabilityPlan::among(takers.filter_map(|id| Some(kept_by(queues.find(*id)?))));
        let kept = &self.durability.queues;
        (!kept.is_empty()).then(|| message_record(publication, address, None, kept, now))
    }

    /// Its confirm, if its record is durable with all up to `through`. Where all queues had it, the earlier message
    /// decides.
    pub(crate) fn confirm(&self, through: Lsn) -> Confirm {
        let DurabilityPlan { queues, level, wait, .. } = &self.durability;
        let own = if queues.is_empty() {
            Confirm::NOW
        } else {
            Confirm { level: *level, ..Confirm::of(*wait, through) }
        };
        match self.earlier {
            Some(earlier) if self.takers.is_empty() => earlier,
            Some(earlier) => earlier.and(own),
            None => own,
        }
    }

    /// Puts the message, which has this record, into the queues that take it; those then know its id.
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
            if let Some((dedup, message)) = queue.dedup().zip(message_id) {
                dedup.note(message, arrival.now, lsn);
            }
        }
    }

    /// Tells whether a queue stands in its record.
    fn is_kept_by(&self, queue: &Queue) -> bool {
        queue.durability().is_some_and(|durability| self.durability.queues.contains(&durability.id))
    }
}
