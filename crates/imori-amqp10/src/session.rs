//! The state of a session that is the protocol's own. All else of it is a session of the core.

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
pub(crate) struct Session {
    /// The broker ends it. Nothing else on it counts.
    pub(crate) ending: Option<Ending>,
    /// Links by the client's handles, which are the broker's own too.
    pub(crate) links: BTreeMap<u32, Link>,
    /// Number of the client's next transfer.
    pub(crate) next_incoming_id: u32,
    /// Transfers that the client may send before it is told of a new window.
    pub(crate) incoming_left: u32,
    /// Number of the last delivery that the client began: they go on from there (AMQP 1.0, 2.6.12).
    pub(crate) last_begun: Option<u32>,
    /// Number of the client's last unsettled delivery, continued beyond 32 bits.
    pub(crate) last_delivery: Option<u64>,
}

/// The end of a session that the broker ends.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The session gives back what it has, a part a turn. Then the client is told this.
    Begun(ProtocolError),
    /// The client was told, and is to end it too.
    Told,
}

impl Session {
    /// Numbers a delivery of the client beyond 32 bits: serial numbers go on from the last (RFC 1982).
    pub(crate) fn number(&mut self, id: u32) -> u64 {
        let number = match self.last_delivery {
            // So far up that earlier ones have room below.
            None => (1 << 32) + u64::from(id),
            Some(last) => last.saturating_add_signed((id.wrapping_sub(last as u32) as i32).into()),
        };
        self.last_delivery = Some(number.max(self.last_delivery.unwrap_or_default()));
        number
    }
}

/// The core's session of a channel: the first is the connection's own. Beyond the highest channel that a client may use
/// there is none, so that the last two may have one number.
pub(crate) fn session_of(channel: u16) -> SessionId {
    SessionId(channel.saturating_add(1))
}

/// The channel of the core's session.
pub(crate) fn channel_of(session: SessionId) -> u16 {
    session.0.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_are_numbered_on_beyond_32_bits() {
        let mut session = Session::default();
        let first = session.number(u32::MAX - 1);
        for (id, expected) in [(u32::MAX, 1), (0, 2), (1, 3), (u32::MAX, 1), (2, 4)] {
            assert_eq!(session.number(id) - first, expected, "{id}");
        }
        for channel in [0, 1, u16::MAX - 1] {
            assert_eq!(channel_of(session_of(channel)), channel);
        }
    }
}
