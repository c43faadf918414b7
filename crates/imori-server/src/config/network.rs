//! A network such as `10.0.0.0/8`.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::setting::{Setting, Value, quoted};

/// All addresses with a common prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// Whether the network contains an address. An IPv4-mapped IPv6 address counts as IPv4.
    pub fn contains(self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                is_prefix_equal(own.to_bits().into(), other.to_bits().into(), 32, self.bits)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                is_prefix_equal(own.to_bits(), other.to_bits(), 128, self.bits)
            }
            _ => false,
        }
    }
}

fn is_prefix_equal(own: u128, other: u128, width: u8, bits: u8) -> bool {
    (own ^ other).checked_shr(u32::from(width - bits)).unwrap_or(0) == 0
}

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Network, NotANetwork> {
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| NotANetwork)?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(width), |bits| bits.parse::<u8>().map_err(|_| NotANetwork))?;
        if bits > width {
            return Err(NotANetwork);
        }
        Ok(Network { address, bits })
    }
}

/// A text is not a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotANetwork;

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Setting for Network {
    fn read(value: &Value) -> Option<Network> {
        match value {
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    fn expected(_: Option<&RangeInclusive<Network>>) -> String {
        String::from("a network such as `10.0.0.0/8`, or an address")
    }

    fn show(&self) -> String {
        quoted(&self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_addresses_of_its_prefix() {
        for (network, address, is_in) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "::ffff:10.0.0.1", true),
            ("10.0.0.1", "10.0.0.1", true),
            ("10.0.0.1", "10.0.0.2", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "2001:db8::1", true),
            ("2001:db8::/32", "2001:db8:1::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
        ] {
            let network: Network = network.parse().unwrap();
            assert_eq!(network.contains(address.parse().unwrap()), is_in, "{network} {address}");
        }
        for text in ["", "10.0.0.0/33", "10.0.0.0/", "10.0.0/8", "::/129", "host", "10.0.0.0/-1"] {
            assert_eq!(text.parse::<Network>(), Err(NotANetwork), "{text}");
        }
    }
}
