//! The settings of a stream and of its consumers, as the core enforces them.

use std::time::Duration;

use super::age::parse_age;
use crate::index::Filter;
use crate::index::SubjectMap;
use crate::name::Name;
use crate::time::Time;

/// The rule by which a stream gives up messages that its limits would keep.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// Messages stay until a limit is reached.
    #[default]
    Limits,
    /// A message goes once every consumer that wants it has acknowledged it.
    Interest,
    /// A message goes once a consumer has acknowledged it.
    WorkQueue,
}

/// The settings that only streams have. The limits of length, bytes and age are those of the queue.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct StreamSettings {
    /// The rule by which acknowledged messages go.
    pub retention: Retention,
    /// Messages that a subject may have.
    pub per_subject_max: Option<u64>,
    /// A message beyond the limit of its subject is refused, instead of replacing the subject's oldest.
    pub refuses_per_subject: bool,
    /// Bytes that a message may have, headers and body.
    pub message_bytes_max: Option<u64>,
    /// The sequence number of the first message; 0 is 1.
    pub first_sequence: u64,
    /// Consumers that the stream may have.
    pub consumers_max: Option<usize>,
    /// The stream takes no message and loses none.
    pub is_sealed: bool,
    /// Single messages cannot be deleted.
    pub denies_delete: bool,
    /// The stream cannot be purged.
    pub denies_purge: bool,
    /// A message may replace the messages before it.
    pub allows_rollup: bool,
    /// A message may have a time to live of its own.
    pub allows_ttl: bool,
    /// The time to live of the message that tells that the last one of a subject expired; `None` for no such message.
    pub marker_ttl: Option<Duration>,
    /// Messages are increments of counters.
    pub is_counter: bool,
    /// Messages may be published again on a schedule.
    pub allows_schedules: bool,
    /// Several messages can be published at once, all or none.
    pub allows_batches: bool,
    /// The subjects that come to the stream.
    pub subjects: Filter,
    /// The subjects under which messages are stored instead.
    pub stored_as: Option<SubjectMap>,
    /// The subjects to which stored messages are published again.
    pub republished_to: Option<SubjectMap>,
    /// Headers alone are published again.
    pub republishes_headers: bool,
    /// Publishers get no answer.
    pub is_silent: bool,
    /// Messages are read by `DIRECT.GET`.
    pub allows_direct: bool,
    /// The age at which messages leave, as a declaration wrote it. The queue's time to live enforces it.
    pub max_age: Option<Box<[u8]>>,
    /// The longest time without interest of a consumer, and the time of one that names none.
    pub consumer_inactive_max: Option<Duration>,
    /// The most unacknowledged deliveries of a consumer, and the number of one that names none.
    pub consumer_pending_max: Option<u64>,
    /// The stream was declared as a stream with subjects, not by the arguments of a queue.
    pub has_own_declaration: bool,
    /// The user in whose name the stream republishes, as [`Access::maker_of`](crate::world::Access::maker_of) tells;
    /// `None` if the broker itself does. Only the broker sets it.
    pub maker: Option<Name>,
    /// Parts of the declaration that have no effect, for the answers of the protocol that made the stream. Nothing
    /// else reads them.
    pub note: Box<[u8]>,
}

/// The message with which a consumer starts.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The first one.
    #[default]
    First,
    /// The newest one.
    Last,
    /// The newest one of each subject.
    LastOfEachSubject,
    /// The next one that comes.
    New,
    /// The one with this sequence number, or the next one behind it.
    Sequence(u64),
    /// The first one that came at this time or later.
    Time(Time),
}

impl Start {
    /// The message at an offset. Offsets count from 0 as in RabbitMQ, sequence numbers from 1.
    #[must_use]
    pub fn at_offset(offset: u64) -> Start {
        Start::Sequence(offset.saturating_add(1))
    }

    /// Reads a start in one of RabbitMQ's words, or as the age of the first message that is wanted. `None` for any
    /// other text.
    #[must_use]
    pub fn of_word(word: &[u8], now: Time) -> Option<Start> {
        match word {
            b"first" => Some(Start::First),
            b"last" => Some(Start::Last),
            b"next" => Some(Start::New),
            age => Some(Start::Time(now.before(parse_age(age)?))),
        }
    }
}

/// Why a consumer cannot be moved to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetRefusal {
    /// The consumer starts at a later number.
    BelowSequence,
    /// The consumer starts at a later time.
    BelowTime,
    /// Where the consumer starts does not leave it a choice.
    NotAllowed,
}

/// The messages that an acknowledgement speaks for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum AckPolicy {
    /// None has to be acknowledged.
    None,
    /// An acknowledgement also speaks for all messages before.
    All,
    /// Each has to be acknowledged.
    #[default]
    Explicit,
}

/// The rule by which waiting requests get messages.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum RequestPolicy {
    /// Each has its turn.
    #[default]
    InTurn,
    /// Those whose thresholds are reached.
    Overflow,
    /// Those of one client, which loses its pin after this time without a request.
    Pinned(Duration),
    /// Those of the lowest rank first.
    Ranked,
}

/// The limits of a request for messages; `None` for none.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// Messages.
    pub messages_max: Option<u64>,
    /// Bytes of messages.
    pub bytes_max: Option<u64>,
    /// Time that it waits.
    pub wait_max: Option<Duration>,
}

/// Where a consumer sends its deliveries without being asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    /// The subject of the deliveries.
    pub subject: Name,
    /// The group whose members share them.
    pub group: Option<Name>,
    /// The reader has to answer requests of flow control.
    pub has_flow_control: bool,
    /// An answer to a request of flow control acknowledges the deliveries before the request.
    pub is_acked_by_flow: bool,
    /// Bytes that are delivered in a second.
    pub bytes_a_second_max: Option<u64>,
    /// The time without a delivery after which a status tells the reader that the consumer lives.
    pub heartbeat: Option<Duration>,
}

/// The settings of a consumer of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerSettings {
    /// The message with which it starts.
    pub start: Start,
    /// The subjects that it gets.
    pub filter: Filter,
    /// The messages that an acknowledgement speaks for.
    pub acks: AckPolicy,
    /// Time after which an unacknowledged delivery is repeated.
    pub ack_wait: Duration,
    /// The times for the first deliveries, in place of `ack_wait`; the last one also holds for all later ones.
    pub backoff: Vec<Duration>,
    /// Deliveries that a message may have.
    pub deliveries_max: Option<u64>,
    /// Deliveries that may be unacknowledged.
    pub pending_max: Option<usize>,
    /// Requests that may wait.
    pub requests_max: usize,
    /// The rule by which they get messages.
    pub request_policy: RequestPolicy,
    /// The limits of a single request.
    pub request_limits: RequestLimits,
    /// The groups that requests can name.
    pub request_groups: Vec<Name>,
    /// Acknowledgements of a hundred that are told of.
    pub sampled_percent: u8,
    /// Deliveries carry headers and the size of the body alone.
    pub has_headers_only: bool,
    /// Messages that are there when the consumer starts come at the intervals at which they were stored.
    pub keeps_intervals: bool,
    /// The target of a consumer that pushes; `None` for one that waits for requests.
    pub push: Option<Push>,
    /// Time without interest after which the consumer is deleted.
    pub inactive_max: Option<Duration>,
    /// It stays without a reader and through restarts.
    pub is_durable: bool,
    /// Nothing is delivered before this time.
    pub paused_until: Option<Time>,
    /// Parts of the declaration that the core does not enforce, for the protocol that made the consumer. Nothing else
    /// reads them.
    pub note: Box<[u8]>,
}

impl ConsumerSettings {
    /// Time that a delivery may stay unacknowledged, of the message's first or a later delivery.
    #[must_use]
    pub fn wait_of(&self, deliveries: u64) -> Duration {
        let at = usize::try_from(deliveries.saturating_sub(1)).unwrap_or(usize::MAX);
        self.backoff.get(at).or(self.backoff.last()).copied().unwrap_or(self.ack_wait)
    }

    /// Settings of a durable consumer of everything that waits for requests, for tests.
    #[cfg(test)]
    pub(crate) fn plain() -> ConsumerSettings {
        ConsumerSettings {
            start: Start::First,
            filter: Filter::all(),
            acks: AckPolicy::Explicit,
            ack_wait: Duration::from_secs(30),
            backoff: Vec::new(),
            deliveries_max: None,
            pending_max: None,
            requests_max: 2,
            request_policy: RequestPolicy::InTurn,
            request_limits: RequestLimits::default(),
            request_groups: Vec::new(),
            sampled_percent: 0,
            has_headers_only: false,
            keeps_intervals: false,
            push: None,
            inactive_max: None,
            is_durable: true,
            paused_until: None,
            note: Box::default(),
        }
    }
}
