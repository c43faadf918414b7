//! Host names under which the broker can be reached.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::setting::{Setting, Value, quoted};

/// Longest host name. (RFC 1035 section 2.3.4)
const HOST_CHARS_MAX: usize = 253;

/// Longest label of a host name.
const LABEL_CHARS_MAX: usize = 63;

/// The name of a host, without scheme and port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostName(String);

impl HostName {
    /// The name as given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostName {
    type Err = NotAHost;

    fn from_str(text: &str) -> Result<HostName, NotAHost> {
        is_host(text).then(|| HostName(text.to_owned())).ok_or(NotAHost::Name)
    }
}

/// A host and a port, as in the `connect_urls` of a NATS INFO.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostAndPort(String);

impl HostAndPort {
    /// The text as given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The host without the brackets of an IPv6 address, and the port.
    pub(crate) fn parts(&self) -> Option<(String, u16)> {
        let (host, port) = self.0.rsplit_once(':')?;
        Some((host.trim_matches(['[', ']']).to_owned(), port.parse().ok()?))
    }
}

impl FromStr for HostAndPort {
    type Err = NotAHost;

    fn from_str(text: &str) -> Result<HostAndPort, NotAHost> {
        let (host, port) = text.rsplit_once(':').ok_or(NotAHost::Address)?;
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_known = match bracketed {
            Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
            None => is_host(host),
        };
        let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
        (is_known && is_port).then(|| HostAndPort(text.to_owned())).ok_or(NotAHost::Address)
    }
}

/// Whether a text is a valid host name. Underscores are allowed because container networks use them.
fn is_host(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= LABEL_CHARS_MAX
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    text.len() <= HOST_CHARS_MAX && text.split('.').all(is_label)
}

macro_rules! text_setting {
    ($type:ty, $expected:expr) => {
        impl Setting for $type {
            fn read(value: &Value) -> Option<$type> {
                match value {
                    Value::Text(text) => text.parse().ok(),
                    _ => None,
                }
            }

            fn expected(_: Option<&RangeInclusive<$type>>) -> String {
                $expected.to_string()
            }

            fn show(&self) -> String {
                quoted(&self.0)
            }
        }
    };
}

text_setting!(HostName, NotAHost::Name);
text_setting!(HostAndPort, NotAHost::Address);

/// A text is not a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAHost {
    /// Not a valid name.
    Name,
    /// Not a valid name with a port.
    Address,
}

impl fmt::Display for NotAHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotAHost::Name => "a host name such as `mq.example`, without scheme and port",
            NotAHost::Address => {
                "a host and a port such as `mq.example:4222` or `[2001:db8::1]:4222`, without a scheme"
            }
        })
    }
}

impl std::error::Error for NotAHost {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_name_has_neither_scheme_nor_port() {
        for (text, is_taken) in [
            ("mq.example", true),
            ("MQ-1", true),
            ("imori_1", true),
            ("10.0.0.1", true),
            ("", false),
            ("mq..example", false),
            ("-mq", false),
            ("mq-", false),
            ("mq.example:61613", false),
            ("http://mq.example", false),
            ("mq example", false),
            ("*.example", false),
        ] {
            assert_eq!(text.parse::<HostName>().is_ok(), is_taken, "{text}");
        }
        assert!("a".repeat(64).parse::<HostName>().is_err());
    }

    #[test]
    fn an_address_has_a_port() {
        for (text, is_taken) in [
            ("mq.example:4222", true),
            ("127.0.0.1:1", true),
            ("[::1]:4222", true),
            ("mq.example", false),
            ("mq.example:0", false),
            ("mq.example:65536", false),
            ("mq.example:", false),
            (":4222", false),
            ("::1:4222", false),
            ("[mq.example]:4222", false),
            ("nats://mq.example:4222", false),
        ] {
            assert_eq!(text.parse::<HostAndPort>().is_ok(), is_taken, "{text}");
        }
    }
}
