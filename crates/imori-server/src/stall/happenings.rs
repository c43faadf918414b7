//! The last happenings that an operator wants to hear of, for readers who follow them.
//!
//! They stand in one ring. A reader keeps its place, and one that is too slow is told how many it lost. Whoever reports
//! one waits for nobody.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde::Serialize;
use tokio::sync::watch;

use crate::limits::HAPPENINGS_KEPT;
use crate::slots::unpoisoned;

/// Something that happened. Text from clients stands in fields of its own.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Happening {
    /// The kind, such as `queue.declared`.
    pub(crate) kind: &'static str,
    /// When, in milliseconds since the UNIX epoch.
    pub(crate) time: u64,
    /// The user, as far as one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    /// The vhost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) vhost: Option<String>,
    /// Where the client is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
    /// The protocol of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) protocol: Option<String>,
    /// The thing that it happened to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) object: Option<String>,
    /// More in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
}

/// The ring.
#[derive(Debug)]
pub(crate) struct Happenings {
    ring: Mutex<Ring>,
    /// How many there were, for those who wait for the next.
    count: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Ring {
    /// How many came before the first that is kept.
    dropped: u64,
    kept: VecDeque<Arc<Happening>>,
}

/// A piece of what a reader follows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// How many the reader has lost before these.
    pub(crate) lost: u64,
    /// The number of the first of them.
    pub(crate) first: u64,
    /// The happenings, the oldest first.
    pub(crate) happenings: Vec<Arc<Happening>>,
}

impl Default for Happenings {
    fn default() -> Happenings {
        Happenings { ring: Mutex::default(), count: watch::Sender::new(0) }
    }
}

impl Happenings {
    /// Reports something.
    pub(crate) fn report(&self, happening: Happening) {
        let mut ring = unpoisoned(self.ring.lock());
        if ring.kept.len() == HAPPENINGS_KEPT {
            ring.kept.pop_front();
            ring.dropped += 1;
        }
        ring.kept.push_back(Arc::new(happening));
        let count = ring.dropped + ring.kept.len() as u64;
        drop(ring);
        self.count.send_modify(|told| *told = count.max(*told));
    }

    /// How many there were, and word of the next.
    pub(crate) fn follow(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }

    /// Up to `max` happenings from this number on.
    pub(crate) fn from(&self, number: u64, max: usize) -> Heard {
        let ring = unpoisoned(self.ring.lock());
        let first = number.max(ring.dropped);
        let skip = usize::try_from(first - ring.dropped).unwrap_or(usize::MAX);
        let happenings = ring.kept.iter().skip(skip).take(max).cloned().collect();
        Heard { lost: first - number, first, happenings }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(number: usize) -> Happening {
        Happening { time: number as u64, ..Happening::default() }
    }

    #[test]
    fn a_slow_reader_is_told_how_many_it_lost() {
        let happenings = Happenings::default();
        let count = happenings.follow();
        (0..HAPPENINGS_KEPT + 5).for_each(|number| happenings.report(numbered(number)));
        assert_eq!(*count.borrow(), HAPPENINGS_KEPT as u64 + 5);
        for (from, lost, first, heard) in [
            (0, 5, 5, 3),
            (5, 0, 5, 3),
            (9, 0, 9, 3),
            (HAPPENINGS_KEPT as u64 + 4, 0, HAPPENINGS_KEPT as u64 + 4, 1),
        ] {
            let found = happenings.from(from, 3);
            assert_eq!((found.lost, found.first, found.happenings.len()), (lost, first, heard), "{from}");
            assert_eq!(found.happenings[0].time, first);
        }
        assert_eq!(happenings.from(HAPPENINGS_KEPT as u64 + 5, 3).happenings, []);
    }
}
