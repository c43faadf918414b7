//! Growth rates of queue counters.
//!
//! Two samples of all queues are kept, some seconds apart, and taken only on request. So a broker without monitoring
//! has no cost, but the first request gets no rates.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use imori_core::activity::QueueActivity;
use imori_core::id::QueueId;
use imori_core::time::Time;
use imori_server::broker::Broker;

use crate::limits::RATES_EVERY;
use crate::lock::lock;

/// The two latest samples.
#[derive(Debug, Default)]
pub(crate) struct Rates(Mutex<Samples>);

/// The counters of all queues at the last request for rates, and some seconds before.
#[derive(Debug, Default)]
pub struct Samples {
    taken: Option<Time>,
    /// Time between the two samples.
    stretch: Duration,
    /// Queues with any activity so far.
    queues: HashMap<QueueId, Sample>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    now: QueueActivity,
    before: QueueActivity,
}

impl Rates {
    /// Takes a sample if the last one is old enough.
    pub(crate) fn refresh(&self, broker: &Broker) {
        let mut samples = lock(&self.0);
        let now = broker.now();
        if samples.taken.is_some_and(|taken| now.since(taken) < RATES_EVERY) {
            return;
        }
        let activity = |key| Some((key, broker.with_queue(key, |queue| *queue.activity())?));
        samples.take(now, broker.queue_ids().into_iter().filter_map(activity));
    }

    /// Growth per second of a queue's counter between the last two samples; 0 without two samples.
    pub(crate) fn of(&self, key: QueueId, count: impl Fn(&QueueActivity) -> u64) -> f64 {
        lock(&self.0).rate(key, count)
    }
}

impl Samples {
    /// Takes a sample: what each queue has done so far.
    pub fn take(&mut self, now: Time, activities: impl IntoIterator<Item = (QueueId, QueueActivity)>) {
        let mut queues = HashMap::new();
        for (key, activity) in activities {
            if activity != QueueActivity::default() {
                let before = self.queues.get(&key).map(|sample| sample.now).unwrap_or_default();
                queues.insert(key, Sample { now: activity, before });
            }
        }
        let stretch = self.taken.map(|taken| now.since(taken)).unwrap_or_default();
        *self = Samples { taken: Some(now), stretch, queues };
    }

    /// Growth per second of a queue's counter between the two samples; 0 without two samples.
    pub fn rate(&self, key: QueueId, count: impl Fn(&QueueActivity) -> u64) -> f64 {
        let Some(sample) = self.queues.get(&key).filter(|_| !self.stretch.is_zero()) else { return 0.0 };
        let grown = count(&sample.now).saturating_sub(count(&sample.before));
        grown as f64 / self.stretch.as_secs_f64()
    }
}
