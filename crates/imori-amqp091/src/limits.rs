//! Limits of an AMQP connection: each with its unit, the reason, and what happens when it is reached.

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
