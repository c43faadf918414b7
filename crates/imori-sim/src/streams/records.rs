//! What clients remember of messages, streams and consumers.

use std::collections::{BTreeMap, BTreeSet};

use imori_core::time::Time;

use crate::workload::{ConsumerSpec, StreamSpec};

/// Whether a stream or a consumer exists, as far as clients know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Absent,
    /// Its creation was sent and not answered.
    Making,
    There,
    /// Its deletion was sent and not answered.
    Going,
}

/// A message that a client sent to a stream.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) stream: usize,
    /// The life of the stream that it belongs to; `None` if the stream was deleted while it was on its way.
    pub(crate) life: Option<usize>,
    pub(crate) key: usize,
    pub(crate) size: usize,
    /// Bytes of the message as limits of a stream count them.
    pub(crate) bytes: u64,
    /// The first message with its id.
    pub(crate) once: Option<usize>,
    /// The last message of its subject that it expects.
    pub(crate) expected: Option<u64>,
    pub(crate) at: u64,
    pub(crate) time: Time,
    pub(crate) answer: Answer,
    /// Its sequence number, told by an answer or by a reader.
    pub(crate) sequence: Option<u64>,
}

/// The answer to a publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Missing,
    /// The stream has the message, at this step and time at the latest.
    Stored(u64, Time),
    /// The stream has had a message with its id before.
    Duplicate,
    Refused,
}

impl Answer {
    /// Whether the answer came before this step.
    pub(crate) fn is_stored_before(self, step: u64) -> bool {
        matches!(self, Answer::Stored(at, _) if at < step)
    }
}

/// A stream.
#[derive(Debug)]
pub(crate) struct StreamState {
    pub(crate) spec: StreamSpec,
    pub(crate) stage: Stage,
    /// The transport of the client that changes the stage.
    pub(crate) driver: Option<usize>,
    /// Number of earlier lives.
    pub(crate) life: usize,
    /// The messages of this life, by sequence number.
    pub(crate) at: BTreeMap<u64, usize>,
    /// Deleted messages, with the step of the answer.
    pub(crate) deletions: BTreeMap<u64, Option<u64>>,
    pub(crate) purges: Vec<Purge>,
    /// Messages with an acknowledged delivery.
    pub(crate) acked: BTreeSet<u64>,
    /// Messages that a consumer is certainly done with, with the step of the answer.
    pub(crate) done: BTreeMap<u64, u64>,
    pub(crate) consumers: Vec<ConsumerState>,
}

/// A purge of a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Purge {
    /// The key of the messages; `None` for all.
    pub(crate) key: Option<usize>,
    /// Messages from this number on stay.
    pub(crate) end: Option<u64>,
    /// Number of messages that stay.
    pub(crate) keep: u64,
    pub(crate) at: u64,
    pub(crate) answered_at: Option<u64>,
}

/// A consumer of a stream.
#[derive(Debug)]
pub(crate) struct ConsumerState {
    pub(crate) spec: ConsumerSpec,
    pub(crate) stage: Stage,
    pub(crate) driver: Option<usize>,
    /// Number of earlier lives.
    pub(crate) life: usize,
    /// The step at which its creation was answered.
    pub(crate) made_at: u64,
    /// Messages that it certainly has delivered.
    pub(crate) delivered: BTreeSet<u64>,
    /// The message of each delivery by number, since the broker's last end.
    pub(crate) numbers: BTreeMap<u64, u64>,
    /// Acknowledged messages, with the session that got an answer and its step.
    pub(crate) acks: BTreeMap<u64, Option<(usize, u64)>>,
}

impl StreamState {
    pub(crate) fn new(spec: StreamSpec) -> StreamState {
        let consumers = spec.consumers.iter().cloned().map(ConsumerState::new).collect();
        StreamState {
            spec,
            stage: Stage::Absent,
            driver: None,
            life: 0,
            at: BTreeMap::new(),
            deletions: BTreeMap::new(),
            purges: Vec::new(),
            acked: BTreeSet::new(),
            done: BTreeMap::new(),
            consumers,
        }
    }

    /// Begins another life. What was sent to the old one and not answered may still happen to the new one.
    pub(crate) fn begin_life(&mut self) {
        self.life += 1;
        self.at.clear();
        self.done.clear();
        self.deletions.retain(|_, answered_at| answered_at.is_none());
        self.purges.retain(|purge| purge.answered_at.is_none());
        self.consumers.iter_mut().for_each(|consumer| {
            consumer.begin_life();
            (consumer.stage, consumer.driver) = (Stage::Absent, None);
        });
    }
}

impl ConsumerState {
    fn new(spec: ConsumerSpec) -> ConsumerState {
        ConsumerState {
            spec,
            stage: Stage::Absent,
            driver: None,
            life: 0,
            made_at: 0,
            delivered: BTreeSet::new(),
            numbers: BTreeMap::new(),
            acks: BTreeMap::new(),
        }
    }

    /// Begins another life. An acknowledgement that is on its way may reach the new one.
    pub(crate) fn begin_life(&mut self) {
        self.life += 1;
        self.delivered.clear();
        self.numbers.clear();
        self.acks.values_mut().for_each(|answered| *answered = None);
    }
}
