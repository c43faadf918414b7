//! The errors of the JetStream API, with the codes and the words of nats-server.

use std::borrow::Cow;
use std::fmt;

use imori_core::room::Unavailable;
use serde::{Deserialize, Serialize};

use crate::json::JsonError;

/// An error in an answer of the JetStream API or in a publish acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiError {
    /// The class of the error, as in HTTP.
    pub code: u16,
    /// The number of the error, which client libraries compare.
    pub err_code: u16,
    /// The sentence for people.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub description: Cow<'static, str>,
}

impl ApiError {
    /// Returns an error of one of the numbers below with another sentence.
    pub const fn new(code: u16, err_code: u16, description: &'static str) -> Self {
        Self { code, err_code, description: Cow::Borrowed(description) }
    }

    /// The error of a journal that takes nothing now.
    #[must_use]
    pub fn unavailable(cause: Unavailable) -> ApiError {
        match cause {
            Unavailable::DiskFull => ApiError::INSUFFICIENT_RESOURCES,
            Unavailable::NotLeader => ApiError::CLUSTER_NOT_LEADER,
            Unavailable::NoQuorum => ApiError::CLUSTER_NOT_AVAIL,
        }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.description, self.err_code)
    }
}

impl std::error::Error for ApiError {}

impl From<JsonError> for ApiError {
    fn from(error: JsonError) -> Self {
        Self::invalid_json(error)
    }
}

/// Declares the errors whose sentence is fixed, and lists them all.
macro_rules! fixed {
    ($($name:ident = $code:literal, $err_code:literal, $text:literal;)*) => {
        impl ApiError {
            $(
                #[doc = concat!("Error ", $err_code, ": ", $text, ".")]
                pub const $name: Self = Self::new($code, $err_code, $text);
            )*

            /// All errors with a fixed sentence, by number.
            #[cfg(test)]
            const FIXED: &[Self] = &[$(Self::$name),*];
        }
    };
}

/// Declares the errors whose sentence has places to fill.
macro_rules! filled {
    ($($name:ident($($place:ident),+) = $code:literal, $err_code:literal, $text:literal;)*) => {
        impl ApiError {
            $(
                #[doc = concat!("Error ", $err_code, ": `", $text, "`.")]
                pub fn $name($($place: impl fmt::Display),+) -> Self {
                    Self { code: $code, err_code: $err_code, description: format!($text).into() }
                }
            )*

            /// The code and the number of every error with places to fill, by number.
            #[cfg(test)]
            const FILLED: &[(u16, u16)] = &[$(($code, $err_code)),*];
        }
    };
}

fixed! {
    ACCOUNT_RESOURCES_EXCEEDED = 400, 10002, "resource limits exceeded for account";
    BAD_REQUEST = 400, 10003, "bad request";
    CLUSTER_INCOMPLETE = 503, 10004, "incomplete results";
    CLUSTER_NOT_ACTIVE = 500, 10006, "JetStream not in clustered mode";
    CLUSTER_NOT_ASSIGNED = 500, 10007, "JetStream cluster not assigned to this server";
    CLUSTER_NOT_AVAIL = 503, 10008, "JetStream system temporarily unavailable";
    CLUSTER_NOT_LEADER = 500, 10009, "JetStream cluster can not handle request";
    CLUSTER_REQUIRED = 503, 10010, "JetStream clustering support required";
    CLUSTER_TAGS = 400, 10011, "tags placement not supported for operation";
    CONSUMER_NAME_EXIST = 400, 10013, "consumer name already in use";
    CONSUMER_NOT_FOUND = 404, 10014, "consumer not found";
    SNAPSHOT_DELIVER_SUBJECT_INVALID = 400, 10015, "deliver subject not valid";
    CONSUMER_DURABLE_NAME_NOT_IN_SUBJECT = 400, 10016, "consumer expected to be durable but no durable name set in subject";
    CONSUMER_DURABLE_NAME_NOT_MATCH_SUBJECT = 400, 10017, "consumer name in subject does not match durable name in request";
    CONSUMER_DURABLE_NAME_NOT_SET = 400, 10018, "consumer expected to be durable but a durable name was not set";
    CONSUMER_EPHEMERAL_WITH_DURABLE_IN_SUBJECT = 400, 10019, "consumer expected to be ephemeral but detected a durable name set in subject";
    CONSUMER_EPHEMERAL_WITH_DURABLE_NAME = 400, 10020, "consumer expected to be ephemeral but a durable name was set in request";
    INSUFFICIENT_RESOURCES = 503, 10023, "insufficient resources";
    MAXIMUM_CONSUMERS_LIMIT = 400, 10026, "maximum consumers limit reached";
    MAXIMUM_STREAMS_LIMIT = 400, 10027, "maximum number of streams reached";
    MEMORY_RESOURCES_EXCEEDED = 500, 10028, "insufficient memory resources available";
    MIRROR_MAX_MESSAGE_SIZE_TOO_BIG = 400, 10030, "stream mirror must have max message size >= source";
    MIRROR_WITH_SOURCES = 400, 10031, "stream mirrors can not also contain other sources";
    MIRROR_WITH_START_SEQUENCE_AND_TIME = 400, 10032, "stream mirrors can not have both start seq and start time configured";
    MIRROR_WITH_SUBJECT_FILTERS = 400, 10033, "stream mirrors can not contain filtered subjects";
    MIRROR_WITH_SUBJECTS = 400, 10034, "stream mirrors can not contain subjects";
    NO_ACCOUNT = 503, 10035, "account not found";
    CLUSTER_UNSUPPORTED_FEATURE = 503, 10036, "not currently supported in clustered mode";
    NO_MESSAGE_FOUND = 404, 10037, "no message found";
    NOT_EMPTY_REQUEST = 400, 10038, "expected an empty request payload";
    NOT_ENABLED_FOR_ACCOUNT = 503, 10039, "JetStream not enabled for account";
    CLUSTER_PEER_NOT_MEMBER = 400, 10040, "peer not a member";
    CLUSTER_SERVER_NOT_MEMBER = 400, 10044, "server is not a member of the cluster";
    SOURCE_MAX_MESSAGE_SIZE_TOO_BIG = 400, 10046, "stream source must have max message size >= target";
    STORAGE_RESOURCES_EXCEEDED = 500, 10047, "insufficient storage resources available";
    STREAM_MESSAGE_EXCEEDS_MAXIMUM = 400, 10054, "message size exceeds maximum allowed";
    STREAM_MIRROR_NOT_UPDATABLE = 400, 10055, "stream mirror configuration can not be updated";
    STREAM_MISMATCH = 400, 10056, "stream name in subject does not match request";
    STREAM_NAME_EXIST = 400, 10058, "stream name already in use with a different configuration";
    STREAM_NOT_FOUND = 404, 10059, "stream not found";
    STREAM_NOT_MATCH = 400, 10060, "expected stream does not match";
    STREAM_REPLICAS_NOT_UPDATABLE = 400, 10061, "Replicas configuration can not be updated";
    STREAM_SEQUENCE_NOT_MATCH = 503, 10063, "expected stream sequence does not match";
    STREAM_SUBJECT_OVERLAP = 400, 10065, "subjects overlap with an existing stream";
    STREAM_TEMPLATE_NOT_FOUND = 404, 10068, "template not found";
    TEMP_STORAGE_FAILED = 500, 10072, "JetStream unable to open temp storage for restore";
    TEMPLATE_NAME_NOT_MATCH_SUBJECT = 400, 10073, "template name in subject does not match request";
    STREAM_REPLICAS_NOT_SUPPORTED = 500, 10074, "replicas > 1 not supported in non-clustered mode";
    PEER_REMAP = 503, 10075, "peer remap failed";
    NOT_ENABLED = 503, 10076, "JetStream not enabled";
    CONSUMER_CONFIG_REQUIRED = 400, 10078, "consumer config required";
    CONSUMER_DELIVER_TO_WILDCARDS = 400, 10079, "consumer deliver subject has wildcards";
    CONSUMER_PUSH_MAX_WAITING = 400, 10080, "consumer in push mode can not set max waiting";
    CONSUMER_DELIVER_CYCLE = 400, 10081, "consumer deliver subject forms a cycle";
    CONSUMER_MAX_PENDING_ACK_POLICY_REQUIRED = 400, 10082, "consumer requires ack policy for max ack pending";
    CONSUMER_SMALL_HEARTBEAT = 400, 10083, "consumer idle heartbeat needs to be >= 100ms";
    CONSUMER_PULL_REQUIRES_ACK = 400, 10084, "consumer in pull mode requires explicit ack policy on workqueue stream";
    CONSUMER_PULL_NOT_DURABLE = 400, 10085, "consumer in pull mode requires a durable name";
    CONSUMER_PULL_WITH_RATE_LIMIT = 400, 10086, "consumer in pull mode can not have rate limit set";
    CONSUMER_MAX_WAITING_NEGATIVE = 400, 10087, "consumer max waiting needs to be positive";
    CONSUMER_HEARTBEAT_REQUIRES_PUSH = 400, 10088, "consumer idle heartbeat requires a push based consumer";
    CONSUMER_FLOW_CONTROL_REQUIRES_PUSH = 400, 10089, "consumer flow control requires a push based consumer";
    CONSUMER_DIRECT_REQUIRES_PUSH = 400, 10090, "consumer direct requires a push based consumer";
    CONSUMER_DIRECT_REQUIRES_EPHEMERAL = 400, 10091, "consumer direct requires an ephemeral consumer";
    CONSUMER_ON_MAPPED = 400, 10092, "consumer direct on a mapped consumer";
    CONSUMER_FILTER_NOT_SUBSET = 400, 10093, "consumer filter subject is not a valid subset of the interest subjects";
    STREAM_INVALID = 500, 10096, "stream not valid";
    STREAM_HEADER_EXCEEDS_MAXIMUM = 400, 10097, "header size exceeds maximum allowed of 64k";
    CONSUMER_WORK_QUEUE_REQUIRES_EXPLICIT_ACK = 400, 10098, "workqueue stream requires explicit ack";
    CONSUMER_WORK_QUEUE_MULTIPLE_UNFILTERED = 400, 10099, "multiple non-filtered consumers not allowed on workqueue stream";
    CONSUMER_WORK_QUEUE_CONSUMER_NOT_UNIQUE = 400, 10100, "filtered consumer not unique on workqueue stream";
    CONSUMER_WORK_QUEUE_CONSUMER_NOT_DELIVER_ALL = 400, 10101, "consumer must be deliver all on workqueue stream";
    CONSUMER_BAD_DURABLE_NAME = 400, 10103, "durable name can not contain '.', '*', '>'";
    CONSUMER_EXISTING_ACTIVE = 400, 10105, "consumer already exists and is still active";
    CONSUMER_REPLACEMENT_WITH_DIFFERENT_NAME = 400, 10106, "consumer replacement durable config not the same";
    CONSUMER_WITH_FLOW_CONTROL_NEEDS_HEARTBEATS = 400, 10108, "consumer with flow control also needs heartbeats";
    STREAM_SEALED = 400, 10109, "invalid operation on sealed stream";
    CONSUMER_INVALID_DELIVER_SUBJECT = 400, 10112, "invalid push consumer deliver subject";
    STREAM_MAX_BYTES_REQUIRED = 400, 10113, "account requires a stream config to have max bytes set";
    CONSUMER_MAX_REQUEST_BATCH_NEGATIVE = 400, 10114, "consumer max request batch needs to be > 0";
    CONSUMER_MAX_REQUEST_EXPIRES_TOO_SMALL = 400, 10115, "consumer max request expires needs to be >= 1ms";
    CONSUMER_MAX_DELIVER_BACKOFF = 400, 10116, "max deliver is required to be > length of backoff values";
    STREAM_INFO_MAX_SUBJECTS = 500, 10117, "subject details would exceed maximum allowed";
    STREAM_OFFLINE = 500, 10118, "stream is offline";
    CONSUMER_OFFLINE = 500, 10119, "consumer is offline";
    NO_LIMITS = 400, 10120, "no JetStream default or applicable tiered limit present";
    STREAM_MAX_STREAM_BYTES_EXCEEDED = 400, 10122, "stream max bytes exceeds account limit max stream bytes";
    STREAM_MOVE_AND_SCALE = 400, 10123, "can not move and scale a stream in a single update";
    STREAM_MOVE_IN_PROGRESS = 400, 10124, "stream move already in progress";
    CONSUMER_REPLICAS_EXCEEDS_STREAM = 400, 10126, "consumer config replica count exceeds parent stream";
    CONSUMER_NAME_CONTAINS_PATH_SEPARATORS = 400, 10127, "Consumer name can not contain path separators";
    STREAM_NAME_CONTAINS_PATH_SEPARATORS = 400, 10128, "Stream name can not contain path separators";
    STREAM_RECONFIGURE_NOT_IN_PROGRESS = 400, 10129, "stream reconfiguration not in progress";
    STREAM_NAME_EXIST_RESTORE_FAILED = 400, 10130, "stream name already in use, cannot restore";
    CONSUMER_CREATE_FILTER_SUBJECT_MISMATCH = 400, 10131, "Consumer create request did not match filtered subject from create subject";
    CONSUMER_CREATE_DURABLE_AND_NAME_MISMATCH = 400, 10132, "Consumer Durable and Name have to be equal if both are provided";
    REPLICAS_COUNT_CANNOT_BE_NEGATIVE = 400, 10133, "replicas count cannot be negative";
    CONSUMER_REPLICAS_SHOULD_MATCH_STREAM = 400, 10134, "consumer config replicas must match interest retention stream's replicas";
    CONSUMER_DUPLICATE_FILTER_SUBJECTS = 400, 10136, "consumer cannot have both FilterSubject and FilterSubjects specified";
    CONSUMER_MULTIPLE_FILTERS_NOT_ALLOWED = 400, 10137, "consumer with multiple subject filters cannot use subject based API";
    CONSUMER_OVERLAPPING_SUBJECT_FILTERS = 400, 10138, "consumer subject filters cannot overlap";
    CONSUMER_EMPTY_FILTER = 400, 10139, "consumer filter in FilterSubjects cannot be empty";
    SOURCE_DUPLICATE_DETECTED = 400, 10140, "duplicate source configuration detected";
    SOURCE_INVALID_STREAM_NAME = 400, 10141, "sourced stream name is invalid";
    MIRROR_INVALID_STREAM_NAME = 400, 10142, "mirrored stream name is invalid";
    MIRROR_WITH_FIRST_SEQUENCE = 400, 10143, "stream mirrors can not have first sequence configured";
    SOURCE_MULTIPLE_FILTERS_NOT_ALLOWED = 400, 10144, "source with multiple subject transforms cannot also have a single subject filter";
    SOURCE_OVERLAPPING_SUBJECT_FILTERS = 400, 10147, "source filters can not overlap";
    CONSUMER_ALREADY_EXISTS = 400, 10148, "consumer already exists";
    CONSUMER_DOES_NOT_EXIST = 400, 10149, "consumer does not exist";
    MIRROR_MULTIPLE_FILTERS_NOT_ALLOWED = 400, 10150, "mirror with multiple subject transforms cannot also have a single subject filter";
    MIRROR_OVERLAPPING_SUBJECT_FILTERS = 400, 10152, "mirror subject filters can not overlap";
    STREAM_DUPLICATE_MESSAGE_CONFLICT = 409, 10158, "duplicate message id is in process";
    CONSUMER_PRIORITY_POLICY_WITHOUT_GROUP = 400, 10159, "Setting PriorityPolicy requires at least one PriorityGroup to be set";
    CONSUMER_INVALID_PRIORITY_GROUP = 400, 10160, "Provided priority group does not exist for this consumer";
    CONSUMER_EMPTY_GROUP_NAME = 400, 10161, "Group name cannot be an empty string";
    CONSUMER_INVALID_GROUP_NAME = 400, 10162, "Valid priority group name must match A-Z, a-z, 0-9, -_/=)+ and may not exceed 16 characters";
    STREAM_EXPECTED_LAST_SEQUENCE_PER_SUBJECT_NOT_READY = 503, 10163, "expected last sequence per subject temporarily unavailable";
    STREAM_WRONG_LAST_SEQUENCE_CONSTANT = 400, 10164, "wrong last sequence";
    MESSAGE_TTL_INVALID = 400, 10165, "invalid per-message TTL";
    MESSAGE_TTL_DISABLED = 400, 10166, "per-message TTL is disabled";
    STREAM_TOO_MANY_REQUESTS = 429, 10167, "too many requests";
    MESSAGE_INCREMENT_DISABLED = 400, 10168, "message counters is disabled";
    MESSAGE_INCREMENT_MISSING = 400, 10169, "message counter increment is missing";
    MESSAGE_INCREMENT_PAYLOAD = 400, 10170, "message counter has payload";
    MESSAGE_INCREMENT_INVALID = 400, 10171, "message counter increment is invalid";
    MESSAGE_COUNTER_BROKEN = 400, 10172, "message counter is broken";
    MIRROR_WITH_COUNTERS = 400, 10173, "stream mirrors can not also calculate counters";
    ATOMIC_PUBLISH_DISABLED = 400, 10174, "atomic publish is disabled";
    ATOMIC_PUBLISH_MISSING_SEQUENCE = 400, 10175, "atomic publish sequence is missing";
    ATOMIC_PUBLISH_INCOMPLETE_BATCH = 400, 10176, "atomic publish batch is incomplete";
    CONSUMER_PUSH_WITH_PRIORITY_GROUP = 400, 10178, "priority groups can not be used with push consumers";
    ATOMIC_PUBLISH_INVALID_BATCH_ID = 400, 10179, "atomic publish batch ID is invalid";
    STREAM_MIN_LAST_SEQUENCE = 412, 10180, "min last sequence";
    CONSUMER_ACK_POLICY_INVALID = 400, 10181, "consumer ack policy invalid";
    CONSUMER_REPLAY_POLICY_INVALID = 400, 10182, "consumer replay policy invalid";
    CONSUMER_ACK_WAIT_NEGATIVE = 400, 10183, "consumer ack wait needs to be positive";
    CONSUMER_BACK_OFF_NEGATIVE = 400, 10184, "consumer backoff needs to be positive";
    REQUIRED_API_LEVEL = 412, 10185, "JetStream minimum api level required";
    MIRROR_WITH_MESSAGE_SCHEDULES = 400, 10186, "stream mirrors can not also schedule messages";
    SOURCE_WITH_MESSAGE_SCHEDULES = 400, 10187, "stream source can not also schedule messages";
    MESSAGE_SCHEDULES_DISABLED = 400, 10188, "message schedules is disabled";
    MESSAGE_SCHEDULES_PATTERN_INVALID = 400, 10189, "message schedules pattern is invalid";
    MESSAGE_SCHEDULES_TARGET_INVALID = 400, 10190, "message schedules target is invalid";
    MESSAGE_SCHEDULES_TTL_INVALID = 400, 10191, "message schedules invalid per-message TTL";
    MESSAGE_SCHEDULES_ROLLUP_INVALID = 400, 10192, "message schedules invalid rollup";
    STREAM_EXPECTED_LAST_SEQUENCE_PER_SUBJECT_INVALID = 400, 10193, "missing sequence for expected last sequence per subject";
    CONSUMER_PRIORITY_GROUP_WITH_POLICY_NONE = 400, 10196, "consumer can not have priority groups when policy is none";
    CONSUMER_PINNED_TTL_WITHOUT_PRIORITY_POLICY_NONE = 400, 10197, "PinnedTTL cannot be set when PriorityPolicy is none";
    MIRROR_WITH_ATOMIC_PUBLISH = 400, 10198, "stream mirrors can not also use atomic publishing";
    ATOMIC_PUBLISH_INVALID_BATCH_COMMIT = 400, 10200, "atomic publish batch commit is invalid";
    ATOMIC_PUBLISH_CONTAINS_DUPLICATE_MESSAGE = 400, 10201, "atomic publish batch contains duplicate message id";
    CLUSTER_SERVER_MEMBER_CHANGE_INFLIGHT = 400, 10202, "cluster member change is in progress";
    MESSAGE_SCHEDULES_SOURCE_INVALID = 400, 10203, "message schedules source is invalid";
    BATCH_PUBLISH_DISABLED = 400, 10205, "batch publish is disabled";
    BATCH_PUBLISH_INVALID_PATTERN = 400, 10206, "batch publish pattern is invalid";
    BATCH_PUBLISH_INVALID_BATCH_ID = 400, 10207, "batch publish ID is invalid";
    BATCH_PUBLISH_UNKNOWN_BATCH_ID = 400, 10208, "batch publish ID unknown";
    MIRROR_WITH_BATCH_PUBLISH = 400, 10209, "stream mirrors can not also use batch publishing";
    ATOMIC_PUBLISH_TOO_MANY_INFLIGHT = 429, 10210, "atomic publish too many inflight";
    BATCH_PUBLISH_TOO_MANY_INFLIGHT = 429, 10211, "batch publish too many inflight";
    MESSAGE_SCHEDULES_SCHEDULER_INVALID = 400, 10212, "message schedules invalid scheduler";
    MIRROR_DURABLE_CONSUMER_CONFIG_INVALID = 400, 10213, "stream mirror consumer config is invalid";
    MIRROR_CONSUMER_REQUIRES_ACK_FLOW_CONTROL = 400, 10214, "stream mirror consumer requires flow control ack policy";
    SOURCE_DURABLE_CONSUMER_CONFIG_INVALID = 400, 10215, "stream source consumer config is invalid";
    SOURCE_DURABLE_CONSUMER_DUPLICATE_DETECTED = 400, 10216, "duplicate stream source consumer detected";
    SOURCE_CONSUMER_REQUIRES_ACK_FLOW_CONTROL = 400, 10217, "stream source consumer requires flow control ack policy";
    CONSUMER_ACK_FLOW_CONTROL_REQUIRES_PUSH = 400, 10218, "flow control ack policy requires a push based consumer";
    CONSUMER_ACK_FLOW_CONTROL_REQUIRES_FLOW_CONTROL = 400, 10219, "flow control ack policy requires flow control";
    CONSUMER_ACK_FLOW_CONTROL_REQUIRES_MAX_ACK_PENDING = 400, 10220, "flow control ack policy requires max ack pending";
    CONSUMER_ACK_FLOW_CONTROL_REQUIRES_NO_ACK_WAIT = 400, 10221, "flow control ack policy requires unset ack wait";
    CONSUMER_ACK_FLOW_CONTROL_REQUIRES_NO_MAX_DELIVER = 400, 10222, "flow control ack policy requires unset max deliver";
    MESSAGE_SCHEDULES_TIME_ZONE_INVALID = 400, 10223, "message schedules time zone is invalid";
    STREAM_RECONFIGURE_IN_PROGRESS = 400, 10226, "stream reconfiguration already in progress";
    MESSAGE_SOURCE_HEADER_NOT_ALLOWED = 400, 10227, "message stream source header is not allowed";
}

filled! {
    cluster_no_peers(error) = 400, 10005, "{error}";
    consumer_create(error) = 500, 10012, "{error}";
    stream_external_api_overlap(prefix, subject) = 400, 10021, "stream external api prefix {prefix} must not overlap with {subject}";
    stream_external_delivery_prefix_overlaps(prefix, subject) = 400, 10022, "stream external delivery prefix {prefix} overlaps with stream subject {subject}";
    stream_invalid_external_delivery_subject(prefix) = 400, 10024, "stream external delivery prefix {prefix} must not contain wildcards";
    invalid_json(error) = 400, 10025, "invalid JSON: {error}";
    mirror_consumer_setup_failed(error) = 500, 10029, "{error}";
    raft_general(error) = 500, 10041, "{error}";
    restore_subscribe_failed(subject, error) = 500, 10042, "JetStream unable to subscribe to restore snapshot {subject}: {error}";
    sequence_not_found(sequence) = 400, 10043, "sequence {sequence} not found";
    source_consumer_setup_failed(error) = 500, 10045, "{error}";
    stream_assignment(error) = 500, 10048, "{error}";
    stream_create(error) = 500, 10049, "{error}";
    stream_delete(error) = 500, 10050, "{error}";
    stream_general_error(error) = 500, 10051, "{error}";
    stream_invalid_config(error) = 500, 10052, "{error}";
    stream_limits(error) = 500, 10053, "{error}";
    stream_message_delete_failed(error) = 500, 10057, "{error}";
    stream_restore(error) = 500, 10062, "restore failed: {error}";
    stream_snapshot(error) = 500, 10064, "snapshot failed: {error}";
    stream_template_create(error) = 500, 10066, "{error}";
    stream_template_delete(error) = 500, 10067, "{error}";
    stream_update(error) = 500, 10069, "{error}";
    stream_wrong_last_message_id(id) = 400, 10070, "wrong last msg ID: {id}";
    stream_wrong_last_sequence(sequence) = 400, 10071, "wrong last sequence: {sequence}";
    stream_store_failed(error) = 503, 10077, "{error}";
    consumer_invalid_policy(error) = 400, 10094, "{error}";
    consumer_invalid_sampling(error) = 400, 10095, "failed to parse consumer sampling configuration: {error}";
    consumer_name_too_long(max) = 400, 10102, "consumer name is too long, maximum allowed is {max}";
    consumer_store_failed(error) = 500, 10104, "error creating store for consumer: {error}";
    consumer_description_too_long(max) = 400, 10107, "consumer description is too long, maximum allowed is {max}";
    stream_purge_failed(error) = 500, 10110, "{error}";
    stream_rollup_failed(error) = 500, 10111, "{error}";
    consumer_max_pending_ack_excess(limit) = 400, 10121, "consumer max ack pending exceeds system limit of {limit}";
    consumer_max_request_batch_exceeded(limit) = 400, 10125, "consumer max request batch exceeds server limit of {limit}";
    consumer_metadata_length(limit) = 400, 10135, "consumer metadata exceeds maximum size of {limit}";
    source_invalid_subject_filter(error) = 400, 10145, "source transform source: {error}";
    source_invalid_transform_destination(error) = 400, 10146, "source transform: {error}";
    mirror_invalid_subject_filter(error) = 400, 10151, "mirror transform source: {error}";
    consumer_inactive_threshold_excess(limit) = 400, 10153, "consumer inactive threshold exceeds system limit of {limit}";
    mirror_invalid_transform_destination(error) = 400, 10154, "mirror transform: {error}";
    stream_transform_invalid_source(error) = 400, 10155, "stream transform source: {error}";
    stream_transform_invalid_destination(error) = 400, 10156, "stream transform: {error}";
    pedantic(error) = 400, 10157, "pedantic mode: {error}";
    atomic_publish_unsupported_header_batch(header) = 400, 10177, "atomic publish unsupported header used: {header}";
    stream_offline_reason(error) = 500, 10194, "stream is offline: {error}";
    consumer_offline_reason(error) = 500, 10195, "consumer is offline: {error}";
    atomic_publish_too_large_batch(size) = 400, 10199, "atomic publish batch is too large: {size}";
    consumer_invalid_reset(error) = 400, 10204, "invalid reset: {error}";
    cluster_rescue(error) = 400, 10224, "JetStream system rescue not applied: {error}";
    consumer_stream_identity_mismatch(identity) = 400, 10225, "consumer's stream identity does not match: {identity}";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_error_of_nats_server_is_here_once() {
        let fixed = ApiError::FIXED.iter().map(|error| (error.code, error.err_code));
        let all: Vec<_> = fixed.chain(ApiError::FILLED.iter().copied()).collect();
        assert_eq!(all.len(), 226);
        let numbers: BTreeSet<_> = all.iter().map(|(_, err_code)| *err_code).collect();
        assert_eq!(numbers.len(), all.len());
        // nats-server skips 10001, which it never assigned.
        assert_eq!((numbers.first(), numbers.last()), (Some(&10_002), Some(&10_227)));
        assert!(all.iter().all(|(code, _)| (400..=503).contains(code)));
    }

    #[test]
    fn errors_are_written_as_nats_server_writes_them() {
        for (error, json) in [
            (ApiError::STREAM_NOT_FOUND, r#"{"code":404,"err_code":10059,"description":"stream not found"}"#),
            (
                ApiError::stream_wrong_last_sequence(7),
                r#"{"code":400,"err_code":10071,"description":"wrong last sequence: 7"}"#,
            ),
            (
                ApiError::stream_external_api_overlap("a", "b"),
                r#"{"code":400,"err_code":10021,"description":"stream external api prefix a must not overlap with b"}"#,
            ),
            (
                ApiError::stream_invalid_config("invalid subject"),
                r#"{"code":500,"err_code":10052,"description":"invalid subject"}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&error).unwrap(), json);
            assert_eq!(serde_json::from_str::<ApiError>(json).unwrap(), error);
        }
        assert_eq!(ApiError::STREAM_NOT_FOUND.to_string(), "stream not found (10059)");
    }
}
