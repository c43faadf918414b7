//! Addresses that the broker fetches from.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::setting::{Setting, Value, quoted};

/// An `https://` address, or an `http://` address on this machine: plain HTTP from elsewhere cannot be trusted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WebAddress(String);

impl WebAddress {
    /// The address as given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WebAddress {
    type Err = NotAWebAddress;

    fn from_str(text: &str) -> Result<WebAddress, NotAWebAddress> {
        let host = |rest: &str| {
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default().to_owned();
            let is_sound = !authority.is_empty() && !authority.contains(['@', ' ']);
            (is_sound && !rest.contains(char::is_whitespace)).then_some(authority)
        };
        let is_taken = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
            (Some(rest), _) => host(rest).is_some(),
            (None, Some(rest)) => host(rest).is_some_and(|host| is_this_machine(&host)),
            (None, None) => false,
        };
        is_taken.then(|| WebAddress(text.to_owned())).ok_or(NotAWebAddress)
    }
}

/// Whether a host, with or without a port, is this machine.
fn is_this_machine(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl Setting for WebAddress {
    fn read(value: &Value) -> Option<WebAddress> {
        match value {
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    fn expected(_: Option<&RangeInclusive<WebAddress>>) -> String {
        NotAWebAddress.to_string()
    }

    fn show(&self) -> String {
        quoted(&self.0)
    }
}

/// A text is not an address to fetch from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAWebAddress;

impl fmt::Display for NotAWebAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address such as `https://id.example/keys`; `http://` is for this machine alone")
    }
}

impl std::error::Error for NotAWebAddress {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_tls_is_of_this_machine() {
        for (text, is_taken) in [
            ("https://id.example/keys?a=b", true),
            ("http://localhost:8080/keys", true),
            ("http://127.0.0.1/keys", true),
            ("http://[::1]:80/keys", true),
            ("http://id.example/keys", false),
            ("http://localhost@id.example/keys", false),
            ("http://127.0.0.1.example/keys", false),
            ("https://", false),
            ("https://a b/", false),
            ("file:///etc/passwd", false),
            ("", false),
        ] {
            assert_eq!(text.parse::<WebAddress>().is_ok(), is_taken, "{text}");
        }
    }
}
