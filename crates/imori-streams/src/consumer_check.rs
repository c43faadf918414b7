//! The checks of a consumer's configuration, in the order and with the errors of nats-server.
//!
//! Whether the stream has room for the consumer, and what its other consumers read, is left to the
//! caller.

use std::fmt;

use imori_core::index::{is_literal, is_subset, is_valid};

use crate::account::{AccountLimits, ServerLimits};
use crate::consumer_config::{
    AckPolicy, ConsumerConfig, CreateConsumerRequest, DeliverPolicy, PriorityPolicy, is_group_name,
};
use crate::duration::Nanos;
use crate::error::ApiError;
use crate::limits::{
    ACK_PENDING_COUNT_DEFAULT, DESCRIPTION_BYTES_MAX, FILTER_COUNT_MAX, METADATA_BYTES_MAX, NAME_BYTES_MAX,
    WAITING_COUNT_DEFAULT,
};
use crate::stream_config::{Retention, StreamConfig};
use crate::subject::{do_collide, is_valid_name};

/// Time for an ack, unless the consumer says otherwise.
const ACK_WAIT_DEFAULT: Nanos = Nanos::from_secs(30);

/// Time without a client after which a consumer that is not durable is deleted, unless it says
/// otherwise.
const INACTIVE_THRESHOLD_DEFAULT: Nanos = Nanos::from_secs(5);

/// Time without a pull request after which a client loses its pin, unless the consumer says
/// otherwise.
const PRIORITY_TIMEOUT_DEFAULT: Nanos = Nanos::from_secs(120);

/// The heartbeat of a consumer whose acks are answers to flow control.
const FLOW_CONTROL_HEARTBEAT: Nanos = Nanos::from_secs(1);

/// The stream and the limits that a configuration is checked against.
#[derive(Debug, Clone, Copy)]
pub struct ConsumerContext<'a> {
    /// The stream.
    pub stream: &'a StreamConfig,
    /// The limits of the account.
    pub account: &'a AccountLimits,
    /// The limits of the server.
    pub server: &'a ServerLimits,
    /// Defaults that would change what the client asked for are errors.
    pub is_pedantic: bool,
}

/// The consumer that a request is for, apart from its body.
#[derive(Debug, Clone, Copy)]
pub struct ConsumerPlace<'a> {
    /// The stream.
    pub stream: &'a str,
    /// The name of the consumer, if it is given.
    pub consumer: Option<&'a str>,
    /// The filter, if it is given.
    pub filter: Option<&'a str>,
    /// The request is for a consumer that outlives its clients.
    pub is_durable: bool,
}

impl CreateConsumerRequest {
    /// Compares the body with what the request is for, and takes the name from there.
    ///
    /// # Errors
    ///
    /// Returns nats-server's error for another stream, name or filter.
    pub fn check_place(mut self, place: &ConsumerPlace<'_>) -> Result<Self, ApiError> {
        let ConsumerPlace { stream, consumer, filter, is_durable } = *place;
        if stream != self.stream_name {
            return Err(ApiError::STREAM_MISMATCH);
        }
        let durable_name = &self.config.durable_name;
        if consumer.unwrap_or(&self.config.name).contains(['\\', '/']) {
            return Err(ApiError::CONSUMER_NAME_CONTAINS_PATH_SEPARATORS);
        }
        match (is_durable, consumer) {
            (true, _) if durable_name.is_empty() => {
                return Err(ApiError::CONSUMER_DURABLE_NAME_NOT_SET);
            }
            (_, Some(consumer)) if !durable_name.is_empty() && consumer != durable_name => {
                return Err(ApiError::CONSUMER_DURABLE_NAME_NOT_MATCH_SUBJECT);
            }
            (_, None) if !durable_name.is_empty() => {
                return Err(ApiError::CONSUMER_EPHEMERAL_WITH_DURABLE_NAME);
            }
            _ => {}
        }
        if let Some(consumer) = consumer {
            self.config.name = consumer.to_string();
        }
        match filter {
            Some(_) if !self.config.filter_subjects.is_empty() => {
                Err(ApiError::CONSUMER_MULTIPLE_FILTERS_NOT_ALLOWED)
            }
            Some(filter) if self.config.filter_subject != filter => {
                Err(ApiError::CONSUMER_CREATE_FILTER_SUBJECT_MISMATCH)
            }
            _ => Ok(self),
        }
    }
}

impl ConsumerConfig {
    /// Sets defaults and checks the configuration.
    ///
    /// # Errors
    ///
    /// Returns nats-server's error for the first contradiction.
    pub fn check(mut self, context: &ConsumerContext<'_>) -> Result<Self, ApiError> {
        if self.num_replicas > 1 && !context.server.is_clustered {
            return Err(ApiError::STREAM_REPLICAS_NOT_SUPPORTED);
        }
        set_minimums(&mut self, context)?;
        set_defaults(&mut self, context)?;
        check_names(&self)?;
        check_replicas(&self, context.stream)?;
        check_acks(&self)?;
        match self.is_pull() {
            true => check_pull(&self, context)?,
            false => check_push(&self, context.stream)?,
        }
        check_limits(&self, context)?;
        check_filters(&self)?;
        check_start(&self)?;
        check_texts(&self)?;
        check_priority(&self)?;
        check_work_queue(&self, context.stream)?;
        if !self.is_durable() && self.inactive_threshold.is_zero() {
            self.inactive_threshold = INACTIVE_THRESHOLD_DEFAULT;
        }
        Ok(self)
    }

    /// Compares a checked configuration with the one that it is to replace. `is_bound` tells
    /// whether a client subscribes to the old deliver subject.
    ///
    /// # Errors
    ///
    /// Returns nats-server's error for the first field that cannot be updated.
    pub fn check_update(old: &Self, new: &Self, is_bound: bool) -> Result<(), ApiError> {
        for (is_wrong, field) in [
            (old.deliver_policy != new.deliver_policy, "deliver policy"),
            (old.mem_storage != new.mem_storage, "storage type"),
            (old.direct != new.direct, "direct"),
            (old.sourcing != new.sourcing, "sourcing"),
            (old.opt_start_seq != new.opt_start_seq, "start sequence"),
            (old.opt_start_time != new.opt_start_time, "start time"),
            (old.ack_policy != new.ack_policy, "ack policy"),
            (old.replay_policy != new.replay_policy, "replay policy"),
            (old.idle_heartbeat != new.idle_heartbeat, "heart beats"),
            (old.flow_control != new.flow_control, "flow control"),
        ] {
            if is_wrong {
                return Err(ApiError::consumer_create(format_args!("{field} can not be updated")));
            }
        }
        if old.deliver_subject != new.deliver_subject {
            if old.is_pull() {
                return Err(ApiError::consumer_create("can not update pull consumer to push based"));
            }
            if new.is_pull() {
                return Err(ApiError::consumer_create("can not update push consumer to pull based"));
            }
            if is_bound {
                return Err(ApiError::CONSUMER_NAME_EXIST);
            }
        }
        if old.max_waiting != new.max_waiting {
            return Err(ApiError::consumer_create("max waiting can not be updated"));
        }
        check_backoff(new)
    }

    /// Whether some message would go to this consumer and to the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.filters().next().is_none()
            || other.filters().next().is_none()
            || self.filters().any(|own| other.filters().any(|filter| do_collide(own, filter)))
    }

    /// The level of the API that a server must have for the configuration.
    pub fn required_level(&self) -> u32 {
        if self.ack_policy == AckPolicy::FlowControl {
            return 4;
        }
        u32::from(
            self.pause_until.is_some_and(|time| !time.is_zero())
                || self.priority_policy != PriorityPolicy::None
                || !self.priority_timeout.is_zero()
                || !self.priority_groups.is_empty(),
        )
    }
}

/// Compares the limits of an updated stream with its consumers.
///
/// # Errors
///
/// Returns nats-server's error with the names of the consumers whose configuration is over a limit
/// that changed.
pub fn check_stream_update<'a>(
    old: &StreamConfig,
    new: &StreamConfig,
    consumers: impl IntoIterator<Item = (&'a str, &'a ConsumerConfig)>,
) -> Result<(), ApiError> {
    let (old, new) = (&old.consumer_limits, &new.consumer_limits);
    if old == new {
        return Ok(());
    }
    let is_over = |config: &ConsumerConfig| {
        new.inactive_threshold > Nanos::ZERO && config.inactive_threshold > new.inactive_threshold
            || new.max_ack_pending > 0 && config.max_ack_pending > new.max_ack_pending
    };
    let over = consumers.into_iter().filter(|(_, config)| is_over(config));
    let names: Vec<_> = over.map(|(name, _)| name).collect();
    if names.is_empty() {
        return Ok(());
    }
    let names = names.join(", ");
    Err(ApiError::stream_update(format_args!("change to limits violates consumers: {names}")))
}

fn invalid(reason: impl fmt::Display) -> ApiError {
    ApiError::stream_invalid_config(reason)
}

/// Makes negative numbers what they stand for.
fn set_minimums(config: &mut ConsumerConfig, context: &ConsumerContext<'_>) -> Result<(), ApiError> {
    if config.max_deliver < -1 && context.is_pedantic {
        return Err(ApiError::pedantic("max_deliver must be set to -1"));
    }
    if config.max_deliver == 0 || config.max_deliver < -1 {
        config.max_deliver = -1;
    }
    for (name, number, min) in [
        ("max_waiting", &mut config.max_waiting, 0),
        ("max_ack_pending", &mut config.max_ack_pending, -1),
        ("max_batch", &mut config.max_batch, 0),
        ("max_expires", &mut config.max_expires.0, 0),
        ("max_bytes", &mut config.max_bytes, 0),
        ("idle_heartbeat", &mut config.idle_heartbeat.0, 0),
        ("inactive_threshold", &mut config.inactive_threshold.0, 0),
        ("priority_timeout", &mut config.priority_timeout.0, 0),
    ] {
        if *number < min && context.is_pedantic {
            let rule = if min == 0 { "not be negative" } else { "be set to -1" };
            return Err(ApiError::pedantic(format_args!("{name} must {rule}")));
        }
        *number = min.max(*number);
    }
    Ok(())
}

fn set_defaults(config: &mut ConsumerConfig, context: &ConsumerContext<'_>) -> Result<(), ApiError> {
    let limits = &context.stream.consumer_limits;
    if config.is_pull() && config.max_waiting == 0 {
        config.max_waiting = WAITING_COUNT_DEFAULT;
    }
    if config.ack_wait.is_zero() && matches!(config.ack_policy, AckPolicy::Explicit | AckPolicy::All) {
        config.ack_wait = ACK_WAIT_DEFAULT;
    }
    if let Some(first) = config.backoff.first().copied() {
        if context.is_pedantic && config.ack_wait != first {
            return Err(ApiError::pedantic("first backoff value has to equal batch AckWait"));
        }
        config.ack_wait = first;
    }
    if config.max_ack_pending == 0 {
        if context.is_pedantic && limits.max_ack_pending > 0 {
            let text = "max_ack_pending must be set if it's configured in stream limits";
            return Err(ApiError::pedantic(text));
        }
        config.max_ack_pending = limits.max_ack_pending;
    }
    if config.inactive_threshold.is_zero() {
        if context.is_pedantic && limits.inactive_threshold > Nanos::ZERO {
            let text = "inactive_threshold must be set if it's configured in stream limits";
            return Err(ApiError::pedantic(text));
        }
        config.inactive_threshold = limits.inactive_threshold;
    }
    if config.max_ack_pending == 0 && config.ack_policy != AckPolicy::None {
        let limits = [context.server.max_ack_pending, context.account.max_ack_pending];
        let limits = limits.into_iter().filter(|limit| *limit > 0);
        config.max_ack_pending = limits.fold(ACK_PENDING_COUNT_DEFAULT, i64::min);
    }
    if config.is_pull() && config.max_batch == 0 && context.server.max_request_batch > 0 {
        if context.is_pedantic {
            return Err(ApiError::pedantic("max_request_batch must be set if it's JetStream limits are set"));
        }
        config.max_batch = context.server.max_request_batch;
    }
    if config.priority_policy == PriorityPolicy::PinnedClient && config.priority_timeout.is_zero() {
        config.priority_timeout = PRIORITY_TIMEOUT_DEFAULT;
    }
    if config.ack_policy == AckPolicy::FlowControl && !context.is_pedantic {
        config.flow_control = true;
        config.idle_heartbeat = FLOW_CONTROL_HEARTBEAT;
    }
    Ok(())
}

fn check_names(config: &ConsumerConfig) -> Result<(), ApiError> {
    if !config.name.is_empty() && !is_valid_name(&config.name) {
        return Err(invalid("consumer name can not contain '.', '*', '>', '\\', '/'"));
    }
    if config.is_durable() && !is_valid_name(&config.durable_name) {
        return Err(invalid("consumer durable name can not contain '.', '*', '>', '\\', '/'"));
    }
    // nats-server checks the length last, and fails to store a longer name that is not durable.
    if config.name.len().max(config.durable_name.len()) > NAME_BYTES_MAX {
        return Err(ApiError::consumer_name_too_long(NAME_BYTES_MAX));
    }
    Ok(())
}

fn check_replicas(config: &ConsumerConfig, stream: &StreamConfig) -> Result<(), ApiError> {
    if config.num_replicas > 0 && config.num_replicas > stream.num_replicas {
        return Err(ApiError::CONSUMER_REPLICAS_EXCEEDS_STREAM);
    }
    if config.num_replicas < 0 {
        return Err(ApiError::REPLICAS_COUNT_CANNOT_BE_NEGATIVE);
    }
    let is_bound_to_stream = stream.retention != Retention::Limits;
    if is_bound_to_stream && config.num_replicas != 0 && config.num_replicas != stream.num_replicas {
        return Err(ApiError::CONSUMER_REPLICAS_SHOULD_MATCH_STREAM);
    }
    Ok(())
}

fn check_acks(config: &ConsumerConfig) -> Result<(), ApiError> {
    if config.backoff.iter().any(|time| *time < Nanos::ZERO) {
        return Err(ApiError::CONSUMER_BACK_OFF_NEGATIVE);
    }
    if config.ack_wait < Nanos::ZERO {
        return Err(ApiError::CONSUMER_ACK_WAIT_NEGATIVE);
    }
    if config.ack_policy == AckPolicy::FlowControl {
        for (is_wrong, error) in [
            (config.is_pull(), ApiError::CONSUMER_ACK_FLOW_CONTROL_REQUIRES_PUSH),
            (!config.flow_control, ApiError::CONSUMER_ACK_FLOW_CONTROL_REQUIRES_FLOW_CONTROL),
            (
                config.idle_heartbeat != FLOW_CONTROL_HEARTBEAT,
                invalid("flow control ack policy heartbeat needs to be 1s"),
            ),
            (config.max_ack_pending <= 0, ApiError::CONSUMER_ACK_FLOW_CONTROL_REQUIRES_MAX_ACK_PENDING),
            (
                !config.ack_wait.is_zero() || !config.backoff.is_empty(),
                ApiError::CONSUMER_ACK_FLOW_CONTROL_REQUIRES_NO_ACK_WAIT,
            ),
            (config.max_deliver > 0, ApiError::CONSUMER_ACK_FLOW_CONTROL_REQUIRES_NO_MAX_DELIVER),
        ] {
            if is_wrong {
                return Err(error);
            }
        }
    }
    check_backoff(config)?;
    if config.description.len() > DESCRIPTION_BYTES_MAX {
        return Err(ApiError::consumer_description_too_long(DESCRIPTION_BYTES_MAX));
    }
    Ok(())
}

fn check_backoff(config: &ConsumerConfig) -> Result<(), ApiError> {
    let len = i64::try_from(config.backoff.len()).unwrap_or(i64::MAX);
    if len > 0 && config.max_deliver != -1 && len > config.max_deliver {
        return Err(ApiError::CONSUMER_MAX_DELIVER_BACKOFF);
    }
    Ok(())
}

fn check_push(config: &ConsumerConfig, stream: &StreamConfig) -> Result<(), ApiError> {
    let subject = &config.deliver_subject;
    let heartbeat = config.idle_heartbeat;
    for (is_wrong, error) in [
        (!is_literal(subject), ApiError::CONSUMER_DELIVER_TO_WILDCARDS),
        (!is_valid(subject), ApiError::CONSUMER_INVALID_DELIVER_SUBJECT),
        (stream.subjects.iter().any(|filter| is_subset(subject, filter)), ApiError::CONSUMER_DELIVER_CYCLE),
        (config.max_waiting != 0, ApiError::CONSUMER_PUSH_MAX_WAITING),
        (
            config.max_ack_pending > 0 && config.ack_policy == AckPolicy::None,
            ApiError::CONSUMER_MAX_PENDING_ACK_POLICY_REQUIRED,
        ),
        (heartbeat > Nanos::ZERO && heartbeat < Nanos::from_millis(100), ApiError::CONSUMER_SMALL_HEARTBEAT),
    ] {
        if is_wrong {
            return Err(error);
        }
    }
    Ok(())
}

fn check_pull(config: &ConsumerConfig, context: &ConsumerContext<'_>) -> Result<(), ApiError> {
    let batch_max = context.server.max_request_batch;
    for (is_wrong, error) in [
        (
            config.ack_policy == AckPolicy::None && context.stream.retention == Retention::WorkQueue,
            ApiError::CONSUMER_PULL_REQUIRES_ACK,
        ),
        (config.rate_limit_bps > 0, ApiError::CONSUMER_PULL_WITH_RATE_LIMIT),
        (config.idle_heartbeat > Nanos::ZERO, ApiError::CONSUMER_HEARTBEAT_REQUIRES_PUSH),
        (config.flow_control, ApiError::CONSUMER_FLOW_CONTROL_REQUIRES_PUSH),
        (
            !config.max_expires.is_zero() && config.max_expires < Nanos::from_millis(1),
            ApiError::CONSUMER_MAX_REQUEST_EXPIRES_TOO_SMALL,
        ),
        (
            batch_max > 0 && config.max_batch > batch_max,
            ApiError::consumer_max_request_batch_exceeded(batch_max),
        ),
    ] {
        if is_wrong {
            return Err(error);
        }
    }
    Ok(())
}

fn check_limits(config: &ConsumerConfig, context: &ConsumerContext<'_>) -> Result<(), ApiError> {
    let limits = &context.stream.consumer_limits;
    for limit in [context.server.max_ack_pending, context.account.max_ack_pending, limits.max_ack_pending] {
        if limit > 0 && config.max_ack_pending > limit {
            return Err(ApiError::consumer_max_pending_ack_excess(limit));
        }
    }
    let limit = limits.inactive_threshold;
    if limit > Nanos::ZERO && config.inactive_threshold > limit {
        return Err(ApiError::consumer_inactive_threshold_excess(limit));
    }
    if config.direct && config.is_pull() {
        return Err(ApiError::CONSUMER_DIRECT_REQUIRES_PUSH);
    }
    if config.direct && config.is_durable() {
        return Err(ApiError::CONSUMER_DIRECT_REQUIRES_EPHEMERAL);
    }
    Ok(())
}

fn check_filters(config: &ConsumerConfig) -> Result<(), ApiError> {
    if !config.filter_subject.is_empty() && !config.filter_subjects.is_empty() {
        return Err(ApiError::CONSUMER_DUPLICATE_FILTER_SUBJECTS);
    }
    if config.filter_subjects.len() > FILTER_COUNT_MAX {
        return Err(invalid(format_args!("more than {FILTER_COUNT_MAX} filter subjects")));
    }
    if config.filter_subjects.iter().any(String::is_empty) {
        return Err(ApiError::CONSUMER_EMPTY_FILTER);
    }
    for (at, filter) in config.filters().enumerate() {
        if !is_valid(filter) {
            return Err(invalid("invalid subject"));
        }
        let mut others = config.filters().enumerate().filter(|(other, _)| *other != at);
        if others.any(|(_, other)| is_subset(filter, other)) {
            return Err(ApiError::CONSUMER_OVERLAPPING_SUBJECT_FILTERS);
        }
    }
    Ok(())
}

/// Checks the start of delivery: a policy has just the options that it needs.
fn check_start(config: &ConsumerConfig) -> Result<(), ApiError> {
    let (name, has_sequence, has_time) = match config.deliver_policy {
        DeliverPolicy::All => ("all", false, false),
        DeliverPolicy::Last => ("last", false, false),
        DeliverPolicy::LastPerSubject => ("last per subject", false, false),
        DeliverPolicy::New => ("new", false, false),
        DeliverPolicy::ByStartSequence => ("by start sequence", true, false),
        DeliverPolicy::ByStartTime => ("by start time", false, true),
    };
    let (sequence, time) = (config.opt_start_seq > 0, config.opt_start_time.is_some());
    let needs_filter = config.deliver_policy == DeliverPolicy::LastPerSubject;
    // nats-server repeats a word here.
    let sequence_word = if has_time { "start sequence" } else { "sequence" };
    for (is_wrong, option, state) in [
        (has_sequence && !sequence, "start sequence", "not set"),
        (has_time && !time, "start time", "not set"),
        (sequence && !has_sequence, &*format!("start {sequence_word}"), "also set"),
        (time && !has_time, "start time", "also set"),
        (needs_filter && config.filters().next().is_none(), "filter subject", "not set"),
    ] {
        if is_wrong {
            return Err(ApiError::consumer_invalid_policy(format_args!(
                "consumer delivery policy is deliver {name}, but optional {option} is {state}"
            )));
        }
    }
    Ok(())
}

fn check_texts(config: &ConsumerConfig) -> Result<(), ApiError> {
    if !config.sample_freq.is_empty() {
        let text = config.sample_freq.strip_suffix('%').unwrap_or(&config.sample_freq);
        match text.parse::<i64>() {
            Ok(percent) if percent < 0 => {
                return Err(ApiError::consumer_invalid_sampling(format_args!("{text:?} is negative")));
            }
            Ok(_) => {}
            Err(_) => {
                return Err(ApiError::consumer_invalid_sampling(format_args!("{text:?} is not a number")));
            }
        }
    }
    if config.flow_control && config.idle_heartbeat.is_zero() {
        return Err(ApiError::CONSUMER_WITH_FLOW_CONTROL_NEEDS_HEARTBEATS);
    }
    if config.is_durable() && !config.name.is_empty() && config.name != config.durable_name {
        return Err(ApiError::CONSUMER_CREATE_DURABLE_AND_NAME_MISMATCH);
    }
    let metadata_bytes: usize = config.metadata.iter().map(|(name, value)| name.len() + value.len()).sum();
    if metadata_bytes > METADATA_BYTES_MAX {
        let limit = METADATA_BYTES_MAX / 1024;
        return Err(ApiError::consumer_metadata_length(format_args!("{limit}KB")));
    }
    Ok(())
}

fn check_priority(config: &ConsumerConfig) -> Result<(), ApiError> {
    if config.priority_policy == PriorityPolicy::None {
        if !config.priority_groups.is_empty() {
            return Err(ApiError::CONSUMER_PRIORITY_GROUP_WITH_POLICY_NONE);
        }
        if config.priority_timeout > Nanos::ZERO {
            return Err(ApiError::CONSUMER_PINNED_TTL_WITHOUT_PRIORITY_POLICY_NONE);
        }
        return Ok(());
    }
    if !config.is_pull() {
        return Err(ApiError::CONSUMER_PUSH_WITH_PRIORITY_GROUP);
    }
    if config.priority_groups.is_empty() {
        return Err(ApiError::CONSUMER_PRIORITY_POLICY_WITHOUT_GROUP);
    }
    for group in &config.priority_groups {
        if group.is_empty() {
            return Err(ApiError::CONSUMER_EMPTY_GROUP_NAME);
        }
        if !is_group_name(group) {
            return Err(ApiError::CONSUMER_INVALID_GROUP_NAME);
        }
    }
    Ok(())
}

fn check_work_queue(config: &ConsumerConfig, stream: &StreamConfig) -> Result<(), ApiError> {
    if stream.retention != Retention::WorkQueue || config.direct || config.sourcing {
        return Ok(());
    }
    if !matches!(config.ack_policy, AckPolicy::Explicit | AckPolicy::FlowControl) {
        return Err(ApiError::CONSUMER_WORK_QUEUE_REQUIRES_EXPLICIT_ACK);
    }
    if config.deliver_policy != DeliverPolicy::All {
        return Err(ApiError::CONSUMER_WORK_QUEUE_CONSUMER_NOT_DELIVER_ALL);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
