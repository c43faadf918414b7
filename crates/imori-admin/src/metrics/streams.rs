//! Current state of streams and their consumers, and the families with a sample for each.

use imori_core::id::QueueId;
use imori_core::queue::Queue;

use super::exposition::Exposition;
use super::sources::Metrics;

/// RabbitMQ has these groups too; the metrics in them are our own.
const STREAMS: &str = "stream_metrics";
const CONSUMERS: &str = "stream_consumer_metrics";

/// Numbers of one stream.
#[derive(Debug)]
pub struct StreamNumbers {
    /// The name of its vhost.
    pub vhost: String,
    /// The name of the stream.
    pub name: String,
    /// Messages in it.
    pub messages: u64,
    /// Bytes of subjects, headers and bodies, as limits count them.
    pub bytes: u64,
    /// Sequence number of the first message, or of the next one if there is none.
    pub first_sequence: u64,
    /// Sequence number of the last message, also if it is deleted.
    pub last_sequence: u64,
    /// Number of all its consumers.
    pub consumer_count: usize,
    /// Its consumers, or those of them that a page shows.
    pub consumers: Vec<ConsumerNumbers>,
}

/// Numbers of one consumer of a stream.
#[derive(Debug)]
pub struct ConsumerNumbers {
    /// The name of the consumer.
    pub name: String,
    /// Messages that it has still to deliver.
    pub pending: u64,
    /// Deliveries without an acknowledgement.
    pub ack_pending: u64,
    /// Those messages that were delivered more than once.
    pub redelivered: u64,
}

impl StreamNumbers {
    /// Numbers of a stream in the vhost named `vhost`; `None` for another queue.
    fn of(vhost: String, queue: &Queue) -> Option<StreamNumbers> {
        let stream = queue.stream()?;
        let (index, last) = (stream.index(), queue.last_sequence());
        let consumers = stream.consumers().map(|consumer| ConsumerNumbers {
            name: consumer.name().to_string(),
            pending: consumer.unread(),
            ack_pending: consumer.pending_len() as u64,
            redelivered: consumer.redelivered_len() as u64,
        });
        Some(StreamNumbers {
            vhost,
            name: queue.name().to_string(),
            messages: index.len(),
            bytes: index.bytes(),
            first_sequence: index.first().unwrap_or(last + 1),
            last_sequence: last,
            consumer_count: stream.consumers().count(),
            consumers: consumers.collect(),
        })
    }

    /// The key by which pages sort streams.
    pub(super) fn key(&self) -> (&str, &str) {
        (&self.vhost, &self.name)
    }
}

impl Metrics {
    /// Numbers of a stream, if it exists.
    pub(super) fn stream_numbers(&self, id: QueueId) -> Option<StreamNumbers> {
        let numbers = |queue: &Queue| StreamNumbers::of(self.broker.vhost_name(queue.vhost()), queue);
        self.broker.with_queue(id, numbers).flatten()
    }
}

/// Keeps up to `max` consumers: those with the most messages that are not acknowledged.
pub fn keep_slowest(streams: &mut [StreamNumbers], max: usize) {
    let lag = |consumer: &ConsumerNumbers| consumer.pending.saturating_add(consumer.ack_pending);
    let mut lags: Vec<u64> = streams.iter().flat_map(|stream| stream.consumers.iter().map(lag)).collect();
    lags.sort_unstable_by(|a, b| b.cmp(a));
    let Some(lowest) = lags.get(max).copied() else { return };
    let above = lags.iter().filter(|lag| **lag > lowest).count();
    let mut equal = max.saturating_sub(above);
    for stream in streams {
        stream.consumers.retain(|consumer| {
            let is_equal = lag(consumer) == lowest;
            let is_kept = lag(consumer) > lowest || is_equal && equal > 0;
            equal -= usize::from(is_equal && is_kept);
            is_kept
        });
    }
}

/// A family with a sample per stream, or per consumer of a stream.
pub(super) struct StreamFamily {
    name: &'static str,
    /// The group by which it is requested.
    pub(super) group: &'static str,
    help: &'static str,
    value: Value,
}

enum Value {
    OfStream(fn(&StreamNumbers) -> u64),
    OfConsumer(fn(&ConsumerNumbers) -> u64),
}

/// All families of streams.
pub(super) const STREAM_FAMILIES: [StreamFamily; 8] = [
    stream("imori_stream_messages", "Messages of the stream.", |of| of.messages),
    stream("imori_stream_bytes", "Bytes of the stream's messages, as limits count them.", |of| of.bytes),
    stream("imori_stream_first_sequence", "Sequence number of the stream's first message.", |of| {
        of.first_sequence
    }),
    stream("imori_stream_last_sequence", "Sequence number of the stream's last message.", |of| {
        of.last_sequence
    }),
    stream("imori_stream_consumers", "Consumers of the stream.", |of| of.consumer_count as u64),
    consumer("imori_stream_consumer_pending", "Messages that the consumer has still to deliver.", |of| {
        of.pending
    }),
    consumer(
        "imori_stream_consumer_ack_pending",
        "Deliveries of the consumer that nobody has acknowledged.",
        |of| of.ack_pending,
    ),
    consumer(
        "imori_stream_consumer_redelivered",
        "Messages among these that were delivered more than once.",
        |of| of.redelivered,
    ),
];

const fn stream(name: &'static str, help: &'static str, value: fn(&StreamNumbers) -> u64) -> StreamFamily {
    StreamFamily { name, group: STREAMS, help, value: Value::OfStream(value) }
}

const fn consumer(
    name: &'static str,
    help: &'static str,
    value: fn(&ConsumerNumbers) -> u64,
) -> StreamFamily {
    StreamFamily { name, group: CONSUMERS, help, value: Value::OfConsumer(value) }
}

impl StreamFamily {
    /// Writes the head of the family.
    pub(super) fn head(&self, page: &mut Exposition) {
        page.head(self.name, self.help, "gauge");
    }

    /// Writes the samples of a stream.
    pub(super) fn samples(&self, page: &mut Exposition, stream: &StreamNumbers) {
        let (vhost, name) = stream.key();
        match self.value {
            Value::OfStream(value) => {
                page.sample(self.name, &[("vhost", vhost), ("stream", name)], value(stream) as f64);
            }
            Value::OfConsumer(value) => {
                for consumer in &stream.consumers {
                    let labels = [("vhost", vhost), ("stream", name), ("consumer", consumer.name.as_str())];
                    page.sample(self.name, &labels, value(consumer) as f64);
                }
            }
        }
    }
}
