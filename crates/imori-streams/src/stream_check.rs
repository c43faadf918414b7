//! The checks of a stream's configuration, in the order and with the errors of nats-server.
//!
//! Whether the account has room for the stream, and whether its subjects belong to another stream,
//! is left to the caller.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;

use imori_core::index::{SubjectMap, is_subset, is_valid};

use crate::account::{AccountLimits, ServerLimits};
use crate::duration::Nanos;
use crate::error::ApiError;
use crate::limits::{
    DESCRIPTION_BYTES_MAX, FILTER_COUNT_MAX, METADATA_BYTES_MAX, NAME_BYTES_MAX, REPLICA_COUNT_MAX,
    SOURCE_COUNT_MAX, SOURCE_TRANSFORM_COUNT_MAX,
};
use crate::stream_config::{
    Discard, PersistMode, Placement, Retention, Storage, StreamConfig, StreamConfigRequest, StreamSource,
    SubjectTransform,
};
use crate::subject::{do_collide, is_valid_literal, is_valid_name};

/// Duplicate window of a stream that does not set one.
const DUPLICATE_WINDOW_DEFAULT: Nanos = Nanos::from_secs(120);

/// The shortest age and the shortest window.
const SPAN_MIN: Nanos = Nanos::from_millis(100);

/// The prefix of the API's subjects.
const API_PREFIX: &str = "$JS.API";

/// The limits and the other streams that a configuration is checked against.
#[derive(Clone, Copy)]
pub struct StreamContext<'a> {
    /// The limits of the account.
    pub account: &'a AccountLimits,
    /// The limits of the server.
    pub server: &'a ServerLimits,
    /// Defaults that would change what the client asked for are errors.
    pub is_pedantic: bool,
    /// Finds another stream of the account by its name.
    pub stream: &'a dyn Fn(&str) -> Option<&'a StreamConfig>,
}

impl fmt::Debug for StreamContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamContext")
            .field("account", self.account)
            .field("server", self.server)
            .field("is_pedantic", &self.is_pedantic)
            .finish_non_exhaustive()
    }
}

impl StreamConfigRequest {
    /// Checks a request to create the stream that the subject names, before [`StreamConfig::check`].
    ///
    /// # Errors
    ///
    /// Returns nats-server's error for another name, and for flags that only an update may set.
    pub fn check_create(&self, stream: &str) -> Result<(), ApiError> {
        self.check_name(stream)?;
        if stream.contains(['\\', '/']) {
            return Err(ApiError::STREAM_NAME_CONTAINS_PATH_SEPARATORS);
        }
        if self.config.sealed {
            return Err(invalid("stream configuration for create can not be sealed"));
        }
        if self.config.mirror_direct && self.config.mirror.is_none() {
            return Err(invalid("stream has no mirror but does have mirror direct"));
        }
        Ok(())
    }

    /// Checks that the request is for the stream that the subject names.
    ///
    /// # Errors
    ///
    /// Returns nats-server's error for another name.
    pub fn check_name(&self, stream: &str) -> Result<(), ApiError> {
        if stream == self.config.name { Ok(()) } else { Err(ApiError::STREAM_MISMATCH) }
    }
}

impl StreamConfig {
    /// Sets defaults and checks the configuration for an account without other streams.
    ///
    /// # Errors
    ///
    /// As for [`check_in`](Self::check_in).
    pub fn check(self, account: &AccountLimits) -> Result<Self, ApiError> {
        let server = ServerLimits::default();
        self.check_in(&StreamContext { account, server: &server, is_pedantic: false, stream: &|_| None })
    }

    /// Sets defaults and checks the configuration.
    ///
    /// # Errors
    ///
    /// Returns nats-server's error for the first contradiction.
    pub fn check_in(mut self, context: &StreamContext<'_>) -> Result<Self, ApiError> {
        check_texts(&self)?;
        set_limits(&mut self, context)?;
        set_window(&mut self, context)?;
        set_flags(&mut self, context)?;
        check_persistence(&self)?;
        let mut prefixes = Prefixes::default();
        check_mirror(&mut self, context, &mut prefixes)?;
        check_sources(&self, context, &mut prefixes)?;
        prefixes.check()?;
        check_cycle(&self, context)?;
        set_subjects(&mut self)?;
        check_bytes(&self, context)?;
        check_transform(&self)?;
        set_republish(&mut self, context)?;
        if self.placement.as_ref() == Some(&Placement::default()) {
            self.placement = None;
        }
        if self.placement.as_ref().is_some_and(|placement| !placement.preferred.is_empty()) {
            return Err(invalid("preferred server not permitted in placement"));
        }
        if self.num_replicas > 1 && !context.server.is_clustered {
            return Err(ApiError::STREAM_REPLICAS_NOT_SUPPORTED);
        }
        check_filters(&self)?;
        Ok(self)
    }

    /// Checks the configuration that is to replace `old`, and sets what sealing a stream implies.
    ///
    /// # Errors
    ///
    /// Returns nats-server's error for the first contradiction, within the configuration or with
    /// the old one.
    pub fn check_update(old: &Self, new: Self, context: &StreamContext<'_>) -> Result<Self, ApiError> {
        let mut new = new.check_in(context)?;
        let changes_work_queue = new.retention != old.retention
            && (old.retention == Retention::WorkQueue || new.retention == Retention::WorkQueue);
        for (is_wrong, text) in [
            (new.name != old.name, "stream configuration name must match original"),
            (new.storage != old.storage, "stream configuration update can not change storage type"),
            (
                changes_work_queue,
                "stream configuration update can not change retention policy to/from workqueue",
            ),
            (old.sealed && !new.sealed, "stream configuration update can not unseal a sealed stream"),
            (
                old.deny_delete && !new.deny_delete,
                "stream configuration update can not cancel deny message deletes",
            ),
            (old.deny_purge && !new.deny_purge, "stream configuration update can not cancel deny purge"),
        ] {
            if is_wrong {
                return Err(invalid(text));
            }
        }
        if new.mirror.is_some() && new.mirror != old.mirror {
            return Err(ApiError::STREAM_MIRROR_NOT_UPDATABLE);
        }
        for (is_wrong, text) in [
            (old.allow_msg_ttl && !new.allow_msg_ttl, "message TTL status can not be disabled"),
            (
                new.allow_msg_counter != old.allow_msg_counter,
                "stream configuration update can not change message counter setting",
            ),
            (old.allow_msg_schedules && !new.allow_msg_schedules, "message schedules can not be disabled"),
            (new.persist_mode != old.persist_mode, "stream configuration update can not change persist mode"),
        ] {
            if is_wrong {
                return Err(invalid(text));
            }
        }
        if new.sealed {
            new.max_age = Nanos::ZERO;
            new.discard = Discard::New;
            (new.deny_delete, new.deny_purge) = (true, true);
            new.allow_rollup_hdrs = false;
        }
        Ok(new)
    }

    /// Whether a subject of this stream could also be one of the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.subjects.iter().any(|own| other.subjects.iter().any(|subject| do_collide(own, subject)))
    }

    /// The level of the API that a server must have for the configuration.
    pub fn required_level(&self) -> u32 {
        if self.allow_batched {
            4
        } else if self.allow_msg_counter
            || self.allow_atomic
            || self.allow_msg_schedules
            || self.persist_mode == PersistMode::Async
        {
            2
        } else {
            u32::from(self.allow_msg_ttl || self.subject_delete_marker_ttl > Nanos::ZERO)
        }
    }
}

fn invalid(reason: impl fmt::Display) -> ApiError {
    ApiError::stream_invalid_config(reason)
}

fn check_texts(config: &StreamConfig) -> Result<(), ApiError> {
    if !is_valid_name(&config.name) {
        return Err(invalid("stream name is required and can not contain '.', '*', '>', '\\', '/'"));
    }
    if config.name.len() > NAME_BYTES_MAX {
        return Err(invalid(format_args!("stream name is too long, maximum allowed is {NAME_BYTES_MAX}")));
    }
    if config.description.len() > DESCRIPTION_BYTES_MAX {
        let text = format_args!("stream description is too long, maximum allowed is {DESCRIPTION_BYTES_MAX}");
        return Err(invalid(text));
    }
    let metadata_bytes: usize = config.metadata.iter().map(|(name, value)| name.len() + value.len()).sum();
    if metadata_bytes > METADATA_BYTES_MAX {
        let text = format_args!("stream metadata exceeds maximum size of {METADATA_BYTES_MAX} bytes");
        return Err(invalid(text));
    }
    if config.subjects.len() > FILTER_COUNT_MAX {
        return Err(invalid(format_args!("more than {FILTER_COUNT_MAX} subjects")));
    }
    if config.sources.len() > SOURCE_COUNT_MAX {
        return Err(invalid(format_args!("more than {SOURCE_COUNT_MAX} sources")));
    }
    let mut sources = config.mirror.iter().chain(&config.sources);
    if sources.any(|source| source.subject_transforms.len() > SOURCE_TRANSFORM_COUNT_MAX) {
        return Err(invalid(format_args!("more than {SOURCE_TRANSFORM_COUNT_MAX} subject transforms")));
    }
    Ok(())
}

/// Makes -1 of limits that are not set.
fn set_limits(config: &mut StreamConfig, context: &StreamContext<'_>) -> Result<(), ApiError> {
    if config.num_replicas == 0 {
        config.num_replicas = 1;
    }
    if config.num_replicas > REPLICA_COUNT_MAX {
        return Err(invalid(format_args!("maximum replicas is {REPLICA_COUNT_MAX}")));
    }
    if config.num_replicas < 0 {
        return Err(ApiError::REPLICAS_COUNT_CANNOT_BE_NEGATIVE);
    }
    let mut max_msg_size = i64::from(config.max_msg_size);
    for (name, limit) in [
        ("max_msgs", &mut config.max_msgs),
        ("max_msgs_per_subject", &mut config.max_msgs_per_subject),
        ("max_bytes", &mut config.max_bytes),
        ("max_msg_size", &mut max_msg_size),
        ("max_consumers", &mut config.max_consumers),
    ] {
        if *limit < -1 && context.is_pedantic {
            return Err(ApiError::pedantic(format_args!("{name} must be set to -1")));
        }
        if *limit == 0 || *limit < -1 {
            *limit = -1;
        }
    }
    config.max_msg_size = i32::try_from(max_msg_size).unwrap_or(-1);
    if config.max_age < Nanos::ZERO {
        return Err(invalid("max age can not be negative"));
    }
    if !config.max_age.is_zero() && config.max_age < SPAN_MIN {
        return Err(invalid("max age needs to be >= 100ms"));
    }
    Ok(())
}

fn set_window(config: &mut StreamConfig, context: &StreamContext<'_>) -> Result<(), ApiError> {
    let limit = context.server.duplicate_window;
    let has_limit = limit > Nanos::ZERO;
    if config.duplicate_window.is_zero() && config.mirror.is_none() && config.sources.is_empty() {
        let mut window = DUPLICATE_WINDOW_DEFAULT;
        if has_limit && window > limit {
            if context.is_pedantic {
                return Err(ApiError::pedantic("duplicate window limits are higher than current limits"));
            }
            window = limit;
        }
        if !config.max_age.is_zero() && config.max_age < window {
            if context.is_pedantic {
                return Err(ApiError::pedantic("duplicate window cannot be bigger than max age"));
            }
            window = config.max_age;
        }
        config.duplicate_window = window;
    }
    let window = config.duplicate_window;
    if window < Nanos::ZERO {
        return Err(invalid("duplicates window can not be negative"));
    }
    if !config.max_age.is_zero() && window > config.max_age {
        return Err(invalid("duplicates window can not be larger then max age"));
    }
    if has_limit && window > limit {
        let text = format_args!("duplicates window can not be larger then server limit of {limit}");
        return Err(invalid(text));
    }
    if window > Nanos::ZERO && window < SPAN_MIN {
        return Err(invalid("duplicates window needs to be >= 100ms"));
    }
    Ok(())
}

/// Checks the flags against each other, and sets those that others need.
fn set_flags(config: &mut StreamConfig, context: &StreamContext<'_>) -> Result<(), ApiError> {
    let is_counter = config.allow_msg_counter;
    let marker_ttl = config.subject_delete_marker_ttl;
    for (is_wrong, text) in [
        (config.deny_purge && config.allow_rollup_hdrs, "roll-ups require the purge permission"),
        (is_counter && config.discard == Discard::New, "counter stream cannot use discard new"),
        (is_counter && config.allow_msg_ttl, "counter stream cannot use message TTLs"),
        (is_counter && config.allow_msg_schedules, "counter stream cannot use message schedules"),
        (is_counter && config.retention != Retention::Limits, "counter stream can only use limits retention"),
        (
            config.discard_new_per_subject && config.discard != Discard::New,
            "discard new per subject requires discard new policy to be set",
        ),
        (
            config.discard_new_per_subject && config.max_msgs_per_subject <= 0,
            "discard new per subject requires max msgs per subject > 0",
        ),
        (
            marker_ttl > Nanos::ZERO && marker_ttl < Nanos::from_secs(1),
            "subject delete marker TTL must be at least 1 second",
        ),
        (marker_ttl < Nanos::ZERO, "subject delete marker TTL must not be negative"),
    ] {
        if is_wrong {
            return Err(invalid(text));
        }
    }
    if marker_ttl > Nanos::ZERO && !config.allow_msg_ttl {
        if context.is_pedantic {
            return Err(invalid("subject delete marker cannot be set if message TTLs are disabled"));
        }
        config.allow_msg_ttl = true;
    }
    if marker_ttl > Nanos::ZERO && !config.allow_rollup_hdrs {
        if context.is_pedantic {
            return Err(invalid("subject delete marker cannot be set if roll-ups are disabled"));
        }
        (config.allow_rollup_hdrs, config.deny_purge) = (true, false);
    }
    if config.allow_msg_schedules {
        if config.discard == Discard::New {
            return Err(invalid("message scheduling cannot use discard new"));
        }
        if !config.allow_rollup_hdrs {
            if context.is_pedantic {
                return Err(invalid("message scheduling cannot be set if roll-ups are disabled"));
            }
            (config.allow_rollup_hdrs, config.deny_purge) = (true, false);
        }
    }
    Ok(())
}

fn check_persistence(config: &StreamConfig) -> Result<(), ApiError> {
    if config.persist_mode == PersistMode::Default {
        return Ok(());
    }
    for (is_wrong, text) in [
        (config.storage != Storage::File, "async persist mode is only supported on file storage"),
        (config.num_replicas > 1, "async persist mode is not supported on replicated streams"),
        (config.allow_atomic, "async persist mode is not supported with atomic batch publish"),
    ] {
        if is_wrong {
            return Err(invalid(text));
        }
    }
    Ok(())
}

/// Prefixes of streams in other accounts, and subjects of those in this one.
#[derive(Default)]
struct Prefixes {
    api: Vec<String>,
    deliver: Vec<String>,
    subjects: Vec<String>,
}

impl Prefixes {
    fn add(&mut self, source: &StreamSource) {
        if let Some(external) = &source.external {
            self.deliver.extend((!external.deliver.is_empty()).then(|| external.deliver.clone()));
            self.api.extend((!external.api.is_empty()).then(|| external.api.clone()));
        }
    }

    fn check(&self) -> Result<(), ApiError> {
        for prefix in &self.deliver {
            if !is_valid_literal(prefix) {
                return Err(ApiError::stream_invalid_external_delivery_subject(prefix));
            }
            for subject in &self.subjects {
                if do_collide(subject, &format!("{prefix}.{subject}")) {
                    return Err(ApiError::stream_external_delivery_prefix_overlaps(prefix, subject));
                }
            }
        }
        for prefix in &self.api {
            if !is_valid_literal(prefix) {
                let text = format_args!(
                    "stream external api prefix {prefix:?} must be a valid subject without wildcards"
                );
                return Err(invalid(text));
            }
            if prefix == API_PREFIX {
                return Err(ApiError::stream_external_api_overlap(prefix, API_PREFIX));
            }
        }
        Ok(())
    }
}

fn check_mirror(
    config: &mut StreamConfig,
    context: &StreamContext<'_>,
    prefixes: &mut Prefixes,
) -> Result<(), ApiError> {
    let Some(mirror) = &config.mirror else {
        return Ok(());
    };
    for (is_wrong, error) in [
        (config.first_seq > 0, ApiError::MIRROR_WITH_FIRST_SEQUENCE),
        (!config.subjects.is_empty(), ApiError::MIRROR_WITH_SUBJECTS),
        (!config.sources.is_empty(), ApiError::MIRROR_WITH_SOURCES),
        (config.allow_msg_counter, ApiError::MIRROR_WITH_COUNTERS),
        (config.allow_atomic, ApiError::MIRROR_WITH_ATOMIC_PUBLISH),
        (config.allow_batched, ApiError::MIRROR_WITH_BATCH_PUBLISH),
        (config.allow_msg_schedules, ApiError::MIRROR_WITH_MESSAGE_SCHEDULES),
        (has_bad_consumer(mirror), ApiError::MIRROR_DURABLE_CONSUMER_CONFIG_INVALID),
        (has_two_filters(mirror), ApiError::MIRROR_MULTIPLE_FILTERS_NOT_ALLOWED),
        (
            config.subject_delete_marker_ttl > Nanos::ZERO,
            invalid("subject delete markers forbidden on mirrors"),
        ),
    ] {
        if is_wrong {
            return Err(error);
        }
    }
    for (at, transform) in mirror.subject_transforms.iter().enumerate() {
        if !transform.src.is_empty() && !is_valid(&transform.src) {
            let text = format_args!("invalid subject {}", transform.src);
            return Err(ApiError::mirror_invalid_subject_filter(text));
        }
        SubjectMap::new(&transform.src, &transform.dest)
            .map_err(ApiError::mirror_invalid_transform_destination)?;
        if has_overlap(&mirror.subject_transforms, at, do_collide) {
            return Err(ApiError::MIRROR_OVERLAPPING_SUBJECT_FILTERS);
        }
    }
    if mirror.external.is_some() {
        prefixes.add(mirror);
        return Ok(());
    }
    if !is_valid_name(&mirror.name) {
        return Err(ApiError::MIRROR_INVALID_STREAM_NAME);
    }
    let Some(origin) = (context.stream)(&mirror.name) else {
        return Ok(());
    };
    prefixes.subjects.extend(origin.subjects.iter().cloned());
    if is_too_small(config, origin) {
        return Err(ApiError::MIRROR_MAX_MESSAGE_SIZE_TOO_BIG);
    }
    if context.is_pedantic && config.mirror_direct != origin.allow_direct {
        return Err(ApiError::pedantic("origin stream has direct get set, mirror has it disabled"));
    }
    config.mirror_direct = origin.allow_direct;
    Ok(())
}

fn check_sources(
    config: &StreamConfig,
    context: &StreamContext<'_>,
    prefixes: &mut Prefixes,
) -> Result<(), ApiError> {
    if !config.sources.is_empty() && config.allow_msg_schedules {
        return Err(ApiError::SOURCE_WITH_MESSAGE_SCHEDULES);
    }
    let (mut sources, mut consumers) = (BTreeSet::new(), BTreeSet::new());
    for source in &config.sources {
        if !is_valid_name(&source.name) {
            return Err(ApiError::SOURCE_INVALID_STREAM_NAME);
        }
        if !sources.insert(identity(source)) {
            return Err(ApiError::SOURCE_DUPLICATE_DETECTED);
        }
        if has_two_filters(source) {
            return Err(ApiError::SOURCE_MULTIPLE_FILTERS_NOT_ALLOWED);
        }
        for transform in &source.subject_transforms {
            if !transform.src.is_empty() && !is_valid(&transform.src) {
                let text = format_args!("invalid subject {}", transform.src);
                return Err(ApiError::source_invalid_subject_filter(text));
            }
            SubjectMap::new(&transform.src, &transform.dest)
                .map_err(ApiError::source_invalid_transform_destination)?;
        }
        for at in 0..source.subject_transforms.len() {
            if has_overlap(&source.subject_transforms, at, is_subset) {
                return Err(ApiError::SOURCE_OVERLAPPING_SUBJECT_FILTERS);
            }
        }
        if let Some(consumer) = &source.consumer {
            if has_bad_consumer(source) {
                return Err(ApiError::SOURCE_DURABLE_CONSUMER_CONFIG_INVALID);
            }
            if !consumers.insert((&source.name, api_of(source), &consumer.name)) {
                return Err(ApiError::SOURCE_DURABLE_CONSUMER_DUPLICATE_DETECTED);
            }
        }
        if source.external.is_some() {
            prefixes.add(source);
        } else if let Some(origin) = (context.stream)(&source.name) {
            prefixes.subjects.extend(origin.subjects.iter().cloned());
            if is_too_small(config, origin) {
                return Err(ApiError::SOURCE_MAX_MESSAGE_SIZE_TOO_BIG);
            }
        }
    }
    Ok(())
}

/// Whether the consumer of a source has no valid name or subject, or the source says where to start.
fn has_bad_consumer(source: &StreamSource) -> bool {
    source.consumer.as_ref().is_some_and(|consumer| {
        !is_valid_name(&consumer.name)
            || !is_valid_literal(&consumer.deliver_subject)
            || source.opt_start_seq != 0
            || source.opt_start_time.is_some()
            || !source.filter_subject.is_empty()
    })
}

fn has_two_filters(source: &StreamSource) -> bool {
    !source.filter_subject.is_empty() && !source.subject_transforms.is_empty()
}

/// Whether the filter of one transform overlaps with that of another.
fn has_overlap(transforms: &[SubjectTransform], at: usize, overlap: fn(&str, &str) -> bool) -> bool {
    let own = transforms.get(at).map(|transform| transform.src.as_str()).unwrap_or_default();
    transforms.iter().enumerate().any(|(other, transform)| other != at && overlap(own, &transform.src))
}

/// Whether messages of the origin would be too large for the stream.
fn is_too_small(config: &StreamConfig, origin: &StreamConfig) -> bool {
    config.max_msg_size > 0 && origin.max_msg_size > 0 && config.max_msg_size < origin.max_msg_size
}

fn api_of(source: &StreamSource) -> Option<&str> {
    source.external.as_ref().map(|external| external.api.as_str())
}

/// The properties that must differ between two sources of a stream.
type SourceIdentity<'a> = (&'a str, Option<&'a str>, Option<&'a str>, Vec<(&'a str, &'a str)>);

fn identity(source: &StreamSource) -> SourceIdentity<'_> {
    fn or_all(filter: &str) -> &str {
        if filter.is_empty() { ">" } else { filter }
    }
    let transforms = match source.subject_transforms.as_slice() {
        [] => vec![(or_all(&source.filter_subject), ">")],
        transforms => transforms.iter().map(|one| (or_all(&one.src), or_all(&one.dest))).collect(),
    };
    let consumer = source.consumer.as_ref().map(|consumer| consumer.name.as_str());
    (&source.name, api_of(source), consumer, transforms)
}

/// Follows sources and mirrors, nearest first, and refuses to come back to a stream already visited.
fn check_cycle(config: &StreamConfig, context: &StreamContext<'_>) -> Result<(), ApiError> {
    let cycle = || Err(invalid("detected cycle"));
    let mut visited = BTreeSet::new();
    let mut to_visit = VecDeque::from([config]);
    while let Some(stream) = to_visit.pop_front() {
        if !visited.insert(stream.name.as_str()) {
            continue;
        }
        for source in stream.sources.iter().filter(|source| source.external.is_none()) {
            if visited.contains(source.name.as_str()) {
                let filter = &source.filter_subject;
                if filter.is_empty() || stream.subjects.iter().any(|subject| do_collide(subject, filter)) {
                    return cycle();
                }
            } else {
                to_visit.extend((context.stream)(&source.name));
            }
        }
        if let Some(mirror) = stream.mirror.as_ref().filter(|mirror| mirror.external.is_none()) {
            if visited.contains(mirror.name.as_str()) {
                return cycle();
            }
            to_visit.extend((context.stream)(&mirror.name));
        }
    }
    Ok(())
}

/// Makes the name the subject of a stream without one, and checks the subjects.
fn set_subjects(config: &mut StreamConfig) -> Result<(), ApiError> {
    if config.subjects.is_empty() && config.mirror.is_none() && config.sources.is_empty() {
        config.subjects.push(config.name.clone());
        return Ok(());
    }
    for (at, subject) in config.subjects.iter().enumerate() {
        if !is_valid(subject) {
            return Err(invalid("invalid subject"));
        }
        if subject == ">" {
            if !config.no_ack {
                return Err(invalid("capturing all subjects requires no-ack to be true"));
            }
            if config.num_replicas != 1 {
                return Err(invalid("capturing all subjects requires replicas of 1"));
            }
        }
        if !config.no_ack {
            let is_api = ["$JS.>", "$JSC.>", "$NRG.>"].iter().any(|filter| do_collide(subject, filter));
            if is_api && !is_subset(subject, "$JS.EVENT.>") {
                return Err(invalid("subjects that overlap with jetstream api require no-ack to be true"));
            }
            if do_collide(subject, "$SYS.>") && !is_subset(subject, "$SYS.ACCOUNT.>") {
                return Err(invalid("subjects that overlap with system api require no-ack to be true"));
            }
        }
        if let Some(other) = config.subjects.iter().skip(at + 1).find(|other| do_collide(other, subject)) {
            return Err(invalid(format_args!("subject {subject:?} overlaps with {other:?}")));
        }
    }
    Ok(())
}

fn check_bytes(config: &StreamConfig, context: &StreamContext<'_>) -> Result<(), ApiError> {
    let limit = match config.storage {
        Storage::Memory => context.account.memory_max_stream_bytes,
        Storage::File => context.account.storage_max_stream_bytes,
    };
    if context.account.max_bytes_required && config.max_bytes <= 0 {
        return Err(ApiError::STREAM_MAX_BYTES_REQUIRED);
    }
    if limit > 0 && config.max_bytes > limit {
        return Err(ApiError::STREAM_MAX_STREAM_BYTES_EXCEEDED);
    }
    Ok(())
}

fn check_transform(config: &StreamConfig) -> Result<(), ApiError> {
    let Some(transform) = &config.subject_transform else {
        return Ok(());
    };
    if !transform.src.is_empty() && !is_valid(&transform.src) {
        let text = format_args!("invalid subject {}", transform.src);
        return Err(ApiError::stream_transform_invalid_source(text));
    }
    SubjectMap::new(&transform.src, &transform.dest)
        .map_err(ApiError::stream_transform_invalid_destination)?;
    Ok(())
}

/// Sets the source of a republish, and refuses one that comes back to the stream.
fn set_republish(config: &mut StreamConfig, context: &StreamContext<'_>) -> Result<(), ApiError> {
    let Some(republish) = &mut config.republish else {
        return Ok(());
    };
    if republish.src.is_empty() {
        if context.is_pedantic {
            return Err(ApiError::pedantic("republish source can not be empty"));
        }
        republish.src = ">".to_string();
    }
    // A republish of everything to itself follows the subject transform, if that takes every
    // message of the stream.
    let transform = config.subject_transform.as_ref();
    let transform = transform.filter(|one| config.subjects.as_slice() == [one.src.as_str()]);
    if let (">", ">", Some(transform)) = (republish.src.as_str(), republish.dest.as_str(), transform) {
        if context.is_pedantic {
            return Err(ApiError::pedantic("implicit republish based on subject transform"));
        }
        republish.src.clone_from(&transform.dest);
        republish.dest.clone_from(&transform.dest);
    }
    if config.subjects.iter().any(|subject| do_collide(&republish.dest, subject)) {
        return Err(invalid("stream configuration for republish destination forms a cycle"));
    }
    if SubjectMap::new(&republish.src, &republish.dest).is_err() {
        let text = format_args!(
            "stream configuration for republish with transform from '{}' to '{}' not valid",
            republish.src, republish.dest
        );
        return Err(invalid(text));
    }
    Ok(())
}

/// Checks the filters of mirror and sources, which nats-server leaves to the start of the stream.
fn check_filters(config: &StreamConfig) -> Result<(), ApiError> {
    let bad = |source: &&StreamSource| !source.filter_subject.is_empty() && !is_valid(&source.filter_subject);
    if let Some(mirror) = config.mirror.as_ref().filter(bad) {
        let text = format_args!("subject filter '{}' for the mirror invalid subject", mirror.filter_subject);
        return Err(ApiError::stream_create(text));
    }
    if let Some(source) = config.sources.iter().find(bad) {
        let text = format_args!("subject filter '{}' for the source: invalid subject", source.filter_subject);
        return Err(ApiError::stream_create(text));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
