//! Response times counted in columns narrower than a second, for the heat map of a short run.
//!
//! A run of minutes needs no such columns: its map is drawn from the rows, one per second.

use serde::{Deserialize, Serialize};

use crate::record::series::{HEAT_BOUNDS_US, heat_class};

/// Classes of response times.
const CLASSES: usize = HEAT_BOUNDS_US.len() + 1;
/// Nanoseconds of a millisecond.
const MILLISECOND: u64 = 1_000_000;
/// Widths at which columns are recorded, in nanoseconds, the narrowest first.
const RECORDED: [u64; 2] = [10 * MILLISECOND, 100 * MILLISECOND];
/// Columns recorded before they are merged into wider ones: 300 KB for each load thread.
const RECORDED_MAX: usize = 2_000;
/// Columns of a heat map at most; at a width of 1,000 pixels each still has five.
const COLUMNS_MAX: f64 = 200.0;
/// Widths of columns in milliseconds, so that labels of the axis fall between columns.
const WIDTHS_MS: [u32; 18] = [
    10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000,
    600_000, 1_200_000, 1_800_000,
];

/// The width of a heat map's columns for a run of this length, in milliseconds.
pub(crate) fn column_width_ms(seconds: f64) -> u32 {
    // The tolerance keeps a run that ends a moment late at the width of its nominal length.
    let is_wide_enough = |width: &u32| seconds * 1_000.0 <= f64::from(*width) * COLUMNS_MAX * 1.02;
    WIDTHS_MS.into_iter().find(is_wide_enough).unwrap_or(3_600_000)
}

/// The counts of a heat map whose columns are narrower than a second.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeatColumns {
    /// Width of a column in milliseconds.
    pub width_ms: u32,
    /// Responses in each class of [`HEAT_BOUNDS_US`], column by column, without trailing zeros.
    pub columns: Vec<Vec<u32>>,
}

/// Counts the responses of one thread by the time at which they arrived.
#[derive(Debug)]
pub(crate) struct HeatRecorder {
    begin: u64,
    width: u64,
    columns: Vec<[u32; CLASSES]>,
    current: usize,
    current_begin: u64,
    current_end: u64,
    /// The run is too long for these columns, and counting has stopped.
    is_over: bool,
}

impl HeatRecorder {
    /// Counts from `begin`.
    pub(crate) fn new(begin: u64) -> HeatRecorder {
        HeatRecorder {
            begin,
            width: RECORDED[0],
            columns: Vec::new(),
            current: 0,
            current_begin: 0,
            current_end: 0,
            is_over: false,
        }
    }

    /// Counts a response that took `took` and arrived at `now`, both in nanoseconds.
    pub(crate) fn note(&mut self, took: u64, now: u64) {
        if self.is_over {
            return;
        }
        if now >= self.current_end || now < self.current_begin {
            self.move_to(now);
        }
        let column = self.columns.get_mut(self.current);
        if let Some(count) = column.and_then(|column| column.get_mut(heat_class(took))) {
            *count = count.saturating_add(1);
        }
    }

    /// Makes the column of `now` the current one.
    fn move_to(&mut self, now: u64) {
        let elapsed = now.saturating_sub(self.begin);
        while !self.is_over && elapsed / self.width >= RECORDED_MAX as u64 {
            self.widen();
        }
        if self.is_over {
            return;
        }
        self.current = (elapsed / self.width) as usize;
        self.current_begin = self.begin.saturating_add(self.current as u64 * self.width);
        self.current_end = self.current_begin.saturating_add(self.width);
        if self.columns.len() <= self.current {
            self.columns.resize(self.current.saturating_add(1), [0; CLASSES]);
        }
    }

    /// Merges columns into those of the next width, or stops after the widest.
    fn widen(&mut self) {
        let wider = RECORDED.into_iter().find(|width| *width > self.width);
        let Some(wider) = wider else {
            self.is_over = true;
            self.columns = Vec::new();
            return;
        };
        self.columns = merged(&self.columns, (wider / self.width) as usize);
        self.width = wider;
        self.current_end = 0;
    }

    /// Adds the counts of another thread for the same run.
    pub(crate) fn add(&mut self, other: &HeatRecorder) {
        while !self.is_over && (other.is_over || self.width < other.width) {
            self.widen();
        }
        if self.is_over {
            return;
        }
        let theirs = merged(&other.columns, (self.width / other.width) as usize);
        if self.columns.len() < theirs.len() {
            self.columns.resize(theirs.len(), [0; CLASSES]);
        }
        for (column, other) in self.columns.iter_mut().zip(&theirs) {
            add(column, other);
        }
    }

    /// The columns for a run of this length; `None` if a second is narrow enough for it.
    pub(crate) fn columns(&self, seconds: f64) -> Option<HeatColumns> {
        let width_ms = column_width_ms(seconds);
        let each = u64::from(width_ms) * MILLISECOND / self.width;
        if self.is_over || self.columns.is_empty() || width_ms >= 1_000 || each == 0 {
            return None;
        }
        let trimmed = |column: &[u32; CLASSES]| {
            let len = column.iter().rposition(|count| *count > 0).map_or(0, |last| last.saturating_add(1));
            column.iter().copied().take(len).collect()
        };
        let columns = merged(&self.columns, each as usize).iter().map(trimmed).collect();
        Some(HeatColumns { width_ms, columns })
    }
}

/// Sums of each `count` neighbouring columns.
fn merged(columns: &[[u32; CLASSES]], count: usize) -> Vec<[u32; CLASSES]> {
    let sum = |columns: &[[u32; CLASSES]]| {
        columns.iter().fold([0; CLASSES], |mut sum, column| {
            add(&mut sum, column);
            sum
        })
    };
    columns.chunks(count.max(1)).map(sum).collect()
}

fn add(sum: &mut [u32; CLASSES], column: &[u32; CLASSES]) {
    for (all, count) in sum.iter_mut().zip(column) {
        *all = all.saturating_add(*count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000 * MILLISECOND;

    #[test]
    fn a_map_has_sixty_to_two_hundred_columns() {
        for (seconds, width_ms) in [
            (2.0, 10),
            (2.01, 10),
            (5.0, 50),
            (10.0, 50),
            (60.0, 500),
            (60.3, 500),
            (600.0, 5_000),
            (3_600.0, 20_000),
            (28_800.0, 300_000),
        ] {
            assert_eq!(column_width_ms(seconds), width_ms, "{seconds} s");
            let count = seconds * 1_000.0 / f64::from(width_ms);
            assert!((60.0..=204.0).contains(&count), "{seconds} s: {count} columns");
        }
        assert_eq!(column_width_ms(1e9), 3_600_000);
    }

    /// A recorder with one response each 5 ms.
    fn recorder(seconds: u64) -> HeatRecorder {
        let mut recorder = HeatRecorder::new(7 * S);
        for at in 0..seconds * 200 {
            recorder.note(MILLISECOND, 7 * S + at * 5 * MILLISECOND);
        }
        recorder
    }

    #[test]
    fn columns_widen_with_the_run_and_lose_nothing() {
        for (seconds, expected) in
            [(2, Some((10, 200, 2))), (10, Some((50, 200, 10))), (60, Some((500, 120, 100))), (201, None)]
        {
            let found = recorder(seconds).columns(seconds as f64);
            let found = found.map(|heat| {
                let sums: Vec<u32> = heat.columns.iter().map(|column| column.iter().sum()).collect();
                assert!(sums.iter().all(|sum| *sum == sums[0]), "{seconds} s: {sums:?}");
                (heat.width_ms, sums.len(), sums[0])
            });
            assert_eq!(found, expected, "{seconds} s");
        }
    }

    #[test]
    fn threads_of_unequal_length_share_columns() {
        for (one, other, expected) in [(25, 3, Some((200, 125, 80))), (3, 25, Some((200, 125, 80)))] {
            let mut recorder_of_both = recorder(one);
            recorder_of_both.add(&recorder(other));
            let heat = recorder_of_both
                .columns(25.0)
                .map(|heat| (heat.width_ms, heat.columns.len(), heat.columns[0].iter().sum::<u32>()));
            assert_eq!(heat, expected);
        }
        let mut recorder_of_both = recorder(3);
        recorder_of_both.add(&recorder(201));
        assert_eq!(recorder_of_both.columns(201.0), None);
    }
}
