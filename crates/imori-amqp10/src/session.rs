//! The protocol's state of a session; the core's session has the rest.

use std::collections::BTreeMap;

use imori_core::outbound::SessionId;

use crate::link::Link;
use crate::protocol_error::ProtocolError;

/// A session.
///
/// ```text
///        begin            an error             told by end
///  none ───────► Open ──────────────► Ending ──────────────► Told
///   ▲             │ end, answered                             │ end
///   └─────────────┴───────────────────────────────────────────┘
/// ```
#[derive(Debug, Default)]
pub struct Session {
    /// Set while the broker ends the session; its other frames are ignored.
    pub(crate) ending: Option<Ending>,
    /// Links by the client's handles, which both ends use.
    pub(crate) links: BTreeMap<u32, Link>,
    /// Number of the client's next transfer.
    pub(crate) next_incoming_id: u32,
    /// Transfers that the client may send before the next flow.
    pub(crate) incoming_left: u32,
    /// Id of the client's last delivery; ids must rise from it (AMQP 1.0, 2.6.12).
    pub(crate) last_begun: Option<u32>,
    /// Number of the client's last unsettled delivery, extended beyond 32 bits.
    pub(crate) last_delivery: Option<u64>,
}

/// The progress of a session that the broker ends.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The session's deliveries and nodes are being given back, over several turns. Then `end`
    /// reports this error.
    Begun(ProtocolError),
    /// The client was told, and has to end the session too.
    Told,
}

impl Session {
    /// Extends a delivery id beyond 32 bits; ids are serial numbers (RFC 1982).
    pub fn number(&mut self, id: u32) -> u64 {
        let number = match self.last_delivery {
            // High enough that earlier ids still map to positive numbers.
            None => (1 << 32) + u64::from(id),
            Some(last) => last.saturating_add_signed((id.wrapping_sub(last as u32) as i32).into()),
        };
        self.last_delivery = Some(number.max(self.last_delivery.unwrap_or_default()));
        number
    }
}

/// Returns the core's session of a channel; the first session is the connection's own. Saturates
/// above the highest channel a client may use, where no session exists.
pub fn session_of(channel: u16) -> SessionId {
    SessionId(channel.saturating_add(1))
}

/// Returns the channel of a core session.
pub fn channel_of(session: SessionId) -> u16 {
    session.0.saturating_sub(1)
}
