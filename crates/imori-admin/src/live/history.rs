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
pub enum Window {
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
pub struct Windows {
    /// Milliseconds between two samples.
    pub step_ms: u64,
    /// The end of the last step, in milliseconds since the UNIX epoch; 0 if there is none.
    pub until: u64,
    /// The values of each series by its name, oldest first.
    pub samples: BTreeMap<&'static str, Vec<Option<f64>>>,
}

/// Both windows.
#[derive(Debug)]
pub struct History {
    seconds: Ring,
    minutes: Ring,
    /// Samples of seconds since the last whole minute.
    of_minute: Vec<Sample>,
}

impl Default for History {
    /// Nothing yet.
    fn default() -> History {
        let ring = |step_ms, max| Ring { step_ms, max, samples: VecDeque::new(), until: 0 };
        History {
            seconds: ring(SECOND_MS, HISTORY_SECONDS_MAX),
            minutes: ring(MINUTE_MS, HISTORY_MINUTES_MAX),
            of_minute: Vec::new(),
        }
    }
}

impl History {
    /// Adds the sample of the second that ends at `now`, in milliseconds since the UNIX epoch. Seconds in which the
    /// broker did not run are filled with samples without numbers.
    pub fn add(&mut self, now: u64, sample: Sample) {
        self.seconds.add(now, sample);
        self.of_minute.push(sample);
        if self.of_minute.len() >= SECONDS_A_MINUTE {
            self.minutes.add(now, Sample::summary(&self.of_minute));
            self.of_minute.clear();
        }
    }

    /// Adds milliseconds of a stall to the seconds before the last one, since a stall is seen only once it lasts. Each
    /// second gets what lies in it of the stall from `from` to `to`.
    pub fn note_stall(&mut self, from: u64, to: u64) {
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
    pub fn window(&self, window: Window) -> Windows {
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
