//! Limits of the core: each with its unit, the reason, and what happens when it is reached.

/// Bytes of a subject or routing key. AMQP's short strings end at 255; NATS and STOMP users
/// nest deeper. Longer: the publish or bind is refused.
pub const SUBJECT_BYTES_MAX: usize = 1024;

/// Tokens of a subject or a pattern. It bounds the depth of the trie and the work of a match.
/// More: the publish or bind is refused.
pub const SUBJECT_TOKENS_MAX: usize = 128;
