//! The settings in force, which a reload replaces whole.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use imori_core::id::VhostId;
use imori_core::outbound::OutboundLimits;

use crate::config::{Config, ListenerName, ProtocolName, Service};
use crate::protocol::ProtocolSettings;
use crate::tls::TlsAcceptor;
use crate::websocket::UpgradePolicy;

/// The configuration in force, and what connections need of it in their own form.
pub(crate) struct Settings {
    pub(crate) config: Config,
    pub(crate) protocols: ProtocolSettings,
    pub(crate) outbound: OutboundLimits,
    /// The protocols and web pages that may connect by WebSocket.
    pub(crate) upgrade_policy: Arc<UpgradePolicy>,
    /// The certificates of listeners with TLS, where there are such.
    pub(crate) tls: Option<Arc<TlsAcceptor>>,
    /// The listeners that are open.
    pub(crate) listeners: Vec<Listener>,
}

/// A bound listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listener {
    /// Its name.
    pub name: ListenerName,
    /// Where it listens, with the port that was taken for port 0.
    pub address: SocketAddr,
}

/// The facts of one run of the broker, which no reload changes.
#[derive(Debug)]
pub(crate) struct RunFacts {
    /// The random name by which NATS clients know this run.
    pub(crate) server_id: String,
    /// The vhost of NATS clients.
    pub(crate) nats_vhost: VhostId,
    /// Bytes of memory that the process may use.
    pub(crate) memory_bytes: usize,
}

/// The bytes of memory above which publishers wait, of those that the process may use.
pub(crate) fn mark_bytes(memory_bytes: usize, config: &Config) -> usize {
    memory_bytes / 100 * usize::from(config.broker.memory_mark_percent)
}

/// The address of the first listener of a service.
pub(crate) fn first_of(listeners: &[Listener], service: Service) -> Option<SocketAddr> {
    listeners.iter().find(|listener| listener.name.service == service).map(|listener| listener.address)
}

/// The address that clients of NATS are told of: theirs, or else the first of all.
pub(crate) fn client_address(listeners: &[Listener]) -> SocketAddr {
    let of_nats = first_of(listeners, Service::Messages(ProtocolName::Nats));
    let first = listeners.first().map(|listener| listener.address);
    of_nats.or(first).unwrap_or(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))
}
