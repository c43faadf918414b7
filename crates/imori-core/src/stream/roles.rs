//! The messages of a stream that have a part besides being read: they never expire, mark a deletion, or are published
//! again at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::confirm::Lsn;
use crate::message::{Properties, Schedule};
use crate::time::Time;

/// What the properties of a message mean for its stream.
#[derive(Debug, Clone, Copy)]
struct Mark {
    never_expires: bool,
    is_marker: bool,
}

/// A message that the stream publishes again.
#[derive(Debug, Clone)]
pub(crate) struct Scheduled {
    pub(crate) schedule: Arc<Schedule>,
    /// When the message came, or was published last.
    pub(crate) last: Time,
    /// The next time; `None` if there is none.
    pub(crate) due: Option<Time>,
    /// The record that has the schedule.
    pub(crate) recorded: Lsn,
}

/// The parts of messages by sequence number. Most streams have none.
#[derive(Debug, Default)]
pub(crate) struct Roles {
    marks: BTreeMap<u64, Mark>,
    schedules: BTreeMap<u64, Scheduled>,
    due: BTreeSet<(Time, u64)>,
}

impl Roles {
    /// Whether no message outlives the limit of age or marks a deletion.
    pub(crate) fn has_no_marks(&self) -> bool {
        self.marks.is_empty()
    }

    /// Whether a message stays whatever the limit of age is.
    pub(crate) fn never_expires(&self, sequence: u64) -> bool {
        self.marks.get(&sequence).is_some_and(|mark| mark.never_expires)
    }

    /// Whether a message tells that its subject was deleted.
    pub(crate) fn is_marker(&self, sequence: u64) -> bool {
        self.marks.get(&sequence).is_some_and(|mark| mark.is_marker)
    }

    /// The schedule of a message.
    pub(crate) fn scheduled(&self, sequence: u64) -> Option<&Scheduled> {
        self.schedules.get(&sequence)
    }

    /// Notes what the properties of a message mean.
    pub(crate) fn note(&mut self, sequence: u64, properties: &Properties) {
        let Properties { never_expires, is_marker, .. } = *properties;
        if never_expires || is_marker {
            self.marks.insert(sequence, Mark { never_expires, is_marker });
        }
    }

    /// Notes that the stream publishes a message again.
    pub(crate) fn schedule(&mut self, sequence: u64, scheduled: Scheduled) {
        self.unschedule(sequence);
        self.due.extend(scheduled.due.map(|due| (due, sequence)));
        self.schedules.insert(sequence, scheduled);
    }

    /// Skips the times of a schedule that are over, but for a schedule of one time.
    pub(crate) fn skip_missed(&mut self, sequence: u64, now: Time) {
        if let Some(mut scheduled) = self.schedules.get(&sequence).cloned() {
            scheduled.due = scheduled.schedule.times.next(scheduled.last, now);
            self.schedule(sequence, scheduled);
        }
    }

    fn unschedule(&mut self, sequence: u64) {
        if let Some(due) = self.schedules.remove(&sequence).and_then(|scheduled| scheduled.due) {
            self.due.remove(&(due, sequence));
        }
    }

    /// Forgets a message that is gone.
    pub(crate) fn remove(&mut self, sequence: u64) {
        self.marks.remove(&sequence);
        self.unschedule(sequence);
    }

    /// The message that is to be published first, and when.
    pub(crate) fn first_due(&self) -> Option<(Time, u64)> {
        self.due.first().copied()
    }

    /// A schedule with a record below `floor`, and its message.
    pub(crate) fn recorded_below(&mut self, floor: Lsn) -> Option<(u64, &mut Scheduled)> {
        let mut schedules = self.schedules.iter_mut().map(|(sequence, scheduled)| (*sequence, scheduled));
        schedules.find(|(_, scheduled)| scheduled.recorded < floor)
    }

    /// The lowest record that has a schedule.
    pub(crate) fn floor(&self) -> Option<Lsn> {
        self.schedules.values().map(|scheduled| scheduled.recorded).filter(|lsn| *lsn != Lsn::NONE).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{OriginId, ScheduleTimes};
    use crate::name::Name;

    #[test]
    fn the_message_that_is_due_first_is_found_until_it_is_gone() {
        let mut roles = Roles::default();
        let due = |at| {
            let times = ScheduleTimes::At(Time(at));
            let schedule =
                Schedule { times, target: Name::from("a"), source: None, ttl: None, is_rollup: false };
            Scheduled { schedule: Arc::new(schedule), last: Time(0), due: Some(Time(at)), recorded: Lsn(at) }
        };
        roles.schedule(1, due(20));
        roles.schedule(2, due(10));
        let mut lasting = Properties::new(OriginId::BROKER);
        lasting.never_expires = true;
        roles.note(3, &lasting);
        roles.note(4, &Properties::new(OriginId::BROKER));
        assert_eq!((roles.first_due(), roles.floor()), (Some((Time(10), 2)), Some(Lsn(10))));
        roles.schedule(2, due(30));
        assert_eq!((roles.first_due(), roles.floor()), (Some((Time(20), 1)), Some(Lsn(20))));
        assert!(roles.never_expires(3) && !roles.never_expires(1));
        (1..4).for_each(|sequence| roles.remove(sequence));
        assert!(roles.has_no_marks());
        assert_eq!(roles.first_due(), None);
    }
}
