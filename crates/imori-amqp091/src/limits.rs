//! Limits of an AMQP connection: each with its unit, the reason, and what happens when it is reached.

use std::time::Duration;

/// Bytes of a frame, its head and its end included, unless the client asks for less. It is RabbitMQ's, and what most
/// clients expect. Larger: connection exception 501.
pub const FRAME_BYTES_MAX: u32 = 131_072;

/// Bytes of a frame that either end has to take, so that no smaller limit can be agreed (AMQP 0-9-1, 4.2.3).
pub const FRAME_BYTES_MIN: u32 = 4096;

/// Bytes by which a frame may be larger than agreed: RabbitMQ forgives clients that forget to count head and end.
pub const FRAME_BYTES_FORGIVEN: u32 = 8;

/// Levels of tables and arrays in each other, the outermost included. None that people write has more. Deeper:
/// connection exception 501, before the stack notices.
pub const NESTING_MAX: usize = 32;

/// Bytes of a frame of a client that has not logged in. Its properties and a token fit; an unknown peer holds no more
/// memory than this. Larger: connection exception 501.
pub const LOGIN_FRAME_BYTES_MAX: usize = 16 * 1024;

/// Channels of a connection, which are numbered from 1. It is RabbitMQ's. More: connection exception 530.
pub const CHANNEL_MAX: u16 = 2047;

/// Time between heartbeats that the broker proposes, as RabbitMQ does; the client decides. Twice that in silence: the
/// connection is closed.
pub const HEARTBEAT: Duration = Duration::from_secs(60);

/// From accepting a connection to its `connection.open`, whatever comes in between. Longer: it is closed.
pub const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of a body, as in RabbitMQ. A longer one is refused before it is awaited: channel exception 406.
pub const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Publishes and settlements of a transaction, which is done as one. More: channel exception 406.
pub const TRANSACTION_STEPS_MAX: usize = 10_000;

/// Bytes of the properties of a message: places in them have 16 bits. More: channel exception 406.
pub const PROPERTIES_BYTES_MAX: usize = u16::MAX as usize;

/// Headers of a message. More: channel exception 406.
pub const HEADERS_MAX: usize = 128;

/// Further routing keys of a message, in its headers `CC` and `BCC`: each is looked up within one turn. More: channel
/// exception 406.
pub const COPIES_MAX: usize = 1024;

/// Bytes of bodies of which parts are still to come, on all channels of a connection together. Clients send one message
/// after the other, so that there is one unfinished. More: connection exception 506.
pub const UNFINISHED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of frames that wait on one connection for the end of an alarm or for a queue, while others are still read.
/// More: nothing is read from it until then.
pub const PARKED_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of what a client tells of itself, as JSON, that are kept to be shown. More: only its connection's name is.
pub(crate) const SHOWN_PROPERTIES_BYTES_MAX: usize = 4 * 1024;
