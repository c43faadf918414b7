//! Configurations become settings of the core.

use std::time::Duration;

use imori_core::confirm::Level;
use imori_core::name::Name;
use imori_core::policy::{Overflow, QueueKind};
use imori_core::queue::QueueSettings;
use imori_core::stream::{
    AckPolicy, ConsumerSettings, Filter, PullRequest, Push, Retention, Start, StreamSettings,
};
use imori_core::time::Time;

use crate::codec::duration::Nanos;
use crate::codec::time::Timestamp;
use crate::jetstream::answers::to_json;
use crate::jetstream::consumer_config::{self, ConsumerConfig, DeliverPolicy};
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
        consumer_config::AckPolicy::All => AckPolicy::All,
        _ => AckPolicy::Explicit,
    };
    let push = (!config.is_pull()).then(|| Push {
        subject: Name::from(config.deliver_subject.as_str()),
        group: (!config.deliver_group.is_empty()).then(|| Name::from(config.deliver_group.as_str())),
        has_flow_control: config.flow_control,
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
        has_headers_only: config.headers_only,
        push,
        inactive_max: span(config.inactive_threshold),
        is_durable: config.is_durable(),
        paused_until: config.pause_until.map(since),
        configuration: to_json(config).into_boxed_slice(),
    })
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
    }
}
