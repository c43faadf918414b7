//! Timers by the moment at which they fire next.

use std::collections::{BTreeMap, BTreeSet};

use super::missed::Missed;
use super::timer::Timer;
use crate::ids::Id;
use crate::times::Timestamp;

/// Timers of triggers. It is as large as the number of triggers, which their owner limits.
#[derive(Debug, Clone, Default)]
pub struct Schedule {
    timers: BTreeMap<Id, Entry>,
    /// Each timer that fires again, by when.
    agenda: BTreeSet<(Timestamp, Id)>,
}

#[derive(Debug, Clone)]
struct Entry {
    timer: Timer,
    missed: Missed,
    next: Option<Timestamp>,
}

impl Schedule {
    /// A schedule without timers.
    pub fn new() -> Schedule {
        Schedule::default()
    }

    /// Adds the timer of a trigger, or replaces it, and gives its next firing. `last_fired` is its last firing, or the
    /// moment of its creation if the engine kept that; `missed` decides about firings between that and `now`, and about
    /// those that come due together because the engine stood still.
    pub fn insert(
        &mut self,
        trigger: Id,
        timer: Timer,
        last_fired: Option<Timestamp>,
        missed: Missed,
        now: Timestamp,
    ) -> Option<Timestamp> {
        self.remove(trigger);
        let made_up = timer.firings(last_fired, now, missed).first().copied();
        let next = made_up.or_else(|| timer.next_from(last_fired, now));
        self.agenda.extend(next.map(|moment| (moment, trigger)));
        self.timers.insert(trigger, Entry { timer, missed, next });
        next
    }

    /// Removes the timer of a trigger; tells whether there was one.
    pub fn remove(&mut self, trigger: Id) -> bool {
        let Some(entry) = self.timers.remove(&trigger) else { return false };
        if let Some(moment) = entry.next {
            self.agenda.remove(&(moment, trigger));
        }
        true
    }

    /// The timer of a trigger.
    pub fn timer(&self, trigger: Id) -> Option<&Timer> {
        self.timers.get(&trigger).map(|entry| &entry.timer)
    }

    /// When the first timer fires.
    pub fn next(&self) -> Option<Timestamp> {
        self.agenda.first().map(|(moment, _)| *moment)
    }

    /// What fires up to `now`, in the order of moments. A timer that came due several times since it was asked last
    /// fires once, for the latest moment, unless it makes up for all.
    pub fn due(&mut self, now: Timestamp) -> Vec<(Id, Timestamp)> {
        let mut due = Vec::new();
        while let Some((moment, trigger)) = self.agenda.first().copied().filter(|(moment, _)| *moment <= now)
        {
            self.agenda.remove(&(moment, trigger));
            let entry = self.timers.get_mut(&trigger).expect("the agenda has timers of the schedule only");
            let mut moments = match entry.missed {
                Missed::All => entry.timer.firings(Some(moment), now, Missed::All),
                Missed::Skip | Missed::Once => entry.timer.firings(Some(moment), now, Missed::Once),
            };
            if moments.is_empty() || entry.missed == Missed::All {
                moments.insert(0, moment);
            }
            due.extend(moments.iter().map(|at| (trigger, *at)));
            entry.next = entry.timer.next_from(moments.last().copied(), now);
            self.agenda.extend(entry.next.map(|next| (next, trigger)));
        }
        due.sort_by_key(|(trigger, moment)| (*moment, *trigger));
        due
    }

    /// The number of timers, with those that do not fire any more.
    pub fn len(&self) -> usize {
        self.timers.len()
    }

    /// Whether there is no timer.
    pub fn is_empty(&self) -> bool {
        self.timers.is_empty()
    }
}
