//! Limits of an AMQP connection: each with its unit, the reason, and what happens when it is reached.

use std::time::Duration;

/// Bytes of a frame with its head and end, unless the client asks for less. Same as in RabbitMQ,
/// and what most clients expect. Larger: connection exception 501.
pub const FRAME_BYTES_MAX: u32 = 131_072;

/// Smallest frame size that an end may set (AMQP 0-9-1, 4.2.3).
pub const FRAME_BYTES_MIN: u32 = 4096;

/// Tolerance for frames larger than agreed, in bytes: like RabbitMQ, for clients that forget to
/// count head and end.
pub const FRAME_BYTES_FORGIVEN: u32 = 8;

/// Nesting depth of tables and arrays. Real messages need less. Deeper: connection exception 501;
/// the check does not recurse.
pub const NESTING_MAX: usize = 32;

/// Bytes of a frame before login. The client's properties and a token fit, and an unknown peer can
/// claim no more memory than this. Larger: connection exception 501.
pub const LOGIN_FRAME_BYTES_MAX: usize = 16 * 1024;

/// Channels of a connection, numbered from 1. Same as in RabbitMQ. More: connection exception 530.
pub const CHANNEL_MAX: u16 = 2047;

/// Proposed time between heartbeats, the same as in RabbitMQ; the client decides. Twice this
/// silence: the connection is closed.
pub const HEARTBEAT: Duration = Duration::from_secs(60);

/// From accepting a connection to its `connection.open`, whatever arrives in between. Longer: it is
/// closed.
pub const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of a body, the same as in RabbitMQ. A longer one is refused before it arrives: channel
/// exception 406.
pub const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Publishes and settles of a transaction, which are applied at once. More: channel exception 406.
pub const TRANSACTION_STEPS_MAX: usize = 10_000;

/// Bytes of a message's properties, as positions in them have 16 bits. More: channel exception 406.
pub const PROPERTIES_BYTES_MAX: usize = u16::MAX as usize;

/// Headers of a message. More: channel exception 406.
pub const HEADERS_MAX: usize = 128;

/// Further routing keys of a message in `CC` and `BCC`, all of which are routed in one turn. More:
/// channel exception 406.
pub const COPIES_MAX: usize = 1024;

/// Bytes of partly received bodies on all channels of a connection. Clients usually finish a
/// message before the next. More: connection exception 506.
pub const UNFINISHED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of frames that one connection may park for an alarm or a queue, while others are still
/// read. More: reading pauses until then.
pub const PARKED_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of a client's properties as JSON, kept for operators. More: only the connection name is
/// kept.
pub(crate) const SHOWN_PROPERTIES_BYTES_MAX: usize = 4 * 1024;
