//! Current state of the queues: sums, the busiest queues, and each queue's numbers.

use std::cmp::Reverse;

use imori_core::activity::QueueActivity;
use imori_core::id::QueueId;
use imori_core::name::Name;
use imori_core::queue::Queue;

use super::sources::Metrics;
use super::streams::{StreamNumbers, keep_slowest};
use crate::http::rest_at;
use crate::limits::{METRICS_QUEUES_MAX, METRICS_STREAM_CONSUMERS_MAX};

/// Sums over all queues, and the busiest ones.
#[derive(Debug, Default)]
pub(super) struct QueueSums {
    pub(super) queues: u64,
    pub(super) ready: u64,
    pub(super) ready_bytes: u64,
    pub(super) delayed: u64,
    pub(super) unsettled: u64,
    pub(super) busiest: Vec<QueueNumbers>,
    /// Number of streams; they are among the queues.
    pub(super) streams: u64,
    pub(super) busiest_streams: Vec<StreamNumbers>,
}

/// Numbers of one queue.
#[derive(Debug)]
pub(super) struct QueueNumbers {
    pub(super) vhost: String,
    pub(super) name: String,
    pub(super) ready: u64,
    pub(super) ready_bytes: u64,
    pub(super) unsettled: u64,
    pub(super) consumers: u64,
    pub(super) activity: QueueActivity,
}

impl QueueNumbers {
    /// Numbers of a queue in the vhost named `vhost`.
    pub(super) fn of(vhost: String, queue: &Queue) -> QueueNumbers {
        QueueNumbers {
            vhost,
            name: queue.name().to_string(),
            ready: queue.ready_len() as u64,
            ready_bytes: queue.ready_bytes(),
            unsettled: queue.unsettled_len() as u64,
            consumers: queue.consumers_len() as u64,
            activity: *queue.activity(),
        }
    }
}

impl Metrics {
    /// Sums up all queues, which include streams. The busiest are those with most messages and those that moved most since the start, in
    /// equal parts. Totals since the start keep the selection stable between scrapes.
    pub(super) async fn queue_sums(&self) -> QueueSums {
        let mut sums = QueueSums::default();
        let (mut ranked, mut ranked_streams) = (Vec::new(), Vec::new());
        for (index, key) in self.broker.queue_ids().into_iter().enumerate() {
            let seen = self.broker.with_queue(key, |queue| {
                let activity = queue.activity();
                (
                    [queue.ready_len(), queue.unsettled_len(), queue.delayed_len()].map(|len| len as u64),
                    queue.ready_bytes(),
                    activity.published + activity.deliveries(),
                    queue.is_stream(),
                )
            });
            if let Some(([ready, unsettled, delayed], ready_bytes, moved, is_stream)) = seen {
                sums.queues += 1;
                sums.ready += ready;
                sums.unsettled += unsettled;
                sums.delayed += delayed;
                sums.ready_bytes += ready_bytes;
                let one = Ranked { held: ready + unsettled, moved, key };
                ranked.push(one);
                if is_stream {
                    sums.streams += 1;
                    ranked_streams.push(one);
                }
            }
            rest_at(index).await;
        }
        let numbers = |key| {
            self.broker
                .with_queue(key, |queue| QueueNumbers::of(self.broker.vhost_name(queue.vhost()), queue))
        };
        sums.busiest = busiest(ranked, METRICS_QUEUES_MAX).into_iter().filter_map(numbers).collect();
        sums.busiest.sort_unstable_by(|a, b| (&a.vhost, &a.name).cmp(&(&b.vhost, &b.name)));
        let streams = busiest(ranked_streams, METRICS_QUEUES_MAX).into_iter();
        sums.busiest_streams = streams.filter_map(|key| self.stream_numbers(key)).collect();
        sums.busiest_streams.sort_unstable_by(|a, b| a.key().cmp(&b.key()));
        keep_slowest(&mut sums.busiest_streams, METRICS_STREAM_CONSUMERS_MAX);
        sums
    }

    /// The queues of these vhosts, or of all, sorted by vhost and name.
    pub(super) fn queue_ids(&self, vhosts: &[String]) -> Vec<QueueId> {
        let table = self.broker.table();
        let mut ids = Vec::new();
        for (_, vhost) in self.vhosts(vhosts) {
            let mut of_vhost: Vec<(&Name, QueueId)> = table.queues(vhost).collect();
            of_vhost.sort_unstable();
            ids.extend(of_vhost.into_iter().map(|(_, id)| id));
        }
        ids
    }

    /// Numbers of a queue, if it exists.
    pub(super) fn queue_numbers(&self, id: QueueId) -> Option<QueueNumbers> {
        self.broker.with_queue(id, |queue| QueueNumbers::of(self.broker.vhost_name(queue.vhost()), queue))
    }
}

/// A queue among those of which the busiest are chosen.
#[derive(Debug, Clone, Copy)]
pub struct Ranked {
    /// Messages in the queue, unsettled ones included.
    pub held: u64,
    /// Messages published to it and delivered from it since the start.
    pub moved: u64,
    /// The queue.
    pub key: QueueId,
}

/// Up to `max` queues: half by messages held, the rest by messages moved, without duplicates.
pub fn busiest(mut ranked: Vec<Ranked>, max: usize) -> Vec<QueueId> {
    let mut first = Vec::new();
    for by in [|one: &Ranked| one.held, |one: &Ranked| one.moved] {
        let taken = (max - first.len()).min(if first.is_empty() { max / 2 } else { max });
        if ranked.len() > taken && taken > 0 {
            ranked.select_nth_unstable_by_key(taken - 1, |one| (Reverse(by(one)), one.key.slot));
        }
        let rest = ranked.split_off(taken.min(ranked.len()));
        first.extend(std::mem::replace(&mut ranked, rest).into_iter().map(|one| one.key));
    }
    first
}
