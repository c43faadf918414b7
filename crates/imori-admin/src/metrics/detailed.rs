//! `/metrics/detailed`: requested families, with a sample per queue, stream, consumer of a stream or exchange.

use std::sync::Arc;

use axum::body::Body;
use imori_core::id::QueueId;

use super::exposition::Exposition;
use super::families::{QUEUE_FAMILIES, QueueFamily};
use super::sources::Metrics;
use super::streams::{STREAM_FAMILIES, StreamFamily};
use crate::http::{Names, gathered};
use crate::limits::HTTP_ROWS_AT_ONCE;

/// Prefix of RabbitMQ's detailed metrics.
const PREFIX: &str = "rabbitmq_detailed_";

/// Prefix of families with a sample per vhost or exchange.
const CLUSTER: &str = "rabbitmq_cluster_";

/// Answers by the parameters `family` and `vhost`, each of which may be repeated. Without a family there is only the
/// broker's identity; unknown families are ignored. Every family contains names, so `names` has to allow them.
pub(crate) fn detailed(metrics: &Arc<Metrics>, parameters: &[(String, String)], names: Names) -> Body {
    let values = |name: &str| {
        let of = parameters.iter().filter(|(known, _)| known == name);
        of.map(|(_, value)| value.clone()).collect::<Vec<String>>()
    };
    let (groups, vhosts) = (values("family"), values("vhost"));
    let has = |group: &str| names == Names(true) && groups.iter().any(|known| known == group);
    let of_queues = QUEUE_FAMILIES.iter().filter(|family| has(family.group)).map(Family::OfQueues);
    let of_streams = STREAM_FAMILIES.iter().filter(|family| has(family.group)).map(Family::OfStreams);
    let families: Vec<Family> = of_queues.chain(of_streams).collect();
    let queues = if families.is_empty() { Vec::new() } else { metrics.queue_ids(&vhosts) };
    let mut page = Exposition::default();
    metrics.push_identity(&mut page, "detailed");
    let chosen = metrics.vhosts(&vhosts);
    if has("vhost_status") {
        let samples = chosen.iter().map(|(name, _)| (name.as_str(), 1.0));
        page.each(
            "gauge",
            (&format!("{CLUSTER}vhost_status"), "Whether a vhost is there."),
            "vhost",
            samples,
        );
    }
    if has("exchange_names") {
        let name = format!("{CLUSTER}exchange_name");
        page.head(&name, "The exchanges.", "gauge");
        let table = metrics.broker.table();
        for (vhost_name, vhost) in &chosen {
            let mut names: Vec<String> =
                table.exchanges(*vhost).map(|exchange| exchange.name().to_string()).collect();
            names.sort_unstable();
            for exchange in names {
                page.sample(&name, &[("vhost", vhost_name.as_str()), ("exchange", exchange.as_str())], 1.0);
            }
        }
    }
    let mut first = Some(page.into_text());
    let mut rows = Rows { metrics: Arc::clone(metrics), families, queues, family: 0, queue: 0 };
    gathered(move || first.take().or_else(|| rows.next()))
}

/// A family of samples, of all queues or of those that are streams.
#[derive(Clone, Copy)]
enum Family {
    OfQueues(&'static QueueFamily),
    OfStreams(&'static StreamFamily),
}

/// Produces the queues' samples family by family.
struct Rows {
    metrics: Arc<Metrics>,
    families: Vec<Family>,
    queues: Vec<QueueId>,
    /// The position reached.
    family: usize,
    queue: usize,
}

impl Rows {
    /// The next block of samples.
    fn next(&mut self) -> Option<String> {
        let family = *self.families.get(self.family)?;
        let mut page = Exposition::default();
        if self.queue == 0 {
            match family {
                Family::OfQueues(family) => family.head(&mut page, PREFIX),
                Family::OfStreams(family) => family.head(&mut page),
            }
        }
        for id in self.queues.iter().skip(self.queue).take(HTTP_ROWS_AT_ONCE) {
            match family {
                Family::OfQueues(family) => {
                    let numbers = self.metrics.queue_numbers(*id);
                    numbers.iter().for_each(|queue| family.sample(&mut page, PREFIX, queue));
                }
                Family::OfStreams(family) => {
                    let numbers = self.metrics.stream_numbers(*id);
                    numbers.iter().for_each(|stream| family.samples(&mut page, stream));
                }
            }
        }
        self.queue += HTTP_ROWS_AT_ONCE;
        if self.queue >= self.queues.len() {
            (self.family, self.queue) = (self.family + 1, 0);
        }
        Some(page.into_text())
    }
}
