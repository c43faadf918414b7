//! Limits of a NATS connection: each with its unit, the reason, and what happens when it is reached.

use std::time::Duration;

/// Bytes of the arguments in a control line. Subject, reply and CONNECT options fit, and an unknown
/// peer can claim no more memory than this. Same as in nats-server. Longer: -ERR and close.
pub const CONTROL_LINE_BYTES_MAX: usize = 4096;

/// Bytes of a control line that a client accepts from a server, as an INFO may list the addresses
/// of a cluster. Longer: the decoder fails.
pub const SERVER_LINE_BYTES_MAX: usize = 64 * 1024;

/// Bytes of headers and payload of a message, announced in INFO. A larger one would delay
/// everything else on the connection. Same as in nats-server. A greater declared size is refused
/// before the payload is read: -ERR and close.
pub const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;

/// Digits of a size, the same as in nats-server. More: -ERR and close.
pub const SIZE_DIGITS_MAX: usize = 9;

/// Subscriptions of a connection. Equals the limit of a vhost; a client that needs more should use
/// wildcards or another connection. nats-server has no limit. More: -ERR, and the connection stays
/// open.
pub const SUBSCRIPTION_COUNT_MAX: usize = 1_000_000;

/// Bytes of publishes that one connection may park during a memory alarm, while its SUB and UNSUB
/// are still performed. More: reading pauses until the alarm ends.
pub const PARKED_BYTES_MAX: usize = 1024 * 1024;

/// From accepting a connection to its CONNECT, whatever arrives in between. Longer: -ERR and close.
pub const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Grace period for a client after it was told that the broker stops, to drain and to reconnect
/// elsewhere. Longer: it is closed.
pub const LAME_DUCK: Duration = Duration::from_secs(1);

/// Silence of a client after which the broker sends PING.
pub const PING_INTERVAL: Duration = Duration::from_secs(120);

/// PINGs that a client may leave unanswered. More: -ERR and close.
pub const PINGS_OUT_MAX: u32 = 2;

/// Names in a page of an answer. Same as in nats-server. The rest is on the next page.
pub const NAMES_PAGE_LEN: usize = 1024;

/// Streams or consumers with their details in a page of an answer. Same as in nats-server. The rest
/// is on the next page.
pub const DETAILS_PAGE_LEN: usize = 256;

/// Subjects with their counts in a page of an answer. Same as in nats-server. The rest is on the
/// next page.
pub const SUBJECT_DETAILS_PAGE_LEN: usize = 100_000;

/// Bytes of the id of a batch. Same as in nats-server. Longer: error 10179.
pub const BATCH_ID_BYTES_MAX: usize = 64;

/// The limits of a decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the arguments in a control line.
    pub control_line_bytes_max: usize,
    /// Bytes of headers and payload of a message.
    pub payload_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { control_line_bytes_max: CONTROL_LINE_BYTES_MAX, payload_bytes_max: PAYLOAD_BYTES_MAX }
    }
}

impl Limits {
    /// The limits of a client's decoder: longer lines, and messages of any size.
    pub fn of_client() -> Self {
        Self { control_line_bytes_max: SERVER_LINE_BYTES_MAX, payload_bytes_max: usize::MAX }
    }
}
