//! Work that may be late, and the evidence gathered while it is.

use std::time::Duration;

use imori_core::time::Time;

use crate::stall::{Cause, Device, Evidence, Sample, others_that_wait, pressure, sample_thread};

/// Work that is sampled repeatedly.
#[derive(Debug)]
pub(super) struct Lateness {
    /// Name of the thread that does the work.
    thread: String,
    device: Option<Device>,
    watched: Option<Watched>,
    /// Number of the stall, once reported.
    pub(super) number: Option<u64>,
}

#[derive(Debug)]
struct Watched {
    began: Time,
    looked: Time,
    first: Sample,
    evidence: Evidence,
    /// Number of samples that spoke for each cause.
    votes: [u32; Cause::ALL.len()],
}

/// The result of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Late {
    /// The work is not late yet.
    No,
    /// The work has just become late and should be logged.
    Begins,
    /// The work is still late, and was logged before.
    GoesOn,
    /// The work is on time again; ends the stall with this number.
    Ends(u64),
}

/// Two samples belong to the same work if their start times differ by no more than this.
const SAME_WITHIN: Duration = Duration::from_millis(10);

static NOTHING: Evidence = Evidence {
    watched: Duration::ZERO,
    samples: 0,
    disk_waits: 0,
    ran: Duration::ZERO,
    starved: Duration::ZERO,
    in_flight_max: None,
    silent: Duration::ZERO,
    completed: None,
    device_busy: None,
    others_waiting: 0,
    io_pressure: None,
    cpu_pressure: None,
};

impl Lateness {
    /// Watches the thread `thread` and the device that holds the data folder.
    pub(super) fn new(thread: &str, device: Option<Device>) -> Lateness {
        Lateness { thread: String::from(thread), device, watched: None, number: None }
    }

    /// Samples work that has lasted for `lasts` and is late from `late` on. Evidence is gathered from half of that,
    /// so that there is some to log. Work that is already late at its first sample is reported at the second.
    pub(super) fn look(&mut self, now: Time, lasts: Option<Duration>, late: Duration) -> Late {
        let began =
            lasts.filter(|lasts| *lasts >= late / 2).map(|lasts| Time(now.0.saturating_sub(micros(lasts))));
        let is_same = match (&self.watched, began) {
            (Some(watched), Some(began)) => {
                watched.began.since(began).max(began.since(watched.began)) <= SAME_WITHIN
            }
            _ => false,
        };
        if !is_same {
            let ended = self.number.take();
            let first = || seen(&self.thread, self.device);
            self.watched = began.map(|began| Watched {
                began,
                looked: now,
                first: first(),
                evidence: Evidence::default(),
                votes: Default::default(),
            });
            return ended.map_or(Late::No, Late::Ends);
        }
        let Some(watched) = &mut self.watched else { return Late::No };
        let after = now.since(std::mem::replace(&mut watched.looked, now));
        watched.evidence.add(&watched.first, &seen(&self.thread, self.device), after);
        watched.evidence.others_waiting = others_that_wait(&self.thread);
        watched.evidence.io_pressure = pressure("io");
        watched.evidence.cpu_pressure = pressure("cpu");
        match (self.number, lasts.is_some_and(|lasts| lasts >= late)) {
            (Some(_), _) => Late::GoesOn,
            (None, true) => Late::Begins,
            (None, false) => Late::No,
        }
    }

    /// Start of the current work, if it is watched.
    pub(super) fn began(&self) -> Time {
        self.watched.as_ref().map_or(Time::default(), |watched| watched.began)
    }

    /// Adds a vote for `judged` and returns the cause with most votes. The last sample alone may see only how the
    /// stall ends.
    pub(super) fn cause(&mut self, judged: Cause) -> Cause {
        let Some(watched) = &mut self.watched else { return judged };
        if let Some(votes) = watched.votes.get_mut(judged as usize) {
            *votes += 1;
        }
        let by_votes = Cause::ALL.into_iter().zip(watched.votes);
        by_votes.max_by_key(|(_, votes)| *votes).map_or(judged, |(cause, _)| cause)
    }

    /// The evidence gathered so far.
    pub(super) fn evidence(&self) -> &Evidence {
        self.watched.as_ref().map_or(&NOTHING, |watched| &watched.evidence)
    }
}

fn seen(thread: &str, device: Option<Device>) -> Sample {
    Sample { thread: sample_thread(thread), device: device.and_then(Device::sample) }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_late_is_told_of_while_it_lasts() {
        let millis = Duration::from_millis;
        let mut lateness = Lateness::new("nobody", None);
        // Time of the sample, duration so far, expected result.
        for (now, lasts, expected) in [
            (1_000, Some(0), Late::No),
            (1_050, Some(50), Late::No),
            (1_125, Some(125), Late::No),
            (1_175, Some(175), Late::No),
            (1_250, Some(250), Late::Begins),
            (1_300, Some(300), Late::GoesOn),
            (1_350, Some(20), Late::Ends(7)),
            (1_400, None, Late::No),
            (2_000, Some(500), Late::No),
            (2_050, Some(550), Late::Begins),
            (2_100, Some(260), Late::Ends(7)),
            (2_150, Some(310), Late::Begins),
            (2_200, None, Late::Ends(7)),
            (2_250, Some(150), Late::No),
            (2_300, None, Late::No),
        ] {
            let found = lateness.look(Time(now * 1_000), lasts.map(millis), millis(250));
            assert_eq!(found, expected, "at {now}");
            if found == Late::Begins {
                lateness.number = Some(7);
                assert!(lateness.evidence().watched >= millis(50));
            }
        }
    }
}
