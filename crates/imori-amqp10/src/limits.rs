//! Limits of an AMQP 1.0 connection: each with its unit, the reason, and what happens when it is reached.

use std::time::Duration;

/// Smallest frame size that an end may set (AMQP 1.0, 2.3.1).
pub const FRAME_BYTES_MIN: u32 = 512;

/// Nesting depth of lists, maps, arrays and described values. Real messages need less. Deeper:
/// `amqp:decode-error`; the check does not recurse.
pub const NESTING_MAX: usize = 32;

/// Elements without bytes, such as nulls, in all arrays of a value together. A few bytes could
/// declare any number of them. More: `amqp:decode-error`.
pub const EMPTY_ELEMENTS_MAX: u32 = 1024;

/// Bytes of a frame from a client. More: `amqp:connection:framing-error`.
pub const FRAME_BYTES_MAX: u32 = 131_072;

/// Bytes of a frame before the client has opened its connection. A token fits, and an unknown peer
/// can claim no more memory than this. More: `amqp:connection:framing-error`.
pub const LOGIN_FRAME_BYTES_MAX: usize = 16 * 1024;

/// Highest channel of a connection, and so its number of sessions minus one. Same as for AMQP
/// 0-9-1. Higher: `amqp:connection:framing-error`.
pub const CHANNEL_MAX: u16 = 2045;

/// Attached links of a session; handles are numbered from 0. More: `amqp:connection:framing-error`.
pub const HANDLES_MAX: u32 = 1024;

/// The idle time-out announced to clients. The broker closes after twice this silence.
pub const IDLE_TIME_OUT: Duration = Duration::from_secs(60);

/// From accepting a connection to its `open`, whatever arrives in between. Longer: it is closed.
pub const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of a message with all its sections. More: the link is detached with
/// `amqp:link:message-size-exceeded` before the rest arrives.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of the sections before a message's body, as positions in them have 16 bits. More: the
/// message is rejected.
pub const SECTIONS_BYTES_MAX: usize = u16::MAX as usize;

/// Application properties of a message. More: the message is rejected.
pub const APPLICATION_PROPERTIES_MAX: usize = 1024;

/// Bytes of the annotations that receivers add to one message by `modified`. More:
/// `amqp:resource-limit-exceeded` ends the receiver's session.
pub const ADDED_ANNOTATIONS_BYTES_MAX: usize = 4096;

/// Bytes of partly received messages on all links of a connection. Clients usually finish a message
/// before the next. More: `amqp:resource-limit-exceeded` ends the connection.
pub const UNFINISHED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of frames that one connection may park for an alarm or a queue, while others are still
/// read. More: reading pauses until then.
pub const PARKED_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of a delivery tag or a transaction id (AMQP 1.0, 2.8.7 and 4.5.4). Both are kept until the
/// last part of a message arrives. More: the link is detached with `amqp:invalid-field`.
pub const TAG_BYTES_MAX: usize = 32;

/// Credit of a producer: messages that it may send before the next flow. More: the link is detached
/// with `amqp:link:transfer-limit-exceeded`.
pub const LINK_CREDIT: u32 = 1000;

/// Incoming window of a session: transfers that a client may send before the next flow. More:
/// `amqp:session:window-violation` ends the session.
pub const SESSION_WINDOW: u32 = 4096;

/// Open transactions of a connection. More: the declaration is rejected with
/// `amqp:resource-limit-exceeded`.
pub const TRANSACTIONS_MAX: usize = 64;

/// Messages and settles of a transaction, which are applied at once. More:
/// `amqp:resource-limit-exceeded`.
pub const TRANSACTION_STEPS_MAX: usize = 10_000;

/// Bytes of annotations that the settles of one transaction add to messages. More:
/// `amqp:resource-limit-exceeded`.
pub const TRANSACTION_ANNOTATIONS_BYTES_MAX: usize = 1 << 20;

/// From the first step of a transaction to its discharge. Longer: it is rolled back, and its
/// discharge is rejected with `amqp:transaction:timeout`.
pub const TRANSACTION_TIME_MAX: Duration = Duration::from_secs(10 * 60);

/// Bytes of an address, a link name or a container name, which become parts of queue names. More:
/// the link is refused with `amqp:invalid-field`.
pub const NAME_BYTES_MAX: usize = 1024;

/// Bytes of a client's `open` properties as JSON, kept for operators. More: none are kept.
pub(crate) const SHOWN_PROPERTIES_BYTES_MAX: usize = 4 * 1024;
