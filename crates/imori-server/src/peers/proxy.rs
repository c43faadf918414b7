//! The header in which a proxy names its client: PROXY protocol, version 2.
//!
//! Version 1, a line of text, is not supported.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// PROXY protocol, 2.2: the first bytes of every header.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// Bytes of a header before the addresses.
const HEAD_BYTES: usize = 16;

/// Largest addresses and TLVs; a longer header is refused. Proxies send a few dozen bytes and a certificate's name.
const REST_BYTES_MAX: usize = 2 * 1024;

/// Version 2 and LOCAL: the proxy connects on its own behalf.
const LOCAL: u8 = 0x20;

/// Version 2 and PROXY.
const PROXIED: u8 = 0x21;

/// TCP over IPv4 and over IPv6.
const TCP4: u8 = 0x11;
const TCP6: u8 = 0x21;

/// The TLV about the client's TLS, and its bit for a connection that uses TLS.
const SSL: u8 = 0x20;
const SSL_USED: u8 = 1;

/// The client of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Proxied {
    /// The client's address; `None` if the proxy connects on its own behalf.
    pub(crate) source: Option<SocketAddr>,
    /// Whether the client uses TLS towards the proxy.
    pub(crate) is_encrypted: bool,
}

/// The bytes are not a header of version 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotAHeader;

/// Whether the bytes, as far as they go, begin a header.
pub(crate) fn begins_header(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().zip(SIGNATURE).all(|(byte, expected)| byte == expected)
}

/// Total length of the header that begins with `bytes`, or the length needed to know it.
pub(crate) fn header_bytes(bytes: &[u8]) -> Result<usize, NotAHeader> {
    if !bytes.is_empty() && !begins_header(bytes) {
        return Err(NotAHeader);
    }
    match bytes {
        [_, _, _, _, _, _, _, _, _, _, _, _, _, _, high, low, ..] => {
            let rest = usize::from(u16::from_be_bytes([*high, *low]));
            if rest > REST_BYTES_MAX { Err(NotAHeader) } else { Ok(HEAD_BYTES + rest) }
        }
        _ => Ok(HEAD_BYTES),
    }
}

/// Parses a complete header.
pub(crate) fn read_header(bytes: &[u8]) -> Result<Proxied, NotAHeader> {
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES).ok_or(NotAHeader)?;
    let [.., command, family, _, _] = head else { return Err(NotAHeader) };
    match *command {
        LOCAL => return Ok(Proxied { source: None, is_encrypted: false }),
        PROXIED => {}
        _ => return Err(NotAHeader),
    }
    let (source, facts) = match *family {
        TCP4 => {
            let (addresses, facts) = rest.split_at_checked(12).ok_or(NotAHeader)?;
            (SocketAddr::from((Ipv4Addr::from(array::<4>(addresses, 0)?), port(addresses, 8)?)), facts)
        }
        TCP6 => {
            let (addresses, facts) = rest.split_at_checked(36).ok_or(NotAHeader)?;
            (SocketAddr::from((Ipv6Addr::from(array::<16>(addresses, 0)?), port(addresses, 32)?)), facts)
        }
        _ => return Err(NotAHeader),
    };
    Ok(Proxied { source: Some(source), is_encrypted: is_encrypted(facts)? })
}

/// Searches the TLVs after the addresses.
fn is_encrypted(mut facts: &[u8]) -> Result<bool, NotAHeader> {
    let mut is_encrypted = false;
    while let [kind, high, low, rest @ ..] = facts {
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        let (value, behind) = rest.split_at_checked(len).ok_or(NotAHeader)?;
        if *kind == SSL {
            is_encrypted = value.first().is_some_and(|bits| bits & SSL_USED != 0);
        }
        facts = behind;
    }
    if facts.is_empty() { Ok(is_encrypted) } else { Err(NotAHeader) }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], NotAHeader> {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).copied().ok_or(NotAHeader)
}

fn port(bytes: &[u8], at: usize) -> Result<u16, NotAHeader> {
    array(bytes, at).map(u16::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let len = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [SIGNATURE.as_slice(), &[command, family], &len, rest].concat()
    }

    fn v4(facts: &[u8]) -> Vec<u8> {
        let addresses = [203, 0, 113, 9, 192, 0, 2, 1, 0x30, 0x39, 0x16, 0x28];
        header(PROXIED, TCP4, &[addresses.as_slice(), facts].concat())
    }

    #[test]
    fn a_header_tells_for_whom_a_proxy_connects() {
        let of_v4 =
            |is_encrypted| Ok(Proxied { source: Some("203.0.113.9:12345".parse().unwrap()), is_encrypted });
        let v6: Vec<u8> = [&[0x20, 1, 0x0d, 0xb8][..], &[0; 11], &[7], &[0; 16], &[0, 80, 0, 81]].concat();
        for (bytes, expected) in [
            (v4(&[]), of_v4(false)),
            (v4(&[SSL, 0, 5, 1, 0, 0, 0, 0]), of_v4(true)),
            (v4(&[4, 0, 0, SSL, 0, 5, 0, 0, 0, 0, 0]), of_v4(false)),
            (
                header(PROXIED, TCP6, &v6),
                Ok(Proxied { source: Some("[2001:db8::7]:80".parse().unwrap()), is_encrypted: false }),
            ),
            (header(LOCAL, 0, &[]), Ok(Proxied { source: None, is_encrypted: false })),
            (v4(&[SSL, 0, 5, 1]), Err(NotAHeader)),
            (v4(&[SSL]), Err(NotAHeader)),
            (header(PROXIED, TCP4, &[1, 2, 3]), Err(NotAHeader)),
            (header(PROXIED, TCP6, &[0; 12]), Err(NotAHeader)),
            (header(PROXIED, 0x12, &[0; 12]), Err(NotAHeader)),
            (header(0x11, TCP4, &[0; 12]), Err(NotAHeader)),
            (header(0x22, TCP4, &[0; 12]), Err(NotAHeader)),
        ] {
            assert_eq!(header_bytes(&bytes), Ok(bytes.len()));
            assert_eq!(read_header(&bytes), expected, "{bytes:?}");
            for end in 0..bytes.len() {
                let wanted = header_bytes(&bytes[..end]).expect("as far as it goes it is one");
                assert!(end < wanted && wanted <= bytes.len(), "{end} of {bytes:?}");
                // Incomplete headers are never parsed; parsing one must still not panic.
                let _ = read_header(&bytes[..end]);
            }
        }
        for bytes in [&b"CONNECT\n"[..], b"\r\n\r\n\0\r\nQUIP\n", b"PROXY TCP4 203.0.113.9"] {
            assert_eq!(header_bytes(bytes), Err(NotAHeader));
        }
        assert_eq!(
            header_bytes(&[SIGNATURE.as_slice(), &[PROXIED, TCP4, 0xff, 0xff]].concat()),
            Err(NotAHeader)
        );
    }
}
