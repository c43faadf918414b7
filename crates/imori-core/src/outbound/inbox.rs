//! Reply addresses that the broker makes: found by where they say their owner sits,
//! opened only by the 128 random bits they carry.

use std::sync::Arc;

use crate::id::ConnectionId;
use crate::message::Address;

/// How the routing key of an inbox begins, on the default exchange.
pub const INBOX_PREFIX: &[u8] = b"imori.inbox.";

/// Bytes of an inbox address before it is written as text: cell, slot, generation, index, secret.
const ADDRESS_BYTES: usize = 2 + 4 + 4 + 2 + 16;

/// Characters of the text after the prefix.
const ADDRESS_CHARS: usize = (ADDRESS_BYTES * 8).div_ceil(6);

/// The address of an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InboxAddress {
    /// Whose it is.
    pub owner: ConnectionId,
    /// Which of the owner's.
    pub index: u16,
    /// A secret that nobody can guess, so that only those who were told the address can reply.
    pub secret: [u8; 16],
}

/// An inbox as its owner keeps it.
#[derive(Debug)]
pub(super) struct Inbox {
    /// The slot of its session.
    pub(super) session: u16,
    /// Tells it from others that had its index before.
    pub(super) serial: u32,
    pub(super) name: Box<[u8]>,
    pub(super) label: Box<[u8]>,
    pub(super) secret: [u8; 16],
    /// Where it is, as those who reply say it.
    pub(super) address: Arc<Address>,
}

impl Inbox {
    /// Compares in a time that does not tell how much of a guess is right.
    pub(super) fn is_opened_by(&self, secret: &[u8; 16]) -> bool {
        self.secret.iter().zip(secret).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
    }
}

impl InboxAddress {
    /// The routing key by which the inbox is reached on the default exchange.
    pub fn to_key(&self) -> Vec<u8> {
        let mut bytes = [0; ADDRESS_BYTES];
        let parts: [&[u8]; 5] = [
            &self.owner.cell.to_be_bytes(),
            &self.owner.slot.to_be_bytes(),
            &self.owner.generation.to_be_bytes(),
            &self.index.to_be_bytes(),
            &self.secret,
        ];
        for (place, byte) in bytes.iter_mut().zip(parts.concat()) {
            *place = byte;
        }
        let mut key = Vec::with_capacity(INBOX_PREFIX.len() + ADDRESS_CHARS);
        key.extend_from_slice(INBOX_PREFIX);
        let mut bits: u32 = 0;
        let mut len = 0;
        for byte in bytes {
            bits = (bits << 8 | u32::from(byte)) & 0xffff;
            len += 8;
            while len >= 6 {
                len -= 6;
                key.push(digit((bits >> len & 63) as u8));
            }
        }
        if len > 0 {
            key.push(digit((bits << (6 - len) & 63) as u8));
        }
        key
    }

    /// Reads a routing key; `None` where it is not that of an inbox.
    pub fn from_key(key: &[u8]) -> Option<InboxAddress> {
        let text = key.strip_prefix(INBOX_PREFIX)?;
        if text.len() != ADDRESS_CHARS {
            return None;
        }
        let mut bytes = [0; ADDRESS_BYTES];
        let mut places = bytes.iter_mut();
        let mut bits: u32 = 0;
        let mut len = 0;
        for character in text {
            bits = (bits << 6 | u32::from(value(*character)?)) & 0xffff;
            len += 6;
            if len >= 8 {
                len -= 8;
                *places.next()? = (bits >> len & 0xff) as u8;
            }
        }
        // An address has only one text: bits of the last character that belong to no byte are zero.
        if bits & ((1 << len) - 1) != 0 {
            return None;
        }
        let (cell, rest) = bytes.split_first_chunk::<2>()?;
        let (slot, rest) = rest.split_first_chunk::<4>()?;
        let (generation, rest) = rest.split_first_chunk::<4>()?;
        let (index, rest) = rest.split_first_chunk::<2>()?;
        let secret = rest.first_chunk::<16>()?;
        Some(InboxAddress {
            owner: ConnectionId {
                cell: u16::from_be_bytes(*cell),
                slot: u32::from_be_bytes(*slot),
                generation: u32::from_be_bytes(*generation),
            },
            index: u16::from_be_bytes(*index),
            secret: *secret,
        })
    }
}

/// The alphabet of RFC 4648, section 5: safe in URLs, destinations and subjects.
fn digit(value: u8) -> u8 {
    match value {
        0..26 => b'A' + value,
        26..52 => b'a' + (value - 26),
        52..62 => b'0' + (value - 52),
        62 => b'-',
        _ => b'_',
    }
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'-' => Some(62),
        b'_' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address() -> InboxAddress {
        let owner = ConnectionId { cell: 0x0102, slot: u32::MAX, generation: 0x1020_3040 };
        InboxAddress { owner, index: 513, secret: *b"0123456789abcdef" }
    }

    #[test]
    fn an_address_is_read_as_it_was_written() {
        for cell in [0, 1, u16::MAX] {
            for fill in [0, 0x55, 0xff] {
                let owner = ConnectionId { cell, ..address().owner };
                let written = InboxAddress { owner, secret: [fill; 16], ..address() };
                let key = written.to_key();
                assert_eq!(key.len(), INBOX_PREFIX.len() + ADDRESS_CHARS);
                assert_eq!(InboxAddress::from_key(&key), Some(written));
            }
        }
    }

    #[test]
    fn what_is_not_an_address_is_none() {
        let key = address().to_key();
        for len in 0..key.len() {
            assert_eq!(InboxAddress::from_key(&key[..len]), None, "{len} bytes of it");
        }
        assert_eq!(InboxAddress::from_key(&[&key[..], b"A"].concat()), None);
        for index in 0..key.len() {
            for byte in 0..=u8::MAX {
                let mut other = key.clone();
                other[index] = byte;
                let read = InboxAddress::from_key(&other);
                assert_eq!(read == Some(address()), other == key, "byte {byte} at {index}");
                // SECURITY AUTH-06: one address, one way to write it.
                assert!(read.is_none_or(|read| read.to_key() == other), "byte {byte} at {index}");
            }
        }
    }
}
