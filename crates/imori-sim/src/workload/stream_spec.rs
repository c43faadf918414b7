//! The streams and consumers of a run, and the limits that they must keep.

use crate::random::Random;

/// The rule by which acknowledged messages leave a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retention {
    Limits,
    Interest,
    WorkQueue,
}

/// A stream of a run.
#[derive(Debug, Clone)]
pub(crate) struct StreamSpec {
    pub(crate) name: String,
    pub(crate) retention: Retention,
    /// The most messages, and the most of one subject.
    pub(crate) messages_max: Option<u64>,
    pub(crate) per_subject_max: Option<u64>,
    pub(crate) bytes_max: Option<u64>,
    pub(crate) age_max_ms: Option<u64>,
    /// Whether it refuses messages at its limits instead of dropping the oldest.
    pub(crate) refuses: bool,
    /// The window in which it takes each message id once.
    pub(crate) window_ms: u64,
    /// Whether it ends with the broker.
    pub(crate) is_memory: bool,
    pub(crate) consumers: Vec<ConsumerSpec>,
}

/// A consumer of a run.
#[derive(Debug, Clone)]
pub(crate) struct ConsumerSpec {
    pub(crate) name: String,
    /// The only key that it gets.
    pub(crate) key: Option<usize>,
    /// Whether deliveries need no acknowledgement.
    pub(crate) is_free: bool,
    pub(crate) ack_wait_ms: u64,
    pub(crate) pending_max: u64,
    /// The subject that it sends to without being asked.
    pub(crate) push: Option<String>,
}

/// Nanoseconds of a millisecond; JetStream's times are in nanoseconds.
const NANOS_A_MS: u64 = 1_000_000;

/// The keys of each stream, which are the last words of its subjects.
pub(crate) const KEYS: usize = 3;

impl StreamSpec {
    /// Picks a stream with this number.
    pub(crate) fn new(random: &Random, number: usize) -> StreamSpec {
        let retention =
            *random.pick(&[Retention::Limits, Retention::Limits, Retention::Interest, Retention::WorkQueue]);
        let age_max_ms = random.chance(1, 6).then(|| *random.pick(&[100, 300, 2_000]));
        let window_ms = *random.pick(&[100, 200, 2_000, 120_000]);
        let limit = |share: usize, values: &[u64]| random.chance(share, 4).then(|| *random.pick(values));
        let messages_max = limit(1, &[1, 3, 8, 20]);
        let per_subject_max = limit(1, &[1, 1, 2, 5]);
        let bytes_max = limit(1, &[400, 2_000, 6_000]);
        let name = format!("S{number}");
        let consumers = consumers(random, number, retention);
        StreamSpec {
            name,
            retention,
            messages_max,
            per_subject_max,
            bytes_max,
            age_max_ms,
            refuses: random.chance(1, 4),
            window_ms: age_max_ms.map_or(window_ms, |age| window_ms.min(age)),
            is_memory: random.chance(1, 10),
            consumers,
        }
    }

    /// The body of the request that creates it.
    pub(crate) fn json(&self) -> String {
        let limit = |max: Option<u64>| max.map_or(-1, |max| i64::try_from(max).unwrap_or(i64::MAX));
        let retention = match self.retention {
            Retention::Limits => "limits",
            Retention::Interest => "interest",
            Retention::WorkQueue => "workqueue",
        };
        format!(
            r#"{{"name":"{}","subjects":["{}.>"],"retention":"{retention}","max_msgs":{},"max_msgs_per_subject":{},"max_bytes":{},"max_age":{},"discard":"{}","storage":"{}","num_replicas":1,"allow_direct":true,"duplicate_window":{}}}"#,
            self.name,
            self.name,
            limit(self.messages_max),
            limit(self.per_subject_max),
            limit(self.bytes_max),
            self.age_max_ms.unwrap_or(0) * NANOS_A_MS,
            if self.refuses { "new" } else { "old" },
            if self.is_memory { "memory" } else { "file" },
            self.window_ms * NANOS_A_MS,
        )
    }

    /// The subject with this key.
    pub(crate) fn subject(&self, key: usize) -> String {
        format!("{}.{key}", self.name)
    }
}

/// Picks the consumers of a stream. In a work queue no two of them may want the same message.
fn consumers(random: &Random, stream: usize, retention: Retention) -> Vec<ConsumerSpec> {
    let keys: Vec<Option<usize>> = match retention {
        Retention::WorkQueue if random.chance(1, 2) => vec![None],
        Retention::WorkQueue => (0..KEYS).map(Some).collect(),
        Retention::Limits | Retention::Interest => {
            let key = |_| random.chance(1, 2).then(|| random.below(KEYS));
            (0..random.between(1, 3)).map(key).collect()
        }
    };
    let consumer = |(number, key): (usize, Option<usize>)| {
        let is_push = random.chance(1, 4);
        let is_free = retention == Retention::Limits && random.chance(1, 4);
        // A reader that takes its time would get the messages of a consumer that pushes again and again.
        let waits: &[u64] = if is_push { &[30_000] } else { &[20, 200, 30_000] };
        ConsumerSpec {
            name: format!("C{number}"),
            key,
            is_free,
            ack_wait_ms: *random.pick(waits),
            pending_max: *random.pick(&[1, 4, 1_000]),
            push: is_push.then(|| format!("push.{stream}.{number}")),
        }
    };
    keys.into_iter().enumerate().map(consumer).collect()
}

impl ConsumerSpec {
    /// The body of the request that creates it.
    pub(crate) fn json(&self, stream: &StreamSpec) -> String {
        let mut fields = vec![format!(r#""durable_name":"{}""#, self.name)];
        if self.is_free {
            fields.push(String::from(r#""ack_policy":"none""#));
        } else {
            fields.push(String::from(r#""ack_policy":"explicit""#));
            fields.push(format!(r#""ack_wait":{}"#, self.ack_wait_ms * NANOS_A_MS));
            fields.push(format!(r#""max_ack_pending":{}"#, self.pending_max));
        }
        fields.extend(self.key.map(|key| format!(r#""filter_subject":"{}""#, stream.subject(key))));
        fields.extend(self.push.as_ref().map(|subject| format!(r#""deliver_subject":"{subject}""#)));
        format!(r#"{{"stream_name":"{}","config":{{{}}}}}"#, stream.name, fields.join(","))
    }

    /// Whether it wants messages with this key.
    pub(crate) fn wants(&self, key: usize) -> bool {
        self.key.is_none_or(|own| own == key)
    }
}
