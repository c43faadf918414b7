//! The settings in force, which a reload replaces as a whole.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use imori_core::id::VhostId;
use imori_core::outbound::OutboundLimits;

use crate::config::{Config, ListenerName, ProtocolName, Service};
use crate::protocol::ProtocolSettings;
use crate::tls::TlsAcceptor;
use crate::websocket::UpgradePolicy;

/// The configuration in force, and settings derived from it for connections.
pub(crate) struct Settings {
    pub(crate) config: Config,
    pub(crate) protocols: ProtocolSettings,
    pub(crate) outbound: OutboundLimits,
    /// Conditions of an upgrade to WebSocket.
    pub(crate) upgrade_policy: Arc<UpgradePolicy>,
    /// The certificates of TLS listeners, if there are any.
    pub(crate) tls: Option<Arc<TlsAcceptor>>,
    /// The open listeners.
    pub(crate) listeners: Vec<Listener>,
}

/// A bound listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listener {
    /// Its name.
    pub name: ListenerName,
    /// Its address, with the actual port instead of port 0.
    pub address: SocketAddr,
}

/// Facts that stay the same during one run of the broker.
#[derive(Debug)]
pub(crate) struct RunFacts {
    /// The random id of this run, shown to NATS clients.
    pub(crate) server_id: String,
    /// The vhost of NATS clients.
    pub(crate) nats_vhost: VhostId,
    /// Memory that the process may use, in bytes.
    pub(crate) memory_bytes: usize,
}

/// The memory mark in bytes, above which publishers wait.
pub(crate) fn mark_bytes(memory_bytes: usize, config: &Config) -> usize {
    memory_bytes / 100 * usize::from(config.broker.memory_mark_percent)
}

/// The address of the first listener of a service.
pub(crate) fn first_of(listeners: &[Listener], service: Service) -> Option<SocketAddr> {
    listeners.iter().find(|listener| listener.name.service == service).map(|listener| listener.address)
}

/// The address announced to NATS clients: their listener's, or else the first one.
pub(crate) fn client_address(listeners: &[Listener]) -> SocketAddr {
    let of_nats = first_of(listeners, Service::Messages(ProtocolName::Nats));
    let first = listeners.first().map(|listener| listener.address);
    of_nats.or(first).unwrap_or(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))
}
