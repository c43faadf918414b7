//! A digest of the subjects in a page, by which a reader with a filter can skip the page.
//!
//! A set of 256 bits. Each word of each subject, with its place in the subject, sets two of them, and so does the number
//! of words. A page is skipped if a bit is missing that every subject of the filter would set. Pages keep the bits, so
//! they may not change within a kind.

use super::filter::Filter;

/// The digest of a page; its row on disk keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubjectDigest([u8; SubjectDigest::BYTES]);

/// The place of the number of words, which no word has.
const LEN_PLACE: usize = 255;

impl SubjectDigest {
    /// The kind of digest, in the row of a page.
    pub const KIND: u8 = 1;

    /// Its size in bytes.
    pub const BYTES: usize = 32;

    /// The digest of these subjects.
    pub(crate) fn of<'a>(subjects: impl Iterator<Item = &'a [u8]>) -> SubjectDigest {
        let (mut digest, mut before) = (SubjectDigest([0; SubjectDigest::BYTES]), None);
        for subject in subjects {
            // Neighbours often have the same subject.
            if before.replace(subject) != Some(subject) {
                digest.add(subject);
            }
        }
        digest
    }

    /// The digest that was kept as these bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; SubjectDigest::BYTES]) -> SubjectDigest {
        SubjectDigest(bytes)
    }

    /// The bytes to keep.
    #[must_use]
    pub fn bytes(&self) -> [u8; SubjectDigest::BYTES] {
        self.0
    }

    /// Whether the filter may take one of the subjects; if not, it takes none.
    #[must_use]
    pub fn may_have(&self, filter: &Filter) -> bool {
        filter.is_all() || filter.texts().any(|pattern| self.may_match(pattern.as_bytes()))
    }

    fn may_match(&self, pattern: &[u8]) -> bool {
        let mut len = 0;
        for (place, word) in pattern.split(|byte| *byte == b'.').enumerate() {
            match word {
                b">" => return true,
                b"*" => {}
                word if !self.has(place, word) => return false,
                _ => {}
            }
            len = place + 1;
        }
        self.has(LEN_PLACE, &[low(len)])
    }

    fn add(&mut self, subject: &[u8]) {
        let mut len = 0;
        for (place, word) in subject.split(|byte| *byte == b'.').enumerate() {
            self.set(place, word);
            len = place + 1;
        }
        self.set(LEN_PLACE, &[low(len)]);
    }

    fn set(&mut self, place: usize, word: &[u8]) {
        for (byte, bit) in bits(place, word) {
            if let Some(byte) = self.0.get_mut(byte) {
                *byte |= bit;
            }
        }
    }

    fn has(&self, place: usize, word: &[u8]) -> bool {
        bits(place, word).into_iter().all(|(byte, bit)| self.0.get(byte).is_some_and(|byte| byte & bit != 0))
    }
}

/// A place or a number of words; the last one stands for all above it.
fn low(number: usize) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

/// The bits of a word, each as the index of its byte and its value there: two bytes of a hash.
fn bits(place: usize, word: &[u8]) -> [(usize, u8); 2] {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in [low(place)].iter().chain(word) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    // FNV-1a leaves the high bits of short words alike; a step of MurmurHash3 mixes them.
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    [hash >> 48, hash >> 56].map(|part| {
        let at = part as u8;
        (usize::from(at >> 3), 1 << (at & 7))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn digest(subjects: &[&str]) -> SubjectDigest {
        SubjectDigest::of(subjects.iter().map(|subject| subject.as_bytes()))
    }

    fn filter(texts: &[&str]) -> Filter {
        let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
        Filter::of(&texts).expect("it is valid")
    }

    #[test]
    fn a_page_is_skipped_that_has_no_subject_of_the_filter() {
        let digest = digest(&["orders.eu.new", "orders.eu.paid", "orders.us.new"]);
        for (texts, expected) in [
            (&["orders.eu.new"][..], true),
            (&["orders.*.paid"], true),
            (&["orders.>"], true),
            (&[">"], true),
            (&[], true),
            (&["orders.asia.new"], false),
            (&["orders.*"], false),
            (&["orders.*.*.*"], false),
            (&["stock.>"], false),
            (&["*.eu.lost"], false),
            (&["stock.>", "*.us.*"], true),
            // Both words are there, but in no subject together.
            (&["orders.us.paid"], true),
        ] {
            assert_eq!(digest.may_have(&filter(texts)), expected, "{texts:?}");
        }
    }

    #[test]
    fn the_bits_of_a_kind_do_not_change() {
        let set: Vec<usize> = digest(&["a.b"])
            .bytes()
            .iter()
            .enumerate()
            .flat_map(|(at, byte)| {
                (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| at * 8 + bit)
            })
            .collect();
        assert_eq!(set, [7, 101, 118, 136, 159, 182]);
    }

    proptest! {
        #[test]
        fn no_page_is_skipped_that_has_a_subject_of_the_filter(
            subjects in proptest::collection::vec("[a-d]{1,2}(\\.[a-d]{1,2}){0,3}", 0..20),
            pattern in "([a-d]|\\*)(\\.([a-d]|\\*)){0,3}(\\.>)?",
        ) {
            let filter = filter(&[&pattern]);
            let takes = subjects.iter().any(|subject| filter.takes(subject.as_bytes()));
            let subjects: Vec<&str> = subjects.iter().map(String::as_str).collect();
            let digest = SubjectDigest::from_bytes(digest(&subjects).bytes());
            prop_assert!(!takes || digest.may_have(&filter));
        }
    }
}
