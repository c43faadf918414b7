//! The sampler: a task on the thread of HTTP requests that looks at the broker once a second.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use imori_core::time::Time;
use imori_server::Phase;
use imori_server::broker::Broker;
use imori_server::stall::{LateWork, Stall};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::{MissedTickBehavior, interval};

use super::counts::{Counts, Traffic, add_state};
use super::live_state::{Live, Topic};
use super::pass::PassState;
use super::sample::{Sample, Series};
use super::totals::Totals;
use crate::limits::{PASS_EVERY_MAX, PASS_SHARE_SEEN, PASS_SHARE_UNSEEN, SAMPLE_EVERY};
use crate::milliseconds::since_epoch;

/// Starts the sampler, which runs until the broker has ended.
pub(crate) fn start(broker: &Broker, live: &Arc<Live>) {
    let sampler = Sampler {
        live: Arc::clone(live),
        counts: Counts::of(broker),
        pass: PassState::default(),
        traffic: None,
        passed: Sample::default(),
        totals: Arc::default(),
        next_pass: Instant::now(),
        stalls: StallsSeen::since(broker.now()),
        broker: broker.clone(),
    };
    broker.runtime().spawn(sampler.run());
}

struct Sampler {
    broker: Broker,
    live: Arc<Live>,
    /// The counters at the last sample.
    counts: Counts,
    pass: PassState,
    /// The traffic at the last pass.
    traffic: Option<Traffic>,
    /// The series that the last pass found, which stay until the next one.
    passed: Sample,
    totals: Arc<Totals>,
    next_pass: Instant,
    stalls: StallsSeen,
}

impl Sampler {
    async fn run(mut self) {
        let mut phase = self.broker.follow_phase();
        let mut ticks = interval(SAMPLE_EVERY);
        // After a pause of the whole process, there is nothing to catch up with.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let live = Arc::clone(&self.live);
        loop {
            tokio::select! {
                () = async { drop(phase.wait_for(|phase| *phase == Phase::Ended).await) } => return,
                _ = ticks.tick() => self.sample().await,
                () = live.list_wanted.notified() => {
                    self.pass_over().await;
                    self.live.show_lists();
                }
            }
        }
    }

    /// Takes a sample and shows it.
    async fn sample(&mut self) {
        self.live.forget_lists();
        let is_listed = self.live.is_followed(Topic::Queues) || self.live.is_followed(Topic::Connections);
        if is_listed || Instant::now() >= self.next_pass {
            self.pass_over().await;
        }
        let counts = Counts::of(&self.broker);
        let mut sample = self.passed;
        counts.add_to(&mut sample, &self.counts);
        self.counts = counts;
        add_state(&mut sample, &self.broker);
        let (now, stalls) = (self.broker.now(), self.broker.stalls());
        let Noted { stalled, earlier, changed } = self.stalls.note(now, &stalls);
        sample.set(Series::StalledMs, Some(stalled.as_secs_f64() * 1_000.0));
        self.live.keep(since_epoch(now), sample);
        for (from, to) in earlier {
            self.live.keep_stall(since_epoch(from), since_epoch(to));
        }
        self.live.show(since_epoch(now), sample, &self.totals, &changed);
    }

    /// Passes over all connections and queues, and plans the next pass by what this one costs.
    async fn pass_over(&mut self) {
        let (began, used) = (Instant::now(), used_time());
        let mut totals = Totals::default();
        let traffic = self.pass.over_connections(&self.broker, &self.live, &mut totals).await;
        self.pass.over_queues(&self.broker, &self.live, &mut totals).await;
        if let Some(before) = &self.traffic {
            traffic.add_to(&mut self.passed, before);
        }
        self.traffic = Some(traffic);
        self.passed.set(Series::Ready, Some(totals.ready as f64));
        self.passed.set(Series::Unsettled, Some(totals.unsettled as f64));
        self.totals = Arc::new(totals);
        let is_seen = Topic::ALL.into_iter().any(|topic| self.live.is_followed(topic));
        let share = if is_seen { PASS_SHARE_SEEN } else { PASS_SHARE_UNSEEN };
        let pause = used_time().saturating_sub(used).saturating_mul(share);
        self.next_pass = began + pause.min(PASS_EVERY_MAX);
    }
}

/// Processor time that this thread has used.
fn used_time() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, nanos) =
        (u64::try_from(used.tv_sec).unwrap_or(0), u32::try_from(used.tv_nsec).unwrap_or(0));
    Duration::new(seconds, nanos)
}

/// What is known of the latest stalls.
pub struct StallsSeen {
    /// The time of the last sample.
    until: Time,
    /// The stalls that were seen, by what is late and since when, with the end of what was counted and whether they are
    /// over.
    seen: HashMap<(LateWork, Time), (Time, bool)>,
}

/// What is new of stalls.
#[derive(Debug, Default, PartialEq)]
pub struct Noted {
    /// Time since the last sample in which something was late.
    pub stalled: Duration,
    /// Times before the last sample that were not counted yet.
    pub earlier: Vec<(Time, Time)>,
    /// Stalls that began or ended.
    pub changed: Vec<Stall>,
}

impl StallsSeen {
    /// Counts stalls from this time on.
    pub fn since(until: Time) -> StallsSeen {
        StallsSeen { until, seen: HashMap::new() }
    }

    /// Notes the latest stalls.
    pub fn note(&mut self, now: Time, stalls: &[Stall]) -> Noted {
        let mut noted = Noted::default();
        let mut seen = HashMap::new();
        for stall in stalls {
            let key = (stall.what, stall.began);
            let end = if stall.is_over { stall.began.after(stall.lasted) } else { now };
            let known = self.seen.get(&key).copied();
            let from = known.map_or(stall.began, |(until, _)| until);
            if end > from {
                noted.stalled += end.since(from.max(self.until));
                if from < self.until {
                    noted.earlier.push((from, end.min(self.until)));
                }
            }
            if known.is_none_or(|(_, was_over)| was_over != stall.is_over) {
                noted.changed.push(*stall);
            }
            seen.insert(key, (end.max(from), stall.is_over));
        }
        // Two parts may be late at the same time.
        noted.stalled = noted.stalled.min(now.since(self.until));
        (self.until, self.seen) = (now, seen);
        noted
    }
}
