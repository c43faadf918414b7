//! Configurations become settings of the core, and settings configurations.
//!
//! Of what the core enforces, its settings are the only record. The rest of a configuration is in their note.

use imori_core::confirm::Level;
use imori_core::index::{Filter, SubjectMap};
use imori_core::name::Name;
use imori_core::policy::{Overflow, QueueKind};
use imori_core::queue::{Queue, QueueSettings};
use imori_core::stream::{
    AckPolicy, ConsumerSettings, Push, RequestLimits, RequestPolicy, Retention, Start, StreamConsumer,
    StreamSettings,
};
use imori_core::time::Time;

use crate::consumer_config::{self, ConsumerConfig, DeliverPolicy, PriorityPolicy, ReplayPolicy};
use crate::duration::Nanos;
use crate::error::ApiError;
use crate::note::{note_of, with_note};
use crate::stream_config::{
    self, Discard, Republish, Storage, StreamConfig, StreamConsumerLimits, SubjectTransform,
};
use crate::units::{duration, limit, number, since, span, time};

/// Requests that may wait for the messages of a consumer that sets no limit, as in nats-server.
const REQUESTS_DEFAULT: usize = 512;

/// The settings of a stream with a configuration that was checked.
pub fn stream_settings(config: &StreamConfig) -> QueueSettings {
    let retention = match config.retention {
        stream_config::Retention::Limits => Retention::Limits,
        stream_config::Retention::Interest => Retention::Interest,
        stream_config::Retention::WorkQueue => Retention::WorkQueue,
    };
    let subjects: Vec<&[u8]> = config.subjects.iter().map(String::as_bytes).collect();
    let map = |source: &str, destination: &str| SubjectMap::new(source, destination).ok().flatten();
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
        stored_as: config.subject_transform.as_ref().and_then(|change| map(&change.src, &change.dest)),
        republished_to: config.republish.as_ref().and_then(|change| map(&change.src, &change.dest)),
        republishes_headers: config.republish.as_ref().is_some_and(|change| change.headers_only),
        is_silent: config.no_ack,
        allows_direct: config.allow_direct,
        max_age: None,
        consumer_inactive_max: span(config.consumer_limits.inactive_threshold),
        consumer_pending_max: limit(config.consumer_limits.max_ack_pending),
        has_own_declaration: true,
        maker: None,
        note: Box::default(),
    };
    let mut settings = QueueSettings {
        kind: QueueKind::Stream,
        is_durable: true,
        // A queue's declaration has whole milliseconds.
        message_ttl: span(whole_milliseconds(config.max_age)),
        length_max: limit(config.max_msgs),
        length_bytes_max: limit(config.max_bytes),
        overflow: if config.discard == Discard::New { Overflow::RejectPublish } else { Overflow::DropHead },
        dedup_window: span(whole_milliseconds(config.duplicate_window)),
        level: (config.storage == Storage::Memory).then_some(Level::Memory),
        stream: Some(Box::new(stream)),
        ..QueueSettings::default()
    };
    let note = note_of(config, &derived_stream(&config.name, &settings));
    settings.stream.iter_mut().for_each(|stream| stream.note.clone_from(&note));
    settings
}

fn whole_milliseconds(nanos: Nanos) -> Nanos {
    Nanos(nanos.0 - nanos.0 % 1_000_000)
}

/// The configuration of a stream with these settings, as it was declared.
pub fn stream_config(name: &str, settings: &QueueSettings) -> StreamConfig {
    let note = settings.stream.as_ref().map(|stream| &*stream.note).unwrap_or_default();
    with_note(derived_stream(name, settings), note)
}

/// What the settings of a stream tell of its configuration.
fn derived_stream(name: &str, settings: &QueueSettings) -> StreamConfig {
    let none = StreamSettings::default();
    let stream = settings.stream.as_deref().unwrap_or(&none);
    let texts = |map: &Option<SubjectMap>| {
        map.as_ref().map(|map| map.texts()).map(|(src, dest)| (src.to_owned(), dest.to_owned()))
    };
    StreamConfig {
        name: name.to_owned(),
        subjects: stream.subjects.texts().map(Name::to_string).collect(),
        retention: match stream.retention {
            Retention::Limits => stream_config::Retention::Limits,
            Retention::Interest => stream_config::Retention::Interest,
            Retention::WorkQueue => stream_config::Retention::WorkQueue,
        },
        max_consumers: number(stream.consumers_max.map(|max| max as u64)),
        max_msgs: number(settings.length_max),
        max_bytes: number(settings.length_bytes_max),
        max_age: duration(settings.message_ttl),
        max_msgs_per_subject: number(stream.per_subject_max),
        max_msg_size: i32::try_from(number(stream.message_bytes_max)).unwrap_or(i32::MAX),
        discard: match settings.overflow {
            Overflow::DropHead => Discard::Old,
            Overflow::RejectPublish | Overflow::RejectPublishDeadLetter => Discard::New,
        },
        storage: if settings.level == Some(Level::Memory) { Storage::Memory } else { Storage::File },
        num_replicas: 1,
        no_ack: stream.is_silent,
        duplicate_window: duration(settings.dedup_window),
        first_seq: stream.first_sequence,
        subject_transform: texts(&stream.stored_as).map(|(src, dest)| SubjectTransform { src, dest }),
        republish: texts(&stream.republished_to).map(|(src, dest)| Republish {
            src,
            dest,
            headers_only: stream.republishes_headers,
        }),
        allow_direct: stream.allows_direct,
        discard_new_per_subject: stream.refuses_per_subject,
        sealed: stream.is_sealed,
        deny_delete: stream.denies_delete,
        deny_purge: stream.denies_purge,
        allow_rollup_hdrs: stream.allows_rollup,
        consumer_limits: StreamConsumerLimits {
            inactive_threshold: duration(stream.consumer_inactive_max),
            max_ack_pending: stream.consumer_pending_max.map_or(0, |max| number(Some(max))),
        },
        allow_msg_ttl: stream.allows_ttl,
        subject_delete_marker_ttl: duration(stream.marker_ttl),
        allow_msg_counter: stream.is_counter,
        allow_atomic: stream.allows_batches,
        allow_msg_schedules: stream.allows_schedules,
        ..StreamConfig::default()
    }
}

/// The configuration of a stream as it was declared. One that was declared by the arguments of a queue has the settings
/// in effect; its subjects are the bindings of the queue, which the queue does not know.
#[must_use]
pub fn config_of(queue: &Queue) -> StreamConfig {
    let is_own = queue.stream().is_some_and(|stream| stream.settings().has_own_declaration);
    let settings = if is_own { queue.declared() } else { queue.settings() };
    stream_config(&queue.name().to_string(), settings)
}

/// The configuration of a consumer as it was declared.
#[must_use]
pub fn config_of_consumer(consumer: &StreamConsumer) -> ConsumerConfig {
    consumer_config(&consumer.name().to_string(), consumer.settings())
}

/// The settings of a consumer with a configuration that was checked.
///
/// # Errors
/// A filter is no pattern.
pub fn consumer_settings(config: &ConsumerConfig) -> Result<ConsumerSettings, ApiError> {
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
    let mut settings = ConsumerSettings {
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
        request_limits: RequestLimits {
            messages_max: limit(config.max_batch),
            bytes_max: limit(config.max_bytes),
            wait_max: span(config.max_expires),
        },
        request_groups: config.priority_groups.iter().map(|group| Name::from(group.as_str())).collect(),
        sampled_percent: config.sample_freq.trim_end_matches('%').trim().parse().unwrap_or(0).min(100),
        has_headers_only: config.headers_only,
        keeps_intervals: config.replay_policy == ReplayPolicy::Original,
        push,
        inactive_max: span(config.inactive_threshold),
        is_durable: config.is_durable(),
        paused_until: config.pause_until.map(since),
        note: Box::default(),
    };
    settings.note = note_of(config, &derived_consumer(&config.name, &settings));
    Ok(settings)
}

/// The configuration of a consumer with these settings, as it was declared.
pub fn consumer_config(name: &str, settings: &ConsumerSettings) -> ConsumerConfig {
    with_note(derived_consumer(name, settings), &settings.note)
}

/// What the settings of a consumer tell of its configuration.
fn derived_consumer(name: &str, settings: &ConsumerSettings) -> ConsumerConfig {
    let (deliver_policy, opt_start_seq, opt_start_time) = match settings.start {
        Start::First => (DeliverPolicy::All, 0, None),
        Start::Last => (DeliverPolicy::Last, 0, None),
        Start::New => (DeliverPolicy::New, 0, None),
        Start::Sequence(sequence) => (DeliverPolicy::ByStartSequence, sequence, None),
        Start::Time(at) => (DeliverPolicy::ByStartTime, 0, Some(time(at))),
        Start::LastOfEachSubject => (DeliverPolicy::LastPerSubject, 0, None),
    };
    let push = settings.push.as_ref();
    let ack_policy = match settings.acks {
        AckPolicy::None => consumer_config::AckPolicy::None,
        AckPolicy::All if push.is_some_and(|push| push.is_acked_by_flow) => {
            consumer_config::AckPolicy::FlowControl
        }
        AckPolicy::All => consumer_config::AckPolicy::All,
        AckPolicy::Explicit => consumer_config::AckPolicy::Explicit,
    };
    let filters: Vec<String> = settings.filter.texts().map(Name::to_string).collect();
    let (filter_subject, filter_subjects) = match filters.as_slice() {
        [single] => (single.clone(), Vec::new()),
        _ => (String::new(), filters),
    };
    let (priority_policy, priority_timeout) = match settings.request_policy {
        RequestPolicy::InTurn => (PriorityPolicy::None, Nanos::ZERO),
        RequestPolicy::Overflow => (PriorityPolicy::Overflow, Nanos::ZERO),
        RequestPolicy::Pinned(timeout) => (PriorityPolicy::PinnedClient, duration(Some(timeout))),
        RequestPolicy::Ranked => (PriorityPolicy::Prioritized, Nanos::ZERO),
    };
    let or_zero = |limit: Option<u64>| limit.map_or(0, |limit| number(Some(limit)));
    let percent = settings.sampled_percent;
    ConsumerConfig {
        durable_name: if settings.is_durable { name.to_owned() } else { String::new() },
        name: name.to_owned(),
        deliver_policy,
        opt_start_seq,
        opt_start_time,
        ack_policy,
        ack_wait: duration(Some(settings.ack_wait)),
        max_deliver: number(settings.deliveries_max),
        backoff: settings.backoff.iter().map(|wait| duration(Some(*wait))).collect(),
        filter_subject,
        filter_subjects,
        replay_policy: if settings.keeps_intervals { ReplayPolicy::Original } else { ReplayPolicy::Instant },
        rate_limit_bps: push.and_then(|push| push.bytes_a_second_max).map_or(0, |max| max.saturating_mul(8)),
        sample_freq: if percent > 0 { percent.to_string() } else { String::new() },
        max_waiting: if push.is_none() { number(Some(settings.requests_max as u64)) } else { 0 },
        max_ack_pending: number(settings.pending_max.map(|max| max as u64)),
        flow_control: push.is_some_and(|push| push.has_flow_control),
        headers_only: settings.has_headers_only,
        max_batch: or_zero(settings.request_limits.messages_max),
        max_expires: duration(settings.request_limits.wait_max),
        max_bytes: or_zero(settings.request_limits.bytes_max),
        deliver_subject: push.map(|push| push.subject.to_string()).unwrap_or_default(),
        deliver_group: push.and_then(|push| push.group.as_ref()).map(Name::to_string).unwrap_or_default(),
        idle_heartbeat: duration(push.and_then(|push| push.heartbeat)),
        inactive_threshold: duration(settings.inactive_max),
        pause_until: settings.paused_until.map(time),
        priority_groups: settings.request_groups.iter().map(Name::to_string).collect(),
        priority_policy,
        priority_timeout,
        ..ConsumerConfig::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_comes_back_as_it_was_declared() {
        for (json, note) in [
            (r#"{"name":"S","subjects":["a.>"],"num_replicas":1}"#, &b""[..]),
            (
                r#"{"name":"S","description":"d","subjects":["a.*",">"],"retention":"workqueue","max_consumers":1,
                "max_msgs":2,"max_bytes":3,"max_age":400000001,"max_msgs_per_subject":5,"max_msg_size":6,
                "discard":"new","storage":"memory","num_replicas":3,"no_ack":true,"duplicate_window":200000000,
                "placement":{"cluster":"c"},"compression":"s2","first_seq":9,
                "subject_transform":{"src":"a.*","dest":"b.$1"},"republish":{"src":"a.>","dest":"c.>",
                "headers_only":true},"allow_direct":true,"mirror_direct":true,"discard_new_per_subject":true,
                "sealed":true,"deny_delete":true,"deny_purge":true,"allow_rollup_hdrs":true,
                "consumer_limits":{"inactive_threshold":10,"max_ack_pending":11},"allow_msg_ttl":true,
                "subject_delete_marker_ttl":12,"allow_msg_counter":true,"allow_atomic":true,
                "allow_msg_schedules":true,"persist_mode":"async","metadata":{"k":"v"}}"#,
                br#"{"compression":"s2","description":"d","max_age":400000001,"metadata":{"k":"v"},"mirror_direct":true,"num_replicas":3,"persist_mode":"async","placement":{"cluster":"c"}}"#,
            ),
        ] {
            let limits = StreamConfig {
                max_consumers: -1,
                max_msgs: -1,
                max_bytes: -1,
                max_msgs_per_subject: -1,
                max_msg_size: -1,
                ..StreamConfig::default()
            };
            let read: StreamConfig = serde_json::from_str(json).unwrap();
            let config = if read.max_msgs == 0 { with_limits(read, &limits) } else { read };
            let settings = stream_settings(&config);
            assert_eq!(stream_config("S", &settings), config);
            let kept = &settings.stream.as_ref().unwrap().note;
            assert_eq!(String::from_utf8_lossy(kept), String::from_utf8_lossy(note));
        }
    }

    fn with_limits(config: StreamConfig, limits: &StreamConfig) -> StreamConfig {
        StreamConfig {
            max_consumers: limits.max_consumers,
            max_msgs: limits.max_msgs,
            max_bytes: limits.max_bytes,
            max_msgs_per_subject: limits.max_msgs_per_subject,
            max_msg_size: limits.max_msg_size,
            ..config
        }
    }

    #[test]
    fn the_configuration_of_a_consumer_comes_back_as_it_was_declared() {
        for (json, has_note) in [
            (
                r#"{"durable_name":"C","name":"C","ack_policy":"explicit","ack_wait":30000000000,"max_deliver":-1,
                "filter_subject":"a.b","max_waiting":512,"max_ack_pending":1000}"#,
                false,
            ),
            (
                r#"{"durable_name":"C","name":"C","description":"d","deliver_policy":"by_start_time",
                "opt_start_time":"2026-01-02T03:04:05.123456789Z","ack_policy":"flow_control","ack_wait":2,
                "max_deliver":3,"backoff":[4,5],"filter_subjects":["g"],"replay_policy":"original",
                "rate_limit_bps":15,"sample_freq":"50%","flow_control":true,"headers_only":true,
                "deliver_subject":"d","deliver_group":"g","idle_heartbeat":12,"inactive_threshold":13,
                "num_replicas":3,"mem_storage":true,"metadata":{"k":"v"},
                "pause_until":"2026-01-02T03:04:05.6Z"}"#,
                true,
            ),
            (
                r#"{"name":"C","deliver_policy":"last_per_subject","ack_policy":"none","max_deliver":-1,
                "filter_subjects":["a","b"],"max_waiting":7,"max_batch":9,"max_expires":10,"max_bytes":11,
                "inactive_threshold":5,"priority_groups":["p"],"priority_policy":"pinned_client",
                "priority_timeout":14}"#,
                true,
            ),
        ] {
            let config: ConsumerConfig = serde_json::from_str(json).unwrap();
            let settings = consumer_settings(&config).unwrap();
            assert_eq!(consumer_config("C", &settings), config);
            assert_eq!(!settings.note.is_empty(), has_note, "{}", String::from_utf8_lossy(&settings.note));
        }
    }
}
