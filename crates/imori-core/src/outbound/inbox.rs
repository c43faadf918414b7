//! Inboxes: reply addresses that the broker makes. An address says where its owner is found, and only its 128
//! random bits open the inbox.

use std::sync::Arc;

use crate::id::{ConnectionId, QueueId, ReaderId, VhostId};
use crate::message::{Address, DEFAULT_EXCHANGE};

/// The prefix of an inbox's routing key, on the default exchange.
pub const INBOX_PREFIX: &[u8] = b"imori.inbox.";

/// The prefix of the names of temporary queues that replies may pass.
const REPLY_QUEUE_PREFIX: &[u8] = b"amq.gen-";

/// Bytes of an inbox address before it is written as text: cell, slot, generation, index, secret.
const ADDRESS_BYTES: usize = 2 + 4 + 4 + 2 + 16;

/// Characters of the text after the prefix.
const ADDRESS_CHARS: usize = (ADDRESS_BYTES * 8).div_ceil(6);

/// Where an inbox is, with the secret that keeps others from guessing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InboxAddress {
    /// The owning connection.
    pub owner: ConnectionId,
    /// The inbox's index in that connection.
    pub index: u16,
    /// A secret that cannot be guessed: only clients that were given the address can reply.
    pub secret: [u8; 16],
}

/// An inbox, as its owner keeps it.
#[derive(Debug)]
pub(super) struct Inbox {
    /// The slot of its session.
    pub(super) session: u16,
    /// Distinguishes the inbox from earlier ones with the same index.
    pub(super) serial: u32,
    pub(super) name: Box<[u8]>,
    pub(super) label: Box<[u8]>,
    pub(super) secret: [u8; 16],
    /// The address that replies are published to.
    pub(super) address: Arc<Address>,
}

impl Inbox {
    pub(super) fn is_opened_by(&self, secret: &[u8; 16]) -> bool {
        is_equal(&self.secret, secret)
    }
}

/// A temporary queue. It acts as an inbox while its only reader settles nothing and no message waits.
#[derive(Debug)]
struct ReplyQueue {
    vhost: VhostId,
    secret: [u8; 16],
    address: Arc<Address>,
    /// The queue and its only reader; `None` while messages have to go through the queue.
    reader: Option<(QueueId, ReaderId)>,
}

/// A way past a temporary queue to its reader.
#[derive(Debug)]
pub(super) struct Pass {
    pub(super) queue: QueueId,
    pub(super) reader: ReaderId,
    pub(super) address: Arc<Address>,
}

/// The temporary queues that replies may pass, by index; `None` where one was deleted.
#[derive(Debug, Default)]
pub(super) struct ReplyQueues(Vec<Option<ReplyQueue>>);

impl ReplyQueues {
    /// Adds a queue with this secret; `None` if there are `max` already.
    pub(super) fn add(
        &mut self,
        owner: ConnectionId,
        vhost: VhostId,
        secret: [u8; 16],
        max: u16,
    ) -> Option<InboxAddress> {
        let free = self.0.iter().position(Option::is_none).unwrap_or(self.0.len());
        let index = u16::try_from(free).ok().filter(|index| *index < max)?;
        let address = InboxAddress { owner, index, secret };
        let key = Arc::new(Address::new(DEFAULT_EXCHANGE, &address.to_queue_name()));
        let queue = Some(ReplyQueue { vhost, secret, address: key, reader: None });
        match self.0.get_mut(free) {
            Some(place) => *place = queue,
            None => self.0.push(queue),
        }
        Some(address)
    }

    /// Sets the queue and its only reader, if there is one that settles nothing.
    pub(super) fn set_reader(&mut self, of: &InboxAddress, reader: Option<(QueueId, ReaderId)>) {
        if let Some(Some(queue)) = self.0.get_mut(usize::from(of.index))
            && is_equal(&queue.secret, &of.secret)
        {
            queue.reader = reader;
        }
    }

    pub(super) fn remove(&mut self, of: &InboxAddress) {
        if let Some(place) = self.0.get_mut(usize::from(of.index)) {
            place.take_if(|queue| is_equal(&queue.secret, &of.secret));
        }
    }

    /// The way past this queue, for publishers in the same vhost.
    pub(super) fn pass(&self, to: &InboxAddress, vhost: VhostId) -> Option<Pass> {
        let queue = self.0.get(usize::from(to.index))?.as_ref()?;
        let (id, reader) = queue.reader?;
        let is_it = queue.vhost == vhost && is_equal(&queue.secret, &to.secret);
        is_it.then(|| Pass { queue: id, reader, address: Arc::clone(&queue.address) })
    }
}

/// Compares in constant time, so that timing does not reveal how much of a guess is right.
fn is_equal(secret: &[u8; 16], guess: &[u8; 16]) -> bool {
    secret.iter().zip(guess).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

impl InboxAddress {
    /// The routing key of the inbox on the default exchange.
    pub fn to_key(&self) -> Vec<u8> {
        self.behind(INBOX_PREFIX)
    }

    /// The name of the temporary queue behind the inbox.
    pub fn to_queue_name(&self) -> Vec<u8> {
        self.behind(REPLY_QUEUE_PREFIX)
    }

    fn behind(&self, prefix: &[u8]) -> Vec<u8> {
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
        let mut key = Vec::with_capacity(prefix.len() + ADDRESS_CHARS);
        key.extend_from_slice(prefix);
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

    /// Parses a routing key; `None` if it is not an inbox's.
    pub fn from_key(key: &[u8]) -> Option<InboxAddress> {
        InboxAddress::read(key.strip_prefix(INBOX_PREFIX)?)
    }

    /// Parses the name of a queue; `None` if it is not a temporary queue that replies may pass.
    #[inline]
    pub fn from_queue_name(name: &[u8]) -> Option<InboxAddress> {
        InboxAddress::read(name.strip_prefix(REPLY_QUEUE_PREFIX)?)
    }

    fn read(text: &[u8]) -> Option<InboxAddress> {
        let text: &[u8; ADDRESS_CHARS] = text.try_into().ok()?;
        let ([owner, inbox, first, second], last) = text.as_chunks::<8>() else { return None };
        let (owner, inbox) = (bits(owner)?, bits(inbox)?);
        let (first, second, last) = (bits(first)?, bits(second)?, bits(<&[u8; 6]>::try_from(last).ok()?)?);
        // Each address has a single text: the unused bits of the last character have to be zero.
        if last & 0xf != 0 {
            return None;
        }
        let secret = u128::from(first) << 80 | u128::from(second) << 32 | u128::from(last >> 4);
        Some(InboxAddress {
            owner: ConnectionId {
                cell: (owner >> 32) as u16,
                slot: owner as u32,
                generation: (inbox >> 16) as u32,
            },
            index: inbox as u16,
            secret: secret.to_be_bytes(),
        })
    }
}

/// Decodes these characters, six bits each; `None` if one is outside the alphabet. The count is a constant,
/// so that the compiler unrolls the loop.
#[inline(always)]
fn bits<const N: usize>(digits: &[u8; N]) -> Option<u64> {
    // A character outside the alphabet sets bits that no value has: all are checked together at the end.
    let (mut bits, mut all) = (0, 0);
    for digit in digits {
        let value = value(*digit);
        all |= value;
        bits = bits << 6 | u64::from(value);
    }
    if all > VALUE_MAX { None } else { Some(bits) }
}

/// The alphabet of RFC 4648, section 5: safe in URLs, destinations and subjects.
const fn digit(value: u8) -> u8 {
    match value {
        0..26 => b'A' + value,
        26..52 => b'a' + (value - 26),
        52..62 => b'0' + (value - 52),
        62 => b'-',
        _ => b'_',
    }
}

/// The largest value of a character.
const VALUE_MAX: u8 = 63;

/// The value of each character; above [`VALUE_MAX`] outside the alphabet.
const VALUES: [u8; 256] = {
    let mut values = [u8::MAX; 256];
    let mut value = 0;
    while value <= VALUE_MAX {
        values[digit(value) as usize] = value;
        value += 1;
    }
    values
};

fn value(character: u8) -> u8 {
    VALUES[usize::from(character)]
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
                let name = written.to_queue_name();
                assert_eq!(InboxAddress::from_queue_name(&name), Some(written));
                assert_eq!(
                    (InboxAddress::from_key(&name), InboxAddress::from_queue_name(&key)),
                    (None, None)
                );
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
