//! The stage of a run: its clock, the watch on the machine, and the live view.

use std::cell::Cell;

use crate::clock::Clock;
use crate::record::Timeline;
use crate::record::series::Verdict;
use crate::report::live::Live;
use crate::watch::watching::Watch;

/// A response in microseconds from which a second is marked while the run goes on.
const MARKED_US: f64 = 50_000.0;

/// The clock, the watch and the view of a run.
pub(crate) struct Stage<'a> {
    /// The time of the run.
    pub(crate) clock: Clock,
    /// The watch on broker and machine.
    pub(crate) watch: &'a Watch,
    /// The live view.
    pub(crate) live: &'a Live,
    /// Seconds that were shown.
    shown: Cell<usize>,
}

impl<'a> Stage<'a> {
    /// Nothing is shown yet.
    pub(crate) fn new(clock: Clock, watch: &'a Watch, live: &'a Live) -> Stage<'a> {
        Stage { clock, watch, live, shown: Cell::new(0) }
    }

    /// A phase begins.
    pub(crate) fn phase(&self, name: &str) {
        self.live.phase(name);
    }

    /// Shows how far it is, of how much if that is known, and the seconds that are over.
    pub(crate) fn show(&self, done: u64, of: Option<u64>, timeline: &Timeline) {
        // Without a goal the seconds say more than the amount.
        if of.is_some() || self.shown.get() == 0 {
            self.live.amount(done, of);
        }
        while let Some(mut row) = timeline.row(self.shown.get()) {
            self.shown.set(self.shown.get().saturating_add(1));
            let (broker, host) = self.watch.live();
            (row.broker, row.host) = (broker, Some(host));
            let mark = row.max_us.filter(|max| *max >= MARKED_US).map(|_| Verdict::Unknown);
            self.live.second(&row, mark);
        }
    }
}
