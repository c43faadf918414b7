//! The samples of the last ten minutes and of the last day.

use std::collections::{BTreeMap, VecDeque};

use super::sample::{Sample, Series};
use crate::limits::{HISTORY_MINUTES_MAX, HISTORY_SECONDS_MAX};

/// Length of a step of each window in milliseconds.
const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;

/// Steps of seconds in a minute.
const SECONDS_A_MINUTE: usize = 60;

/// A window of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Window {
    /// Ten minutes in steps of a second.
    TenMinutes,
    /// A day in steps of a minute.
    Day,
}

/// Samples at equal distances, oldest first.
#[derive(Debug)]
struct Ring {
    step_ms: u64,
    max: usize,
    samples: VecDeque<Sample>,
    /// The end of the last step, in milliseconds since the UNIX epoch.
    until: u64,
}

/// A window as the API shows it.
#[derive(Debug)]
pub(crate) struct Windows {
    pub(crate) step_ms: u64,
    pub(crate) until: u64,
    pub(crate) samples: BTreeMap<&'static str, Vec<Option<f64>>>,
}

/// Both windows.
#[derive(Debug)]
pub(super) struct History {
    seconds: Ring,
    minutes: Ring,
    /// Samples of seconds since the last whole minute.
    of_minute: Vec<Sample>,
}

impl History {
    /// Nothing yet.
    pub(super) fn new() -> History {
        let ring = |step_ms, max| Ring { step_ms, max, samples: VecDeque::new(), until: 0 };
        History {
            seconds: ring(SECOND_MS, HISTORY_SECONDS_MAX),
            minutes: ring(MINUTE_MS, HISTORY_MINUTES_MAX),
            of_minute: Vec::new(),
        }
    }

    /// Adds the sample of the second that ends at `now`, in milliseconds since the UNIX epoch. Seconds in which the
    /// broker did not run are filled with samples without numbers.
    pub(super) fn add(&mut self, now: u64, sample: Sample) {
        self.seconds.add(now, sample);
        self.of_minute.push(sample);
        if self.of_minute.len() >= SECONDS_A_MINUTE {
            self.minutes.add(now, Sample::summary(&self.of_minute));
            self.of_minute.clear();
        }
    }

    /// Adds milliseconds of a stall to the seconds before the last one, since a stall is seen only once it lasts. Each
    /// second gets what lies in it of the stall from `from` to `to`.
    pub(super) fn note_stall(&mut self, from: u64, to: u64) {
        let Ring { step_ms, samples, until, .. } = &mut self.seconds;
        let steps = samples.iter_mut().rev().skip(1);
        for (end, sample) in (1..).map_while(|back| until.checked_sub(back * *step_ms)).zip(steps) {
            if end <= from {
                break;
            }
            let late = end.min(to).saturating_sub(from.max(end.saturating_sub(*step_ms)));
            let sum = sample.get(Series::StalledMs).unwrap_or(0.0) + late as f64;
            sample.set(Series::StalledMs, Some(sum.min(*step_ms as f64)));
        }
    }

    /// A window as it is now.
    pub(super) fn window(&self, window: Window) -> Windows {
        let ring = match window {
            Window::TenMinutes => &self.seconds,
            Window::Day => &self.minutes,
        };
        let of = |series| ring.samples.iter().map(|sample| sample.get(series)).collect();
        Windows {
            step_ms: ring.step_ms,
            until: ring.until,
            samples: Series::ALL.into_iter().map(|series| (series.name(), of(series))).collect(),
        }
    }
}

impl Ring {
    fn add(&mut self, now: u64, sample: Sample) {
        let since_last = now.saturating_sub(self.until);
        // A step that comes a little late is no gap.
        let missing = (since_last + self.step_ms / 2) / self.step_ms;
        if !self.samples.is_empty() {
            let missing = usize::try_from(missing.saturating_sub(1)).unwrap_or(usize::MAX);
            (0..missing.min(self.max)).for_each(|_| self.push(Sample::default()));
        }
        self.push(sample);
        self.until = now;
    }

    fn push(&mut self, sample: Sample) {
        if self.samples.len() >= self.max {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_800_000_000_000;

    fn settled(value: f64) -> Sample {
        let mut sample = Sample::default();
        sample.set(Series::Settled, Some(value));
        sample
    }

    fn shown(history: &History, window: Window) -> (u64, Vec<Option<f64>>) {
        let Windows { until, samples, .. } = history.window(window);
        assert!(samples.values().all(|values| values.len() == samples["settled"].len()));
        (until, samples["settled"].clone())
    }

    #[test]
    fn each_window_is_bounded_and_ends_now() {
        let mut history = History::new();
        assert_eq!(shown(&history, Window::TenMinutes), (0, vec![]));
        let seconds = (HISTORY_MINUTES_MAX + 2) * SECONDS_A_MINUTE;
        for second in 0..seconds as u64 {
            history.add(START + second * 1_000, settled((second / 60) as f64));
        }
        let until = START + (seconds as u64 - 1) * 1_000;
        let (shown_until, values) = shown(&history, Window::TenMinutes);
        assert_eq!((shown_until, values.len()), (until, HISTORY_SECONDS_MAX));
        let (shown_until, values) = shown(&history, Window::Day);
        assert_eq!((shown_until, values.len()), (until, HISTORY_MINUTES_MAX));
        assert_eq!((values[0], values.last()), (Some(2.0), Some(&Some(HISTORY_MINUTES_MAX as f64 + 1.0))));
    }

    #[test]
    fn seconds_without_a_sample_have_no_numbers() {
        let mut history = History::new();
        for (at, value) in [(0, 1.0), (1_004, 2.0), (2_490, 3.0), (6_000, 4.0)] {
            history.add(START + at, settled(value));
        }
        let (until, values) = shown(&history, Window::TenMinutes);
        assert_eq!(until, START + 6_000);
        assert_eq!(values, [Some(1.0), Some(2.0), Some(3.0), None, None, None, Some(4.0)]);
        // The clock was set back, and then far ahead.
        history.add(START, settled(5.0));
        history.add(START * 2, settled(6.0));
        assert_eq!(shown(&history, Window::TenMinutes).1.len(), HISTORY_SECONDS_MAX);
    }

    #[test]
    fn a_stall_counts_in_the_seconds_in_which_it_was() {
        let mut history = History::new();
        (1..=5).for_each(|second| history.add(START + second * 1_000, Sample::default()));
        history.note_stall(START + 1_700, START + 3_500);
        let stalled = |history: &History| history.window(Window::TenMinutes).samples["stalled_ms"].clone();
        assert_eq!(stalled(&history), [None, Some(300.0), Some(1_000.0), Some(500.0), None]);
        history.note_stall(START + 3_100, START + 9_000);
        assert_eq!(stalled(&history)[3..], [Some(1_000.0), None], "the last second is the caller's");
    }
}
