//! The servers that scripts may connect to.
//!
//! A list has `host`, `host:port`, `*.domain`, `*.domain:port`, and `*` for every server. Names are resolved here, so
//! that the address that was checked is the one that is used. A private address, as of the gateway's own machine or
//! network, is refused unless the list names the host or address itself.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 8;

/// The servers that scripts may connect to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostList(Vec<Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    host: Pattern,
    /// `None` is every port.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Every,
    /// A domain with a dot before it.
    Below(String),
    Exactly(String),
}

/// Why a server is not connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostError {
    /// The list has no such server.
    NotAllowed(String, u16),
    /// The name stands for a private address, and the list does not name it.
    Private(String, IpAddr),
    /// The name has no address.
    Unknown(String),
}

impl fmt::Display for HostError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAllowed(host, port) => {
                write!(
                    formatter,
                    "scripts may not connect to `{host}:{port}`; add it to `scripts.allow_hosts`"
                )
            }
            Self::Private(host, address) => write!(
                formatter,
                "`{host}` has the private address `{address}`; name `{host}` itself in `scripts.allow_hosts`"
            ),
            Self::Unknown(host) => write!(formatter, "`{host}` has no address"),
        }
    }
}

impl std::error::Error for HostError {}

impl HostList {
    /// Reads a list.
    ///
    /// # Errors
    /// Says which entry is wrong.
    pub fn parse<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        entries.into_iter().map(parse_entry).collect::<Result<_, _>>().map(Self)
    }

    /// The addresses of a server that scripts may connect to.
    ///
    /// # Errors
    /// [`HostError`].
    pub async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, HostError> {
        let host =
            host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase();
        let is_named = self.is_named(&host, port)?;
        let addresses: Vec<SocketAddr> = match host.parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) => match tokio::net::lookup_host((host.as_str(), port)).await {
                Ok(addresses) => addresses.take(ADDRESSES_MAX).collect(),
                Err(_) => return Err(HostError::Unknown(host.clone())),
            },
        };
        let private = addresses.iter().map(SocketAddr::ip).find(|&address| is_private(address));
        match private {
            Some(address) if !is_named && self.is_named(&address.to_string(), port) != Ok(true) => {
                Err(HostError::Private(host, address))
            }
            _ if addresses.is_empty() => Err(HostError::Unknown(host)),
            _ => Ok(addresses),
        }
    }

    /// Whether the list names the host itself; an error if it has no entry for it.
    pub fn is_named(&self, host: &str, port: u16) -> Result<bool, HostError> {
        let mut is_allowed = false;
        for entry in self.0.iter().filter(|entry| entry.port.is_none_or(|own| own == port)) {
            match &entry.host {
                Pattern::Exactly(own) if own == host => return Ok(true),
                Pattern::Below(domain) if host.ends_with(domain.as_str()) => is_allowed = true,
                Pattern::Every => is_allowed = true,
                _ => {}
            }
        }
        if is_allowed { Ok(false) } else { Err(HostError::NotAllowed(host.to_owned(), port)) }
    }
}

fn parse_entry(text: &str) -> Result<Entry, String> {
    let wrong = || format!("`{text}` is no server; use `host`, `host:port`, `*.domain` or `*`");
    let (host, port) = match text.parse::<IpAddr>() {
        Ok(_) => (text, None),
        Err(_) => match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().map_err(|_| wrong())?)),
            None => (text, None),
        },
    };
    let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    let is_host = |host: &str| {
        !host.is_empty()
            && (host.parse::<IpAddr>().is_ok()
                || host.chars().all(|letter| letter.is_ascii_alphanumeric() || ".-_".contains(letter)))
    };
    let host = match host.strip_prefix('*') {
        Some("") => Pattern::Every,
        Some(domain) if domain.starts_with('.') && is_host(domain) => Pattern::Below(domain.to_owned()),
        None if is_host(&host) => Pattern::Exactly(host),
        _ => return Err(wrong()),
    };
    Ok(Entry { host, port })
}

/// Whether an address is not one of the public internet (RFC 6890).
pub fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => is_private_v6(address),
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b))
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        Ipv4Addr::new(a, b, c, d)
    };
    if let Some(mapped) = address.to_ipv4_mapped() {
        return is_private_v4(mapped);
    }
    match segments {
        // The unspecified address, the loopback and addresses that embed one of IPv4.
        [0, 0, 0, 0, 0, 0, high, low] => {
            address.is_unspecified() || address.is_loopback() || is_private_v4(embedded(high, low))
        }
        // NAT64 (RFC 6052), for the network's own use (RFC 8215), and 6to4.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_private_v4(embedded(high, low)),
        [0x64, 0xff9b, 1, ..] => true,
        [0x2002, high, low, ..] => is_private_v4(embedded(high, low)),
        _ => address.is_unique_local() || address.is_unicast_link_local() || address.is_multicast(),
    }
}
