//! The latest events of interest to operators, for readers that follow them.
//!
//! Events are kept in one ring buffer. Each reader tracks its own position, and learns how many events it missed.
//! Reporting never waits for a reader.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde::Serialize;
use tokio::sync::watch;

use crate::limits::HAPPENINGS_KEPT;
use crate::slots::unpoisoned;

/// An event. Text from clients stays in fields of its own.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Happening {
    /// The kind, such as `queue.declared`.
    pub kind: &'static str,
    /// Time in milliseconds since the UNIX epoch.
    pub time: u64,
    /// The user, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The vhost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vhost: Option<String>,
    /// The client's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The client's protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The object concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Details in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// The ring buffer of events.
#[derive(Debug)]
pub(crate) struct Happenings {
    ring: Mutex<Ring>,
    /// Number of events so far, for readers that wait for the next.
    count: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Ring {
    /// Number of events dropped before the first one kept.
    dropped: u64,
    kept: VecDeque<Arc<Happening>>,
}

/// A batch of events for a reader.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// Events that the reader missed before these.
    pub lost: u64,
    /// Number of the first event.
    pub first: u64,
    /// The events, oldest first.
    pub happenings: Vec<Arc<Happening>>,
}

impl Default for Happenings {
    fn default() -> Happenings {
        Happenings { ring: Mutex::default(), count: watch::Sender::new(0) }
    }
}

impl Happenings {
    /// Adds an event.
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

    /// Number of events so far, and notification of the next.
    pub(crate) fn follow(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }

    /// Up to `max` events, from this number on.
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
