//! Limits of a NATS connection: each with its unit, the reason, and what happens when it is reached.

use std::time::Duration;

/// Bytes of a control line after its operation. Subject, reply and CONNECT options fit; an unknown
/// peer holds no more memory than this. It is nats-server's. Longer: -ERR and close.
pub const CONTROL_LINE_BYTES_MAX: usize = 4096;

/// Bytes of a control line that a client takes from a server: an INFO lists the addresses of a
/// whole cluster. Longer: the decoder fails.
pub const SERVER_LINE_BYTES_MAX: usize = 64 * 1024;

/// Bytes of headers and payload of a message, as INFO says. Larger ones hold up all others of the
/// connection. It is nats-server's. A declared size over it is refused before a byte of it is
/// awaited: -ERR and close.
pub const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;

/// Digits of a size, as in nats-server. More: -ERR and close.
pub const SIZE_DIGITS_MAX: usize = 9;

/// Subscriptions of a connection. One that needs more needs wildcards, or another connection for
/// them. It is what a vhost may have: nats-server has no limit here. More: -ERR, and it stays open.
pub const SUBSCRIPTION_COUNT_MAX: usize = 1_000_000;

/// Bytes of publishes that wait on one connection for the end of a memory alarm, while its PING,
/// SUB and UNSUB are still read. More: nothing is read from it until then.
pub const PARKED_BYTES_MAX: usize = 1024 * 1024;

/// From accepting a connection to its CONNECT, whatever comes in between. Longer: -ERR and close.
pub const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a client may stay after it was told that the broker stops: time to drain and to connect to
/// another. Longer: it is closed.
pub const LAME_DUCK: Duration = Duration::from_secs(1);

/// Time between the broker's PINGs of a client that says nothing.
pub const PING_INTERVAL: Duration = Duration::from_secs(120);

/// PINGs that a client may leave unanswered. More: -ERR and close.
pub const PINGS_OUT_MAX: u32 = 2;

/// The limits of a decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a control line after its operation.
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
    /// The limits of a client's decoder: longer lines, and any message that a size can declare.
    pub fn of_client() -> Self {
        Self { control_line_bytes_max: SERVER_LINE_BYTES_MAX, payload_bytes_max: usize::MAX }
    }
}
