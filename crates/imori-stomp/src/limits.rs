//! Limits of a STOMP connection: each with its unit, the reason, and what happens when it is reached.

use std::time::Duration;

/// Bytes of a frame before login. A CONNECT with a token fits in 16 KiB; an unknown peer holds
/// no more memory than this. Longer: ERROR and close.
pub const LOGIN_FRAME_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a message body. Larger ones hold up all others of the connection. A declared length
/// over it is refused before a byte of the body is awaited: ERROR and close.
pub const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Header lines of a frame. It bounds the work of one pass over them. More: ERROR and close.
pub const HEADER_COUNT_MAX: usize = 128;

/// Bytes of all header lines of a frame with their line ends. Every copy of a message carries
/// them. More: ERROR and close.
pub const HEADER_BYTES_MAX: usize = 64 * 1024;

/// Bytes of one part of a destination, decoded: a queue's or exchange's name, a subject. It is
/// what the core takes for a subject. Longer: ERROR and close.
pub const SUBJECT_BYTES_MAX: usize = 1024;

/// Open transactions of a connection. Each holds its messages until COMMIT. More: ERROR and close.
pub const TRANSACTION_COUNT_MAX: usize = 16;

/// SEND, ACK and NACK frames within one transaction, which are applied while their queues are
/// locked. More: ERROR and close.
pub const TRANSACTION_ACTION_COUNT_MAX: usize = 1024;

/// Shortest time between heart-beats. Shorter ones cost wake-ups and find nothing sooner.
/// Shorter: this one is agreed on. It is what the broker proposes, so that the client decides.
pub const HEART_BEAT_MIN: Duration = Duration::from_secs(1);

/// Subscriptions of a connection. One frame a delivery carries the id; a client with more needs
/// patterns. More: ERROR.
pub const SUBSCRIPTION_COUNT_MAX: usize = 65_536;

/// Deliveries that a subscription may leave unsettled where it does not say. It is the largest
/// that `prefetch-count` can ask for, which 0 means too.
pub const PREFETCH_DEFAULT: u32 = PREFETCH_MAX;

/// The largest `prefetch-count`: AMQP's has 16 bits. More: ERROR.
pub const PREFETCH_MAX: u32 = 65_535;

/// Bytes of frames that wait on one connection for the end of a memory alarm, while its ACKs
/// are still read. More: nothing is read from it until then.
pub const PARKED_BYTES_MAX: usize = 1024 * 1024;

/// From accepting a connection to its login, whatever comes in between. Longer: it is closed.
pub const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Queues a connection remembers as declared with the arguments of its SENDs. More: it begins anew.
pub const DECLARED_QUEUES_MAX: usize = 64;

/// Spellings of `/temp-queue/` addresses a connection remembers. More: it begins anew.
pub const INBOX_LINES_MAX: usize = 64;

/// The limits that a configuration may set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a frame before login.
    pub login_frame_bytes_max: usize,
    /// Bytes of a message body.
    pub body_bytes_max: usize,
    /// Header lines of a frame.
    pub header_count_max: usize,
    /// Bytes of all header lines of a frame.
    pub header_bytes_max: usize,
    /// Open transactions of a connection.
    pub transaction_count_max: usize,
    /// SEND, ACK and NACK frames within one transaction.
    pub transaction_action_count_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            login_frame_bytes_max: LOGIN_FRAME_BYTES_MAX,
            body_bytes_max: BODY_BYTES_MAX,
            header_count_max: HEADER_COUNT_MAX,
            header_bytes_max: HEADER_BYTES_MAX,
            transaction_count_max: TRANSACTION_COUNT_MAX,
            transaction_action_count_max: TRANSACTION_ACTION_COUNT_MAX,
        }
    }
}
