//! The surroundings of a run: its clock, the watch on broker and machine, and the live view.

use std::cell::Cell;
use std::time::Duration;

use crate::clock::Clock;
use crate::record::Timeline;
use crate::record::series::Verdict;
use crate::report::live::Live;
use crate::watch::watching::Watch;

/// Response time in microseconds from which a second is marked in the live view.
const MARKED_US: f64 = 50_000.0;

/// Clock, watch and live view of a run.
pub(crate) struct Stage<'a> {
    /// Clock of the run.
    pub(crate) clock: Clock,
    /// Watch on broker and machine.
    pub(crate) watch: &'a Watch,
    /// The live view.
    pub(crate) live: &'a Live,
    /// Number of seconds shown so far.
    shown: Cell<usize>,
}

impl<'a> Stage<'a> {
    /// Creates a stage; no second is shown yet.
    pub(crate) fn new(clock: Clock, watch: &'a Watch, live: &'a Live) -> Stage<'a> {
        Stage { clock, watch, live, shown: Cell::new(0) }
    }

    /// Announces a phase in the live view, with its length if it ends at a set time.
    pub(crate) fn phase(&self, name: &str, length: Option<Duration>) {
        self.live.phase(name, length);
    }

    /// Shows the progress, with the total if it is known, and the seconds that are over.
    pub(crate) fn show(&self, done: u64, of: Option<u64>, timeline: &Timeline) {
        // Without a total, the rows of the seconds are more useful than the amount.
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
