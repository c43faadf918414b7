//! Limits of an AMQP 1.0 connection: each with its unit, the reason, and what happens when it is reached.

use std::time::Duration;

/// Bytes of a frame that either end has to take, so that no smaller limit can be agreed (AMQP 1.0, 2.3.1).
pub const FRAME_BYTES_MIN: u32 = 512;

/// Levels of lists, maps, arrays and described values in each other, the outermost included. None that people write
/// has more. Deeper: `amqp:decode-error`, before the stack notices.
pub const NESTING_MAX: usize = 32;

/// Elements without bytes, such as nulls, that all arrays within a value may have: a few bytes declare any number of
/// them. More: `amqp:decode-error`.
pub const EMPTY_ELEMENTS_MAX: u32 = 1024;

/// Bytes of a frame that the broker takes. More: `amqp:connection:framing-error`.
pub const FRAME_BYTES_MAX: u32 = 131_072;

/// Bytes of a frame of a client that has not opened its connection. A token fits; an unknown peer holds no more memory
/// than this. More: `amqp:connection:framing-error`.
pub const LOGIN_FRAME_BYTES_MAX: usize = 16 * 1024;

/// Highest channel of a connection, and so sessions but one. It is the limit of AMQP 0-9-1's channels. Higher:
/// `amqp:connection:framing-error`.
pub const CHANNEL_MAX: u16 = 2045;

/// Links of a session that a client may have attached at a time, numbered from 0. More: `amqp:connection:framing-error`.
pub const HANDLES_MAX: u32 = 1024;

/// Silence after which the broker closes, as clients are told; half of what it waits for.
pub const IDLE_TIME_OUT: Duration = Duration::from_secs(60);

/// From accepting a connection to its `open`, whatever comes in between. Longer: it is closed.
pub const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of a message, all its sections together. More: the link is detached with `amqp:link:message-size-exceeded`
/// before the rest has come.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of the sections in front of a message's body: places in them have 16 bits. More: the message is rejected.
pub const SECTIONS_BYTES_MAX: usize = u16::MAX as usize;

/// Application properties of a message. More: the message is rejected.
pub const APPLICATION_PROPERTIES_MAX: usize = 1024;

/// Bytes of the annotations that receivers add to one message by `modified`. More: `amqp:resource-limit-exceeded` ends
/// the receiver's session.
pub const ADDED_ANNOTATIONS_BYTES_MAX: usize = 4096;

/// Bytes of messages of which parts are still to come, on all links of a connection together. Clients send one message
/// after the other. More: `amqp:resource-limit-exceeded` ends the connection.
pub const UNFINISHED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of frames that wait on one connection for the end of an alarm or for a queue, while others are still read.
/// More: nothing is read from it until then.
pub const PARKED_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of the tag of a delivery, and of the id of a transaction (AMQP 1.0, 2.8.7 and 4.5.4). Both are kept while
/// parts of a message are still to come. More: the link is detached with `amqp:invalid-field`.
pub const TAG_BYTES_MAX: usize = 32;

/// Deliveries that a producer may send before it is granted more. More: the link is detached with
/// `amqp:link:transfer-limit-exceeded`.
pub const LINK_CREDIT: u32 = 1000;

/// Transfers of a session that a client may send before it is told that others were taken. More:
/// `amqp:session:window-violation` ends the session.
pub const SESSION_WINDOW: u32 = 4096;

/// Transactions of a connection that are not discharged. More: the declaration is rejected with
/// `amqp:resource-limit-exceeded`.
pub const TRANSACTIONS_MAX: usize = 64;

/// Messages and settlements of a transaction, which is done as one. More: `amqp:resource-limit-exceeded`.
pub const TRANSACTION_STEPS_MAX: usize = 10_000;

/// Bytes of the annotations that settlements of one transaction add to messages. More: `amqp:resource-limit-exceeded`.
pub const TRANSACTION_ANNOTATIONS_BYTES_MAX: usize = 1 << 20;

/// From the first step of a transaction to its discharge. Longer: it is rolled back, and its discharge is rejected with
/// `amqp:transaction:timeout`.
pub const TRANSACTION_TIME_MAX: Duration = Duration::from_secs(10 * 60);

/// Bytes of an address, of the name of a link or of a container. They are parts of queues' names. More: the link is
/// refused with `amqp:invalid-field`.
pub const NAME_BYTES_MAX: usize = 1024;

/// Bytes of a client's `open` properties as JSON that are kept to be shown. More: none are.
pub(crate) const SHOWN_PROPERTIES_BYTES_MAX: usize = 4 * 1024;
