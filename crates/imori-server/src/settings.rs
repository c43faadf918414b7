//! What every connection is served with.

use std::sync::Arc;
use std::time::Duration;

use imori_core::outbound::OutboundLimits;

use crate::config::WritePolicy;
use crate::protocol_numbers::{NATS, STOMP, header_reader};
use crate::websocket::Gate;

/// The part of the configuration that connections need.
pub(crate) struct Settings {
    pub(crate) protocols: ProtocolSettings,
    pub(crate) outbound: OutboundLimits,
    pub(crate) write: WritePolicy,
    /// Who may come in by WebSocket.
    pub(crate) gate: Arc<Gate>,
    /// How long a cell looks for more to do before it sleeps.
    pub(crate) spin: Duration,
    /// Development on a network that is trusted: who comes from elsewhere counts as local.
    pub(crate) trusts_network: bool,
}

/// What the connections of each protocol are told before they begin.
#[derive(Debug, Clone)]
pub struct ProtocolSettings {
    /// STOMP's.
    pub stomp: Arc<imori_stomp::settings::Settings>,
    /// NATS's.
    pub nats: Arc<imori_nats::settings::Settings>,
}

impl ProtocolSettings {
    /// Gives each protocol the numbers that tell it from the others, and the way to read the others' headers.
    pub fn new(
        stomp: imori_stomp::settings::Settings,
        nats: imori_nats::settings::Settings,
    ) -> ProtocolSettings {
        ProtocolSettings {
            stomp: Arc::new(imori_stomp::settings::Settings {
                origins: STOMP.origins,
                encoder_kinds: STOMP.encoder_kinds,
                header_readers: header_reader,
                ..stomp
            }),
            nats: Arc::new(imori_nats::settings::Settings {
                origins: NATS.origins,
                encoder_kinds: NATS.encoder_kinds,
                header_readers: header_reader,
                ..nats
            }),
        }
    }
}
