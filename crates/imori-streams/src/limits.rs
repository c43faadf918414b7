//! Limits of declarations: each with its unit, the reason, and what happens when it is reached.

/// Bytes of the JSON of a stream's or a consumer's configuration, which records and definitions keep
/// whole. nats-server allows 128 KiB of metadata alone. Longer: the request is refused.
pub const CONFIGURATION_BYTES_MAX: usize = 32 * 1024;

/// Bytes of the body of a JetStream API request. A configuration with its metadata and description
/// at their limits fits, and parsed JSON takes up to 32 times its text. nats-server has only the
/// limit of a payload. Longer: error 10025.
pub const API_BODY_BYTES_MAX: usize = 512 * 1024;

/// Arrays and objects of a JetStream API request inside each other, as many as the parser's stack
/// is sure to hold. The deepest request has four. More: error 10025.
pub const JSON_DEPTH_MAX: usize = 127;

/// Bytes of the name of a stream or a consumer, as it names files. Same as in nats-server. Longer:
/// error 10052 or 10102.
pub const NAME_BYTES_MAX: usize = 255;

/// Bytes of the description of a stream or a consumer. Same as in nats-server. Longer: error 10052
/// or 10107.
pub const DESCRIPTION_BYTES_MAX: usize = 4 * 1024;

/// Bytes of all names and values in the metadata of a stream or a consumer. Same as in nats-server.
/// Longer: error 10052 or 10135.
pub const METADATA_BYTES_MAX: usize = 128 * 1024;

/// Replicas of a stream. Same as in nats-server. More: error 10052.
pub const REPLICA_COUNT_MAX: i64 = 5;

/// Subjects of a stream, or filters of a consumer, as each is compared with each. nats-server has
/// no limit. More: error 10052.
pub const FILTER_COUNT_MAX: usize = 1024;

/// Sources of a stream, as each reads a stream of its own. nats-server has no limit. More: error
/// 10052.
pub const SOURCE_COUNT_MAX: usize = 1024;

/// Subject transforms of a mirror or of a source, as each is compared with each. nats-server has no
/// limit. More: error 10052.
pub const SOURCE_TRANSFORM_COUNT_MAX: usize = 256;

/// Pull requests that wait at a consumer, unless it says otherwise. Same as in nats-server. More:
/// status 409.
pub const WAITING_COUNT_DEFAULT: i64 = 512;

/// Deliveries of a consumer without an ack, unless it says otherwise. Same as in nats-server. At
/// the limit, deliveries pause.
pub const ACK_PENDING_COUNT_DEFAULT: i64 = 1000;

/// Bytes of the name of a priority group. Same as in nats-server. Longer: error 10162.
pub const GROUP_BYTES_MAX: usize = 16;
