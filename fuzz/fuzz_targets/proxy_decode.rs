//! Any bytes as the header of the PROXY protocol, whole and in pieces.
//!
//! Held: nothing panics; what is awaited never shrinks while bytes come and stays within the limit; a header that is read
//! gives the same when it is written anew by the specification. The first byte chooses whether the signature stands before
//! the input, which the fuzzer would have to guess.

use std::net::SocketAddr;

/// The reader itself: it needs nothing of the server.
#[path = "../../crates/imori-server/src/peers/proxy.rs"]
mod proxy;

use proxy::{Proxied, begins_header, header_bytes, read_header};

use crate::planted::fail_if_planted;

/// PROXY protocol, 2.2.
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// The fixed part and the most that may follow it.
const HEADER_BYTES_MAX: usize = 16 + 2 * 1024;

/// Runs one input.
pub(crate) fn test_one_input(data: &[u8]) {
    let [choice, input @ ..] = data else { return };
    let before = if choice % 2 == 0 { SIGNATURE } else { b"" };
    let bytes = [before, input].concat();
    let Some(len) = awaited(&bytes) else { return };
    let Some(header) = bytes.get(..len) else { return };
    let Ok(read) = read_header(header) else { return };
    planted(&read);
    assert_eq!(read_header(&written(&read)), Ok(read), "what was read can be written");
}

/// Gives the bytes of the header, as they are known once all have come; `None` where it is none.
fn awaited(bytes: &[u8]) -> Option<usize> {
    let mut awaited = 0;
    for end in 0..=bytes.len().min(HEADER_BYTES_MAX) {
        let piece = bytes.get(..end).unwrap_or_default();
        match header_bytes(piece) {
            Ok(len) => {
                assert!(len >= awaited && len <= HEADER_BYTES_MAX, "{len} after {awaited}");
                assert!(piece.is_empty() || begins_header(piece));
                awaited = len;
            }
            Err(error) => {
                let whole = header_bytes(bytes);
                assert_eq!(whole, Err(error), "more bytes make no header of what is none");
                return None;
            }
        }
        if end == awaited {
            return Some(awaited);
        }
    }
    Some(awaited)
}

/// Writes the header of a client, with a fact about its TLS.
fn written(of: &Proxied) -> Vec<u8> {
    let (command, family, addresses) = match of.source {
        None => (0x20, 0, Vec::new()),
        Some(SocketAddr::V4(source)) => {
            let port = source.port().to_be_bytes();
            (0x21, 0x11, [&source.ip().octets()[..], &[0; 4], &port, &[0; 2]].concat())
        }
        Some(SocketAddr::V6(source)) => {
            let port = source.port().to_be_bytes();
            (0x21, 0x21, [&source.ip().octets()[..], &[0; 16], &port, &[0; 2]].concat())
        }
    };
    let facts = [0x20, 0, 5, u8::from(of.is_encrypted), 0, 0, 0, 0];
    let rest = [addresses.as_slice(), &facts].concat();
    let len = u16::try_from(rest.len()).unwrap_or_default().to_be_bytes();
    [SIGNATURE, &[command, family], &len, &rest].concat()
}

/// Does nothing unless a fault is planted: then a client with TLS is one too many.
fn planted(read: &Proxied) {
    fail_if_planted(read.is_encrypted);
}
