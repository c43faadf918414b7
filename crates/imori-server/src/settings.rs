//! The settings in force, which a reload replaces as a whole.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use imori_core::outbound::OutboundLimits;

use crate::config::{Config, ListenerName, ProtocolName, Service};
use crate::protocols::ProtocolSettings;
use crate::tls::TlsAcceptor;
use crate::websocket::UpgradePolicy;

/// The configuration in force, and settings derived from it for connections.
pub struct Settings {
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

impl Settings {
    /// The configuration in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The open listeners.
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// The address of the first listener of a service.
    pub fn address_of(&self, service: Service) -> Option<SocketAddr> {
        first_of(&self.listeners, service)
    }

    /// The address announced to NATS clients: their listener's, or else the first one.
    pub fn client_address(&self) -> SocketAddr {
        client_address(&self.listeners)
    }

    /// The settings of each protocol's connections.
    pub fn protocols(&self) -> &ProtocolSettings {
        &self.protocols
    }

    /// Bytes that may wait to be written to one connection.
    pub fn unsent_bytes_max(&self) -> usize {
        self.outbound.unsent_bytes_max
    }

    /// Whether certificates that were to be renewed cannot be used, so that older ones are in force.
    pub fn is_certificate_refused(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_renewal_refused())
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").finish_non_exhaustive()
    }
}

/// A bound listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listener {
    /// Its name.
    pub name: ListenerName,
    /// Its address, with the actual port instead of port 0.
    pub address: SocketAddr,
}

/// The memory mark in bytes, above which publishers wait.
pub(crate) fn mark_bytes(memory_bytes: usize, config: &Config) -> usize {
    memory_bytes / 100 * usize::from(config.broker.memory_mark_percent)
}

/// The address of the first listener of a service.
fn first_of(listeners: &[Listener], service: Service) -> Option<SocketAddr> {
    listeners.iter().find(|listener| listener.name.service == service).map(|listener| listener.address)
}

/// The address announced to NATS clients: their listener's, or else the first one.
pub(crate) fn client_address(listeners: &[Listener]) -> SocketAddr {
    let of_nats = first_of(listeners, Service::Messages(ProtocolName::Nats));
    let first = listeners.first().map(|listener| listener.address);
    of_nats.or(first).unwrap_or(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))
}
