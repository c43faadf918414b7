//! The first bytes of an AMQP connection, by which the client chooses the version.

use std::task::{Poll, ready};

use imori_core::time::Time;

use crate::config::Spoken;

/// The number of bytes that always suffice.
const BYTES_MAX: usize = 6;

/// The start of a protocol header being read; nothing after the byte that decides is read.
#[derive(Debug)]
pub(super) struct Preface {
    bytes: [u8; BYTES_MAX],
    len: usize,
    /// The end of the login timeout.
    pub(super) until: Time,
}

impl Preface {
    /// A preface of which nothing has been read.
    pub(super) fn new(until: Time) -> Preface {
        Preface { bytes: [0; BYTES_MAX], len: 0, until }
    }

    /// The bytes read so far. The chosen protocol has to see them too.
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Reads on; ready once the version is chosen. `None` if the client disconnected.
    pub(super) fn poll(&mut self, mut read: impl FnMut(&mut [u8]) -> Poll<usize>) -> Poll<Option<Spoken>> {
        loop {
            if let Some(version) = version(self.bytes()) {
                return Poll::Ready(Some(version));
            }
            match ready!(read(self.bytes.get_mut(self.len..).unwrap_or_default())) {
                0 => return Poll::Ready(None),
                bytes => self.len += bytes,
            }
        }
    }
}

/// The version that a connection's first bytes choose; `None` if more bytes are needed. A header of AMQP 1.0 has a
/// protocol id followed by a major version of 1 or more; those of 0-9-1 and earlier have 0 or 1, then 0 or 1. AMQP 0-9-1
/// answers anything that is no header.
fn version(first: &[u8]) -> Option<Spoken> {
    match first {
        [b'A', b'M', b'Q', b'P', 2..=u8::MAX, ..] | [b'A', b'M', b'Q', b'P', 0, 1..=u8::MAX, ..] => {
            Some(Spoken::Amqp10)
        }
        [b'A', b'M', b'Q', b'P', 0] => None,
        _ if first.len() <= 4 && b"AMQP".starts_with(first) => None,
        _ => Some(Spoken::Amqp091),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSIONS: [(&[u8], Option<Spoken>); 16] = [
        (b"", None),
        (b"A", None),
        (b"AMQP", None),
        (b"AMQP\0", None),
        (b"AMQP\0\0", Some(Spoken::Amqp091)),
        (b"AMQP\0\0\x09\x01", Some(Spoken::Amqp091)),
        (b"AMQP\x01\x01\x08\x00", Some(Spoken::Amqp091)),
        (b"AMQP\0\x01\0\0", Some(Spoken::Amqp10)),
        (b"AMQP\x03", Some(Spoken::Amqp10)),
        (b"AMQP\x02\x01\0\0", Some(Spoken::Amqp10)),
        (b"AMQP\x04", Some(Spoken::Amqp10)),
        (b"AMQP\xff\0\0\0", Some(Spoken::Amqp10)),
        (b"AMQP\0\x02\0\0", Some(Spoken::Amqp10)),
        (b"AMQP\x01\0\0\0", Some(Spoken::Amqp091)),
        (b"G", Some(Spoken::Amqp091)),
        (b"AMQX", Some(Spoken::Amqp091)),
    ];

    #[test]
    fn the_first_bytes_choose_the_version() {
        for (first, expected) in VERSIONS {
            assert_eq!(version(first), expected, "{first:?}");
        }
    }

    /// A socket on which these pieces arrive one after another.
    fn socket<'a>(pieces: &mut impl Iterator<Item = &'a [u8]>) -> impl FnMut(&mut [u8]) -> Poll<usize> {
        move |room: &mut [u8]| match pieces.next() {
            Some(piece) => {
                let len = piece.len().min(room.len());
                room[..len].copy_from_slice(&piece[..len]);
                Poll::Ready(len)
            }
            None => Poll::Pending,
        }
    }

    #[test]
    fn the_version_is_chosen_however_the_bytes_arrive() {
        for (first, expected) in VERSIONS {
            let expected = expected.map_or(Poll::Pending, |version| Poll::Ready(Some(version)));
            let mut whole = Preface::new(Time(0));
            assert_eq!(
                whole.poll(socket(&mut std::iter::once(first).filter(|first| !first.is_empty()))),
                expected
            );
            assert_eq!(
                whole.bytes(),
                &first[..first.len().min(BYTES_MAX)],
                "the rest is left to the connection"
            );
            let mut singly = Preface::new(Time(0));
            let mut decided_at = None;
            for (at, byte) in first.chunks(1).enumerate() {
                if decided_at.is_none() && singly.poll(socket(&mut std::iter::once(byte))).is_ready() {
                    decided_at = Some(at);
                }
            }
            assert_eq!(singly.poll(socket(&mut std::iter::empty())), expected, "{first:?}, byte by byte");
            let read = decided_at.map_or(first.len(), |at| at + 1);
            assert_eq!(singly.bytes(), &first[..read], "not a byte behind the one that decides is read");
        }
    }

    #[test]
    fn a_client_that_leaves_before_the_version_is_known_has_none() {
        let mut preface = Preface::new(Time(0));
        assert_eq!(preface.poll(socket(&mut [&b"AMQ"[..], b""].into_iter())), Poll::Ready(None));
    }
}
