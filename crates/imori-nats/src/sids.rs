//! The client's names for its subscriptions; mostly numbers, which need less memory than texts.

use std::collections::BTreeMap;

use imori_core::id::ReaderId;

/// The subscriptions of a connection by sid.
#[derive(Debug, Default)]
pub(crate) struct Sids {
    numbers: BTreeMap<u64, ReaderId>,
    texts: BTreeMap<Box<[u8]>, ReaderId>,
}

impl Sids {
    pub(crate) fn len(&self) -> usize {
        self.numbers.len() + self.texts.len()
    }

    pub(crate) fn get(&self, sid: &[u8]) -> Option<ReaderId> {
        match number(sid) {
            Some(number) => self.numbers.get(&number).copied(),
            None => self.texts.get(sid).copied(),
        }
    }

    pub(crate) fn insert(&mut self, sid: &[u8], reader: ReaderId) {
        match number(sid) {
            Some(number) => self.numbers.insert(number, reader),
            None => self.texts.insert(sid.into(), reader),
        };
    }

    pub(crate) fn remove(&mut self, sid: &[u8]) -> Option<ReaderId> {
        match number(sid) {
            Some(number) => self.numbers.remove(&number),
            None => self.texts.remove(sid),
        }
    }
}

/// Returns the number that `sid` is the canonical text of, if any.
fn number(sid: &[u8]) -> Option<u64> {
    let is_canonical = sid.len() <= 19 && (sid == b"0" || sid.first().is_some_and(|first| *first != b'0'));
    if !is_canonical {
        return None;
    }
    crate::codec::number::parse_u64(sid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sids_are_told_apart_byte_for_byte() {
        let mut sids = Sids::default();
        let texts = ["1", "01", "0", "00", "", "a", "18446744073709551615", "9999999999999999999", "1 "];
        for (text, slot) in texts.iter().zip(0..) {
            assert_eq!(sids.get(text.as_bytes()), None, "{text:?}");
            sids.insert(text.as_bytes(), ReaderId { slot, generation: 0 });
        }
        assert_eq!(sids.len(), texts.len());
        for (text, slot) in texts.iter().zip(0..) {
            let expected = Some(ReaderId { slot, generation: 0 });
            assert_eq!(sids.get(text.as_bytes()), expected, "{text:?}");
            assert_eq!(sids.remove(text.as_bytes()), expected, "{text:?}");
        }
        assert_eq!(sids.len(), 0);
    }
}
