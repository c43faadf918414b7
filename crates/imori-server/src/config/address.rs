//! Listeners: their names and their addresses.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::setting::{Setting, Value, quoted};

/// A protocol that a listener can speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProtocolName {
    /// STOMP 1.0, 1.1 and 1.2.
    Stomp,
    /// NATS, as its clients speak it.
    Nats,
    /// AMQP 0-9-1 with RabbitMQ's extensions.
    Amqp,
}

impl ProtocolName {
    /// All protocols.
    pub const ALL: [ProtocolName; 3] = [ProtocolName::Stomp, ProtocolName::Nats, ProtocolName::Amqp];

    /// Its name in the configuration and in the log.
    pub const fn name(self) -> &'static str {
        match self {
            ProtocolName::Stomp => "stomp",
            ProtocolName::Nats => "nats",
            ProtocolName::Amqp => "amqp",
        }
    }
}

impl fmt::Display for ProtocolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The purpose of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// Messages, by this protocol.
    Messages(ProtocolName),
    /// Messages over WebSocket, by the protocol that the client asks for.
    WebSocket,
    /// Monitoring over HTTP, in the shape of nats-server's.
    NatsMonitor,
    /// Administration over HTTP, in the shape of RabbitMQ's management.
    Admin,
    /// Automation over HTTP, in the shape of StackStorm's API.
    Automation,
    /// The HTTP gateway.
    Http,
}

impl Service {
    /// All services.
    pub fn all() -> impl Iterator<Item = Service> {
        let others =
            [Service::WebSocket, Service::NatsMonitor, Service::Admin, Service::Automation, Service::Http];
        ProtocolName::ALL.into_iter().map(Service::Messages).chain(others)
    }

    /// Whether clients send messages through it.
    pub const fn takes_messages(self) -> bool {
        matches!(self, Service::Messages(_) | Service::Http)
    }

    /// Its name on the command line and in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Service::Messages(protocol) => protocol.name(),
            Service::WebSocket => "ws",
            Service::NatsMonitor => "nats-monitor",
            Service::Admin => "admin",
            Service::Automation => "automation",
            Service::Http => "http",
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A listener: its service, and whether it speaks TLS from the first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerName {
    /// The service it offers.
    pub service: Service,
    /// Whether it speaks TLS from the first byte.
    pub is_tls: bool,
}

impl ListenerName {
    /// All possible listeners.
    pub fn all() -> impl Iterator<Item = ListenerName> {
        Service::all().flat_map(|service| [ListenerName::plain(service), ListenerName::tls(service)])
    }

    /// The listener of a service without TLS.
    pub const fn plain(service: Service) -> ListenerName {
        ListenerName { service, is_tls: false }
    }

    /// The listener of a service with TLS.
    pub const fn tls(service: Service) -> ListenerName {
        ListenerName { service, is_tls: true }
    }

    /// Its key in the configuration, as `listeners.name`.
    pub fn key(self) -> String {
        format!("listeners.{}", self.name().replace('-', "_"))
    }

    /// Its name on the command line and in the log.
    pub const fn name(self) -> &'static str {
        match (self.service, self.is_tls) {
            (service, false) => service.name(),
            (Service::Messages(ProtocolName::Stomp), true) => "stomp-tls",
            (Service::Messages(ProtocolName::Nats), true) => "nats-tls",
            (Service::Messages(ProtocolName::Amqp), true) => "amqp-tls",
            (Service::WebSocket, true) => "ws-tls",
            (Service::NatsMonitor, true) => "nats-monitor-tls",
            (Service::Admin, true) => "admin-tls",
            (Service::Automation, true) => "automation-tls",
            (Service::Http, true) => "http-tls",
        }
    }
}

impl fmt::Display for ListenerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ListenerName {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<ListenerName, AddressError> {
        ListenerName::all().find(|listener| listener.name() == text).ok_or(AddressError::UnknownProtocol)
    }
}

impl Setting for ListenerName {
    fn read(value: &Value) -> Option<ListenerName> {
        match value {
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    fn expected(_: Option<&RangeInclusive<ListenerName>>) -> String {
        format!("one of `{}`", names().join("`, `"))
    }

    fn show(&self) -> String {
        quoted(self.name())
    }
}

fn names() -> Vec<&'static str> {
    ListenerName::all().map(ListenerName::name).collect()
}

/// Linux's error number if it was built without IPv6.
const EAFNOSUPPORT: i32 = 97;

/// An IP address and a port to listen on; `localhost` is read as 127.0.0.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenAddress(pub SocketAddr);

impl ListenAddress {
    /// 127.0.0.1 with this port.
    pub const fn loopback_v4(port: u16) -> ListenAddress {
        ListenAddress(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
    }

    /// ::1 with this port.
    pub const fn loopback_v6(port: u16) -> ListenAddress {
        ListenAddress(SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), port))
    }
}

impl ListenAddress {
    /// Whether the bind failed with `error` only because the host has no IPv6.
    pub fn is_left_out(self, error: &io::Error) -> bool {
        let IpAddr::V6(ip) = self.0.ip() else { return false };
        // If IPv6 is switched off, its loopback has no address; any other address may be a mistake.
        let is_switched_off = ip.is_loopback() && error.kind() == ErrorKind::AddrNotAvailable;
        is_switched_off || error.raw_os_error() == Some(EAFNOSUPPORT)
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ListenAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<ListenAddress, AddressError> {
        match text.strip_prefix("localhost:") {
            Some(port) => {
                port.parse().map(ListenAddress::loopback_v4).map_err(|_| AddressError::NotAnAddress)
            }
            None => text.parse().map(ListenAddress).map_err(|_| AddressError::NotAnAddress),
        }
    }
}

impl Setting for ListenAddress {
    fn read(value: &Value) -> Option<ListenAddress> {
        match value {
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    fn expected(_: Option<&RangeInclusive<ListenAddress>>) -> String {
        String::from("an address such as `127.0.0.1:61613` or `[::1]:61613`")
    }

    fn show(&self) -> String {
        quoted(&self.to_string())
    }
}

/// Why a text is not a listener or an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressError {
    /// No protocol has this name.
    UnknownProtocol,
    /// The text is not an IP address and a port.
    NotAnAddress,
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressError::UnknownProtocol => {
                write!(f, "unknown protocol; use one of `{}`", names().join("`, `"))
            }
            AddressError::NotAnAddress => {
                write!(f, "expected {}", ListenAddress::expected(None))
            }
        }
    }
}

impl Error for AddressError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_an_ip_address_and_a_port() {
        for (text, shown) in [
            ("127.0.0.1:61613", Some("127.0.0.1:61613")),
            ("[::1]:0", Some("[::1]:0")),
            ("0.0.0.0:61613", Some("0.0.0.0:61613")),
            ("localhost:61613", Some("127.0.0.1:61613")),
            ("localhost", None),
            ("localhost:65536", None),
            ("::1:61613", None),
            ("127.0.0.1", None),
            ("mq.example:61613", None),
            (":61613", None),
            ("", None),
        ] {
            let address: Option<ListenAddress> = text.parse().ok();
            assert_eq!(address.map(|address| address.to_string()).as_deref(), shown, "{text}");
        }
    }

    #[test]
    fn only_an_ipv6_address_is_left_out() {
        for (address, error, is_left_out) in [
            ("[::1]:1", io::Error::from(ErrorKind::AddrNotAvailable), true),
            ("[::1]:1", io::Error::from_raw_os_error(EAFNOSUPPORT), true),
            ("[2001:db8::1]:1", io::Error::from_raw_os_error(EAFNOSUPPORT), true),
            ("[2001:db8::1]:1", io::Error::from(ErrorKind::AddrNotAvailable), false),
            ("[::1]:1", io::Error::from(ErrorKind::AddrInUse), false),
            ("127.0.0.1:1", io::Error::from(ErrorKind::AddrNotAvailable), false),
        ] {
            let address: ListenAddress = address.parse().unwrap();
            assert_eq!(address.is_left_out(&error), is_left_out, "{address} {error}");
        }
    }

    #[test]
    fn protocols_are_found_by_name() {
        assert_eq!("stomp".parse(), Ok(ListenerName::plain(Service::Messages(ProtocolName::Stomp))));
        assert_eq!("amqp-tls".parse(), Ok(ListenerName::tls(Service::Messages(ProtocolName::Amqp))));
        assert_eq!("ws".parse(), Ok(ListenerName::plain(Service::WebSocket)));
        assert_eq!("nats-monitor".parse(), Ok(ListenerName::plain(Service::NatsMonitor)));
        assert_eq!("admin-tls".parse(), Ok(ListenerName::tls(Service::Admin)));
        assert_eq!("STOMP".parse::<ListenerName>(), Err(AddressError::UnknownProtocol));
        let told = AddressError::UnknownProtocol.to_string();
        assert!(told.starts_with("unknown protocol; use one of `stomp`, `stomp-tls`, `nats`, "), "{told}");
    }
}
