//! The settings that every connection is served with.

use std::sync::Arc;
use std::time::Duration;

use imori_core::outbound::OutboundLimits;

use crate::config::{Network, WritePolicy};
use crate::protocol::ProtocolSettings;
use crate::tls::TlsAcceptor;
use crate::websocket::UpgradePolicy;

/// The part of the configuration that connections need.
pub(crate) struct Settings {
    pub(crate) protocols: ProtocolSettings,
    pub(crate) outbound: OutboundLimits,
    pub(crate) write: WritePolicy,
    /// The protocols and web pages that may connect by WebSocket.
    pub(crate) upgrade_policy: Arc<UpgradePolicy>,
    /// The certificates of listeners with TLS, where there are such.
    pub(crate) tls: Option<Arc<TlsAcceptor>>,
    /// Networks of proxies that say for whom they connect.
    pub(crate) proxies: Vec<Network>,
    /// From accepting a connection to its login.
    pub(crate) login_timeout: Duration,
    /// Time for a handshake of TLS within that.
    pub(crate) handshake_timeout: Duration,
    /// How long a cell looks for more to do before it sleeps.
    pub(crate) spin: Duration,
    /// Development on a network that is trusted: clients from elsewhere count as local.
    pub(crate) trusts_network: bool,
}
