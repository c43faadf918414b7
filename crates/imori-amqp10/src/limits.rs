//! Limits of an AMQP 1.0 connection: each with its unit, the reason, and what happens when it is reached.

/// Bytes of a frame that either end has to take, so that no smaller limit can be agreed (AMQP 1.0, 2.3.1).
pub const FRAME_BYTES_MIN: u32 = 512;

/// Levels of lists, maps, arrays and described values in each other, the outermost included. None that people write
/// has more. Deeper: `amqp:decode-error`, before the stack notices.
pub const NESTING_MAX: usize = 32;

/// Elements without bytes, such as nulls, that an array may have: a few bytes declare any number of them. More:
/// `amqp:decode-error`.
pub const EMPTY_ELEMENTS_MAX: u32 = 1024;
