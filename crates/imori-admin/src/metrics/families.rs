//! Families with a sample per queue.

use super::exposition::Exposition;
use super::queues::QueueNumbers;

/// A family with a sample per queue.
pub(super) struct QueueFamily {
    /// The name without its prefix.
    pub(super) name: &'static str,
    /// RabbitMQ's group of the family, by which it is requested.
    pub(super) group: &'static str,
    kind: &'static str,
    help: &'static str,
    value: fn(&QueueNumbers) -> u64,
}

/// All families, with RabbitMQ's names and groups.
pub(super) const QUEUE_FAMILIES: [QueueFamily; 12] = [
    gauge("queue_messages_ready", "queue_coarse_metrics", "Messages that wait.", |of| of.ready),
    gauge("queue_messages_unacked", "queue_coarse_metrics", "Messages that are with consumers.", |of| {
        of.unsettled
    }),
    gauge("queue_messages", "queue_coarse_metrics", "Messages of the queue.", |of| of.ready + of.unsettled),
    gauge("queue_consumers", "queue_consumer_count", "Consumers of the queue.", |of| of.consumers),
    gauge("queue_messages_ready_bytes", "queue_metrics", "Bytes of the bodies that wait.", |of| {
        of.ready_bytes
    }),
    counter(
        "queue_exchange_messages_published_total",
        "queue_exchange_metrics",
        "Messages that came.",
        |of| of.activity.published,
    ),
    counter("queue_messages_delivered_ack_total", DELIVERY, "Deliveries to consumers that settle.", |of| {
        of.activity.delivered_unsettled
    }),
    counter(
        "queue_messages_delivered_total",
        DELIVERY,
        "Deliveries to consumers that do not settle.",
        |of| of.activity.delivered_settled,
    ),
    counter("queue_get_ack_total", DELIVERY, "Messages that were asked for and are settled.", |of| {
        of.activity.got_unsettled
    }),
    counter("queue_get_total", DELIVERY, "Messages that were asked for and are not settled.", |of| {
        of.activity.got_settled
    }),
    counter(
        "queue_messages_redelivered_total",
        DELIVERY,
        "Deliveries of a message given out before.",
        |of| of.activity.redelivered,
    ),
    counter("queue_messages_acked_total", DELIVERY, "Deliveries that were accepted.", |of| {
        of.activity.accepted
    }),
];

const DELIVERY: &str = "queue_delivery_metrics";

const fn gauge(
    name: &'static str,
    group: &'static str,
    help: &'static str,
    value: fn(&QueueNumbers) -> u64,
) -> QueueFamily {
    QueueFamily { name, group, kind: "gauge", help, value }
}

const fn counter(
    name: &'static str,
    group: &'static str,
    help: &'static str,
    value: fn(&QueueNumbers) -> u64,
) -> QueueFamily {
    QueueFamily { name, group, kind: "counter", help, value }
}

impl QueueFamily {
    /// Writes the head of the family.
    pub(super) fn head(&self, page: &mut Exposition, prefix: &str) {
        page.head(&format!("{prefix}{}", self.name), self.help, self.kind);
    }

    /// Writes a queue's sample.
    pub(super) fn sample(&self, page: &mut Exposition, prefix: &str, queue: &QueueNumbers) {
        let labels = [("vhost", queue.vhost.as_str()), ("queue", queue.name.as_str())];
        page.sample(&format!("{prefix}{}", self.name), &labels, (self.value)(queue) as f64);
    }
}
