//! Limits of a STOMP connection: each with its unit, the reason, and what happens when it is reached.

use std::time::Duration;

/// Bytes of a frame before login. A CONNECT with a token fits in 16 KiB, and an unknown peer can
/// claim no more memory than this. Longer: ERROR and close.
pub const LOGIN_FRAME_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a message body. A larger one would delay everything else on the connection. A greater
/// `content-length` is refused before the body is read: ERROR and close.
pub const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Header lines of a frame. Bounds the work of scanning them. More: ERROR and close.
pub const HEADER_COUNT_MAX: usize = 128;

/// Bytes of all header lines of a frame, line ends included. Every delivery repeats them. More:
/// ERROR and close.
pub const HEADER_BYTES_MAX: usize = 64 * 1024;

/// Bytes of one decoded part of a destination: a queue name, an exchange name or a subject. Equals
/// the core's limit on subjects. Longer: ERROR and close.
pub const SUBJECT_BYTES_MAX: usize = 1024;

/// Open transactions of a connection. Each holds its messages until COMMIT. More: ERROR and close.
pub const TRANSACTION_COUNT_MAX: usize = 16;

/// SEND, ACK and NACK frames within one transaction. COMMIT applies them while their queues are
/// locked. More: ERROR and close.
pub const TRANSACTION_ACTION_COUNT_MAX: usize = 1024;

/// Shortest time between heart-beats. Shorter ones cost wake-ups and detect failures no sooner. A
/// shorter offer is raised to this. The broker offers it too, which leaves the choice to the
/// client.
pub const HEART_BEAT_MIN: Duration = Duration::from_secs(1);

/// Subscriptions of a connection. A client that needs more should use patterns. More: ERROR.
pub const SUBSCRIPTION_COUNT_MAX: usize = 65_536;

/// Deliveries that a subscription without `prefetch-count` may leave unsettled. Equals the largest
/// `prefetch-count`, which a count of 0 means too.
pub const PREFETCH_DEFAULT: u32 = PREFETCH_MAX;

/// The largest `prefetch-count`: AMQP's has 16 bits. More: ERROR.
pub const PREFETCH_MAX: u32 = 65_535;

/// Bytes of frames that one connection may park during a memory alarm, while its ACKs are still
/// read. More: reading pauses until the alarm ends.
pub const PARKED_BYTES_MAX: usize = 1024 * 1024;

/// From accepting a connection to its login, whatever arrives in between. Longer: it is closed.
pub const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Queues that a connection remembers as declared by the arguments of its SENDs. More: the list is
/// cleared.
pub const DECLARED_QUEUES_MAX: usize = 64;

/// Spellings of `/temp-queue/` addresses that a connection caches. More: the cache is cleared.
pub const INBOX_LINES_MAX: usize = 64;

/// The configurable limits.
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
