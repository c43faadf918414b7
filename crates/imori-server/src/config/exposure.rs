//! Allows listeners beyond this host only if the network cannot read along.

use std::error::Error;
use std::fmt;

use super::address::{ListenAddress, ListenerName, ProtocolName, Service};
use super::sections::{Config, Listeners, NatsTls};

/// A listener that other hosts could reach unsafely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExposedListener {
    /// The listener.
    pub listener: ListenerName,
    /// Its address.
    pub address: ListenAddress,
}

impl Config {
    /// Refuses unsafe listeners beyond loopback, except in development mode.
    ///
    /// # Errors
    /// The first such listener.
    pub fn refuse_exposure(&self) -> Result<(), ExposedListener> {
        match self.exposed_listener() {
            Some(exposed) if !self.insecure_dev => Err(exposed),
            _ => Ok(()),
        }
    }

    /// The first listener that other hosts could reach without TLS or without a login, unless
    /// `broker.accept_plaintext` names it.
    pub fn exposed_listener(&self) -> Option<ExposedListener> {
        self.open_listeners()
            .find(|(listener, address)| !is_loopback(*address) && !self.is_safe(*listener))
            .map(|(listener, address)| ExposedListener { listener, address })
    }

    /// The listeners beyond loopback that `broker.accept_plaintext` names.
    pub fn accepted_listeners(&self) -> impl Iterator<Item = ExposedListener> {
        let is_accepted = |listener: &ListenerName| self.broker.accept_plaintext.contains(listener);
        self.open_listeners()
            .filter(move |(listener, address)| !is_loopback(*address) && is_accepted(listener))
            .map(|(listener, address)| ExposedListener { listener, address })
    }

    /// The addresses to open, with their listeners: all that are configured, but those of the gateway only with routes.
    pub fn open_listeners(&self) -> impl Iterator<Item = (ListenerName, ListenAddress)> {
        let has_routes = self.gateway.routes.path().is_some();
        self.listeners.all().filter(move |(listener, _)| listener.service != Service::Http || has_routes)
    }

    /// Whether other hosts may reach a listener (SECURITY OPS-01, WEB-01).
    fn is_safe(&self, listener: ListenerName) -> bool {
        let is_encrypted = listener.is_tls
            || (listener.service == Service::Messages(ProtocolName::Nats)
                && self.nats.tls == NatsTls::Demanded);
        let has_login = listener.service != Service::NatsMonitor;
        (is_encrypted && has_login) || self.broker.accept_plaintext.contains(&listener)
    }
}

impl Listeners {
    /// No listeners.
    pub fn none() -> Listeners {
        let mut listeners = Listeners::default();
        for name in ListenerName::all() {
            listeners.of_mut(name).clear();
        }
        listeners
    }

    /// All configured addresses, with their listeners.
    pub fn all(&self) -> impl Iterator<Item = (ListenerName, ListenAddress)> {
        ListenerName::all()
            .flat_map(|listener| self.of(listener).iter().map(move |address| (listener, *address)))
    }

    /// Whether a service has a listener, with or without TLS.
    pub fn has(&self, service: Service) -> bool {
        !self.of(ListenerName::plain(service)).is_empty() || !self.of(ListenerName::tls(service)).is_empty()
    }

    /// The addresses of a listener.
    pub fn of(&self, listener: ListenerName) -> &[ListenAddress] {
        match (listener.service, listener.is_tls) {
            (Service::Messages(ProtocolName::Stomp), false) => &self.stomp,
            (Service::Messages(ProtocolName::Stomp), true) => &self.stomp_tls,
            (Service::Messages(ProtocolName::Nats), false) => &self.nats,
            (Service::Messages(ProtocolName::Nats), true) => &self.nats_tls,
            (Service::Messages(ProtocolName::Amqp), false) => &self.amqp,
            (Service::Messages(ProtocolName::Amqp), true) => &self.amqp_tls,
            (Service::WebSocket, false) => &self.ws,
            (Service::WebSocket, true) => &self.ws_tls,
            (Service::NatsMonitor, false) => &self.nats_monitor,
            (Service::NatsMonitor, true) => &self.nats_monitor_tls,
            (Service::Admin, false) => &self.admin,
            (Service::Admin, true) => &self.admin_tls,
            (Service::Automation, false) => &self.automation,
            (Service::Automation, true) => &self.automation_tls,
            (Service::Http, false) => &self.http,
            (Service::Http, true) => &self.http_tls,
        }
    }

    /// The addresses of a listener, mutable.
    pub fn of_mut(&mut self, listener: ListenerName) -> &mut Vec<ListenAddress> {
        match (listener.service, listener.is_tls) {
            (Service::Messages(ProtocolName::Stomp), false) => &mut self.stomp,
            (Service::Messages(ProtocolName::Stomp), true) => &mut self.stomp_tls,
            (Service::Messages(ProtocolName::Nats), false) => &mut self.nats,
            (Service::Messages(ProtocolName::Nats), true) => &mut self.nats_tls,
            (Service::Messages(ProtocolName::Amqp), false) => &mut self.amqp,
            (Service::Messages(ProtocolName::Amqp), true) => &mut self.amqp_tls,
            (Service::WebSocket, false) => &mut self.ws,
            (Service::WebSocket, true) => &mut self.ws_tls,
            (Service::NatsMonitor, false) => &mut self.nats_monitor,
            (Service::NatsMonitor, true) => &mut self.nats_monitor_tls,
            (Service::Admin, false) => &mut self.admin,
            (Service::Admin, true) => &mut self.admin_tls,
            (Service::Automation, false) => &mut self.automation,
            (Service::Automation, true) => &mut self.automation_tls,
            (Service::Http, false) => &mut self.http,
            (Service::Http, true) => &mut self.http_tls,
        }
    }
}

impl fmt::Display for ExposedListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (listener, address) = (self.listener, self.address);
        if listener.service == Service::NatsMonitor {
            return write!(
                f,
                "listener `{listener}={address}` can be reached from other hosts, and answers whoever asks; listen on \
                 `127.0.0.1` or `[::1]`, or name `{listener}` in `broker.accept_plaintext`"
            );
        }
        write!(
            f,
            "listener `{listener}={address}` can be reached from other hosts without TLS, so anyone on the way could \
             read passwords and messages; use `{}` with a certificate, listen on `127.0.0.1` or `[::1]`, name \
             `{listener}` in `broker.accept_plaintext`, or give `--insecure-dev` on a network that you trust",
            ListenerName::tls(listener.service)
        )
    }
}

impl Error for ExposedListener {}

/// An IPv4-mapped IPv6 address counts as IPv4.
fn is_loopback(address: ListenAddress) -> bool {
    address.0.ip().to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::FilePath;

    fn listening_on(addresses: &[&str]) -> Config {
        let mut config = Config::default();
        config.listeners.stomp = addresses.iter().map(|address| address.parse().unwrap()).collect();
        config
    }

    #[test]
    fn only_loopback_is_open_to_everybody() {
        for (addresses, exposed) in [
            (&[][..], None),
            (&["127.0.0.1:61613", "[::1]:61613"], None),
            (&["127.9.8.7:1"], None),
            (&["[::ffff:127.0.0.1]:1"], None),
            (&["0.0.0.0:61613"], Some("0.0.0.0:61613")),
            (&["[::]:61613"], Some("[::]:61613")),
            (&["127.0.0.1:1", "10.0.0.1:2"], Some("10.0.0.1:2")),
            (&["[::ffff:10.0.0.1]:1"], Some("[::ffff:10.0.0.1]:1")),
        ] {
            let mut config = listening_on(addresses);
            let refused = config.refuse_exposure().err();
            assert_eq!(
                refused.map(|exposed| exposed.address.to_string()).as_deref(),
                exposed,
                "{addresses:?}"
            );
            config.insecure_dev = true;
            assert_eq!(config.refuse_exposure(), Ok(()), "{addresses:?}");
            assert_eq!(config.exposed_listener().is_some(), exposed.is_some(), "{addresses:?}");
        }
    }

    /// SECURITY OPS-01.
    #[test]
    fn beyond_loopback_a_listener_needs_tls_and_a_login() {
        for listener in ListenerName::all() {
            let mut config = Config::default();
            config.gateway.routes = FilePath::from(Path::new("routes.toml"));
            *config.listeners.of_mut(listener) = vec!["0.0.0.0:1".parse().unwrap()];
            let is_safe = listener.is_tls && listener.service != Service::NatsMonitor;
            assert_eq!(config.exposed_listener().is_none(), is_safe, "{listener}");
            config.broker.accept_plaintext = vec![listener];
            assert_eq!(config.exposed_listener(), None, "{listener} is accepted by name");
            assert_eq!(config.accepted_listeners().count(), 1, "{listener}");
        }
        let mut config = Config::default();
        config.listeners.nats = vec!["0.0.0.0:1".parse().unwrap()];
        config.nats.tls = NatsTls::Offered;
        assert!(config.exposed_listener().is_some(), "a client need not begin TLS");
        config.nats.tls = NatsTls::Demanded;
        assert_eq!(config.exposed_listener(), None);
    }

    /// SECURITY WEB-01.
    #[test]
    fn the_monitor_is_as_much_a_listener_as_any() {
        let mut config = listening_on(&["127.0.0.1:61613"]);
        config.listeners.nats_monitor = vec!["0.0.0.0:8222".parse().unwrap()];
        let refused = config.refuse_exposure().unwrap_err().to_string();
        assert!(refused.starts_with("listener `nats-monitor=0.0.0.0:8222` can be reached"), "{refused}");
    }

    #[test]
    fn the_gateway_listens_only_with_routes() {
        let mut config = Config::default();
        let has_http =
            |config: &Config| config.open_listeners().any(|(name, _)| name.service == Service::Http);
        assert!(!has_http(&config));
        config.gateway.routes = FilePath::from(Path::new("routes.toml"));
        assert!(has_http(&config));
    }

    #[test]
    fn the_defaults_are_not_exposed() {
        assert_eq!(Config::default().exposed_listener(), None);
    }
}
