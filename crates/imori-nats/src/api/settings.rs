//! Configurations become settings of the core.

use std::time::Duration;

use imori_core::confirm::Level;
use imori_core::index::{Filter, SubjectMap};
use imori_core::name::Name;
use imori_core::policy::{Overflow, QueueKind};
use imori_core::queue::QueueSettings;
use imori_core::stream::{
    AckPolicy, ConsumerSettings, PullRequest, Push, RequestPolicy, RequestTerms, Retention, Start,
    StreamSettings,
};
use imori_core::time::Time;

use crate::codec::duration::Nanos;
use crate::codec::time::Timestamp;
use crate::jetstream::answers::to_json;
use crate::jetstream::consumer_config::{self, ConsumerConfig, DeliverPolicy, PriorityPolicy, ReplayPolicy};
use crate::jetstream::error::ApiError;
use crate::jetstream::pull;
use crate::jetstream::stream_config::{self, Discard, Storage, StreamConfig};

/// Requests that may wait for the messages of a consumer that sets no limit, as in nats-server.
const REQUESTS_DEFAULT: usize = 512;

/// The settings of a stream.
pub(super) fn stream_settings(config: &StreamConfig) -> QueueSettings {
    let retention = match config.retention {
        stream_config::Retention::Limits => Retention::Limits,
        stream_config::Retention::Interest => Retention::Interest,
        stream_config::Retention::WorkQueue => Retention::WorkQueue,
    };
    let subjects: Vec<&[u8]> = config.subjects.iter().map(String::as_bytes).collect();
    let stream = StreamSettings {
        retention,
        per_subject_max: limit(config.max_msgs_per_subject),
        refuses_per_subject: config.discard_new_per_subject,
        message_bytes_max: limit(i64::from(config.max_msg_size)),
        first_sequence: config.first_seq,
        consumers_max: limit(config.max_consumers).and_then(|max| usize::try_from(max).ok()),
        is_sealed: config.sealed,
        denies_delete: config.deny_delete,
        denies_purge: config.deny_purge,
        allows_rollup: config.allow_rollup_hdrs,
        allows_ttl: config.allow_msg_ttl,
        marker_ttl: span(config.subject_delete_marker_ttl),
        is_counter: config.allow_msg_counter,
        allows_schedules: config.allow_msg_schedules,
        allows_batches: config.allow_atomic,
        subjects: Filter::of(&subjects).unwrap_or_default(),
        stored_as: config
            .subject_transform
            .as_ref()
            .and_then(|map| SubjectMap::new(&map.src, &map.dest).ok()?),
        republished_to: config
            .republish
            .as_ref()
            .and_then(|map| SubjectMap::new(&map.src, &map.dest).ok()?),
        republishes_headers: config.republish.as_ref().is_some_and(|map| map.headers_only),
        is_silent: config.no_ack,
        allows_direct: config.allow_direct,
        max_age: None,
        configuration: to_json(config).into_boxed_slice(),
    };
    QueueSettings {
        kind: QueueKind::Stream,
        is_durable: true,
        message_ttl: span(config.max_age),
        length_max: limit(config.max_msgs),
        length_bytes_max: limit(config.max_bytes),
        overflow: if config.discard == Discard::New { Overflow::RejectPublish } else { Overflow::DropHead },
        dedup_window: span(config.duplicate_window),
        level: (config.storage == Storage::Memory).then_some(Level::Memory),
        stream: Some(Box::new(stream)),
        ..QueueSettings::default()
    }
}

/// The settings of a consumer.
///
/// # Errors
/// A filter is no pattern.
pub(super) fn consumer_settings(config: &ConsumerConfig) -> Result<ConsumerSettings, ApiError> {
    let filters: Vec<&[u8]> = config.filters().map(str::as_bytes).collect();
    let filter = Filter::of(&filters).map_err(|_| ApiError::CONSUMER_FILTER_NOT_SUBSET)?;
    let start = match config.deliver_policy {
        DeliverPolicy::All => Start::First,
        DeliverPolicy::Last => Start::Last,
        DeliverPolicy::New => Start::New,
        DeliverPolicy::ByStartSequence => Start::Sequence(config.opt_start_seq),
        DeliverPolicy::ByStartTime => Start::Time(config.opt_start_time.map_or(Time(0), since)),
        DeliverPolicy::LastPerSubject => Start::LastOfEachSubject,
    };
    let acks = match config.ack_policy {
        consumer_config::AckPolicy::None => AckPolicy::None,
        consumer_config::AckPolicy::All | consumer_config::AckPolicy::FlowControl => AckPolicy::All,
        consumer_config::AckPolicy::Explicit => AckPolicy::Explicit,
    };
    let push = (!config.is_pull()).then(|| Push {
        subject: Name::from(config.deliver_subject.as_str()),
        group: (!config.deliver_group.is_empty()).then(|| Name::from(config.deliver_group.as_str())),
        has_flow_control: config.flow_control,
        is_acked_by_flow: config.ack_policy == consumer_config::AckPolicy::FlowControl,
        bytes_a_second_max: Some(config.rate_limit_bps / 8).filter(|_| config.rate_limit_bps > 0),
        heartbeat: span(config.idle_heartbeat),
    });
    Ok(ConsumerSettings {
        start,
        filter,
        acks,
        ack_wait: config.ack_wait.duration(),
        backoff: config.backoff.iter().map(|wait| wait.duration()).collect(),
        deliveries_max: limit(config.max_deliver),
        pending_max: limit(config.max_ack_pending).and_then(|max| usize::try_from(max).ok()),
        requests_max: limit(config.max_waiting)
            .and_then(|max| usize::try_from(max).ok())
            .unwrap_or(REQUESTS_DEFAULT),
        request_policy: match config.priority_policy {
            PriorityPolicy::None => RequestPolicy::InTurn,
            PriorityPolicy::Overflow => RequestPolicy::Overflow,
            PriorityPolicy::PinnedClient => RequestPolicy::Pinned(config.priority_timeout.duration()),
            PriorityPolicy::Prioritized => RequestPolicy::Ranked,
        },
        sampled_percent: config.sample_freq.trim_end_matches('%').trim().parse().unwrap_or(0).min(100),
        has_headers_only: config.headers_only,
        keeps_intervals: config.replay_policy == ReplayPolicy::Original,
        push,
        inactive_max: span(config.inactive_threshold),
        is_durable: config.is_durable(),
        paused_until: config.pause_until.map(since),
        configuration: to_json(config).into_boxed_slice(),
    })
}

/// A time of the core, in nanoseconds.
pub(super) fn nanos(time: Time) -> u64 {
    time.0.saturating_mul(1000)
}

/// A time of the core, as JSON has it.
pub(super) fn time(time: Time) -> Timestamp {
    Timestamp::from_unix_nanos(i64::try_from(nanos(time)).unwrap_or(i64::MAX))
}

/// A time of JSON, as the core has it.
pub(super) fn since(time: Timestamp) -> Time {
    Time(u64::try_from(time.unix_nanos()).unwrap_or_default() / 1000)
}

fn limit(number: i64) -> Option<u64> {
    u64::try_from(number).ok().filter(|number| *number > 0)
}

fn span(nanos: Nanos) -> Option<Duration> {
    Some(nanos.duration()).filter(|span| !span.is_zero())
}

/// A request for messages, as the core has it.
pub(super) fn pull_request(reply: &[u8], request: &pull::PullRequest, now: Time) -> PullRequest {
    PullRequest {
        reply: Name::new(reply),
        left: request.batch,
        got: 0,
        bytes_left: Some(request.max_bytes).filter(|max| *max > 0),
        is_impatient: request.no_wait,
        expires: span(request.expires).map(|expires| now.after(expires)),
        heartbeat: span(request.idle_heartbeat).map(|every| (every, now.after(every))),
        terms: request.priority.as_ref().map(request_terms).unwrap_or_default(),
    }
}

fn request_terms(priority: &pull::Priority) -> RequestTerms {
    RequestTerms {
        unread_min: u64::try_from(priority.min_pending).unwrap_or_default(),
        pending_min: u64::try_from(priority.min_ack_pending).unwrap_or_default(),
        pin: (!priority.id.is_empty()).then(|| Name::from(priority.id.as_str())),
        rank: u8::try_from(priority.priority).unwrap_or(u8::MAX),
    }
}
