//! Listeners are open to this host alone as long as every client may do everything.

use std::error::Error;
use std::fmt;

use super::address::{ListenAddress, ProtocolName, Service};
use super::sections::{Config, Listeners};

/// A listener that other hosts could reach although no users are configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExposedListener {
    /// The purpose of the listener.
    pub service: Service,
    /// Where it would listen.
    pub address: ListenAddress,
}

impl Config {
    /// Refuses listeners beyond loopback while no users are configured, unless development asks for it.
    ///
    /// # Errors
    /// The first listener that would be reachable from another host.
    pub fn refuse_exposure(&self) -> Result<(), ExposedListener> {
        match self.exposed_listener() {
            Some(exposed) if !self.insecure_dev => Err(exposed),
            _ => Ok(()),
        }
    }

    /// The first listener that other hosts could reach, if there is one.
    pub fn exposed_listener(&self) -> Option<ExposedListener> {
        self.listeners
            .all()
            .find(|(_, address)| !is_loopback(*address))
            .map(|(service, address)| ExposedListener { service, address })
    }
}

impl Listeners {
    /// Every address that is listened on, with the service there.
    pub(super) fn all(&self) -> impl Iterator<Item = (Service, ListenAddress)> {
        Service::all().flat_map(|service| self.of(service).iter().map(move |address| (service, *address)))
    }

    /// Where a service listens.
    pub fn of(&self, service: Service) -> &[ListenAddress] {
        match service {
            Service::Messages(ProtocolName::Stomp) => &self.stomp,
            Service::Messages(ProtocolName::Nats) => &self.nats,
            Service::Messages(ProtocolName::Amqp) => &self.amqp,
            Service::WebSocket => &self.ws,
            Service::NatsMonitor => &self.nats_monitor,
            Service::Admin => &self.admin,
        }
    }
}

impl fmt::Display for ExposedListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "listener `{}={}` can be reached from other hosts, but no users are configured, so anyone there could \
             do anything; listen on `127.0.0.1` or `[::1]`, or give `--insecure-dev` on a network that you trust",
            self.service, self.address
        )
    }
}

impl Error for ExposedListener {}

/// An IPv4 address in IPv6 clothes counts as what it is.
fn is_loopback(address: ListenAddress) -> bool {
    address.0.ip().to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// SECURITY WEB-01.
    #[test]
    fn the_monitor_is_as_much_a_listener_as_any() {
        let mut config = listening_on(&["127.0.0.1:61613"]);
        config.listeners.nats_monitor = vec!["0.0.0.0:8222".parse().unwrap()];
        let refused = config.refuse_exposure().unwrap_err().to_string();
        assert!(refused.starts_with("listener `nats-monitor=0.0.0.0:8222` can be reached"), "{refused}");
    }

    #[test]
    fn the_defaults_are_not_exposed() {
        assert_eq!(Config::default().exposed_listener(), None);
    }
}
