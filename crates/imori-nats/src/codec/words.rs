//! Searches eight bytes at a time. The fields of a control line are too short for vector
//! instructions, which take longer to start.

const LOW_BITS: u64 = u64::MAX / 255;
const HIGH_BITS: u64 = LOW_BITS << 7;
const DOTS: u64 = LOW_BITS * b'.' as u64;
const AFTER_BLANK: u64 = LOW_BITS * (b' ' + 1) as u64;

/// Returns the position of the first blank or control character, or the length if there is none.
#[inline(always)]
pub(crate) fn blank_at(bytes: &[u8]) -> usize {
    let Some(last) = bytes.last_chunk::<8>() else {
        let mut len = 0;
        while bytes.get(len).is_some_and(|byte| *byte > b' ') {
            len += 1;
        }
        return len;
    };
    let (words, _) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let found = blanks(*word);
        if found != 0 {
            return index * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    // The remainder, overlapping bytes already searched.
    let found = blanks(*last);
    bytes.len() - if found == 0 { 0 } else { 8 - found.trailing_zeros() as usize / 8 }
}

/// Whether the subject is empty, starts or ends with a dot, or has two dots in a row.
#[inline]
pub(crate) fn has_gap(subject: &[u8]) -> bool {
    let Some(last) = subject.last_chunk::<8>() else {
        return has_gap_bytewise(subject);
    };
    let (words, _) = subject.as_chunks::<8>();
    // The start counts as a dot.
    let mut before = 0x80;
    for word in words {
        let dots = dots(*word);
        if dots & (dots << 8 | before) != 0 {
            return true;
        }
        before = dots >> 56;
    }
    // The remainder, overlapping bytes already searched; a dot at the end is a gap too.
    let dots = dots(*last);
    (dots & dots << 8) | dots >> 63 != 0
}

fn has_gap_bytewise(subject: &[u8]) -> bool {
    let mut is_after_dot = true;
    for byte in subject {
        let is_dot = *byte == b'.';
        if is_dot && is_after_dot {
            return true;
        }
        is_after_dot = is_dot;
    }
    is_after_dot
}

/// Returns non-zero if a byte is a blank or a control character. The lowest bit set marks the
/// first such byte; bits above it may be wrong.
#[inline]
fn blanks(word: [u8; 8]) -> u64 {
    let word = u64::from_le_bytes(word);
    word.wrapping_sub(AFTER_BLANK) & !word & HIGH_BITS
}

/// Sets the highest bit of each byte that is a dot.
#[inline]
fn dots(word: [u8; 8]) -> u64 {
    let other = u64::from_le_bytes(word) ^ DOTS;
    // The sum of seven bits cannot carry into the next byte.
    !(((other & !HIGH_BITS) + !HIGH_BITS) | other) & HIGH_BITS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Generates the searched bytes and bytes that differ from them by one bit or by one.
    fn near() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![
            3 => prop::sample::select(&b".-/\x0e\xae !\x1f\xa0\0\x7f\x80\xff"[..]),
            2 => Just(b'a'),
            1 => any::<u8>(),
        ];
        prop::collection::vec(byte, 0..40)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]

        #[test]
        fn words_find_what_bytes_find(bytes in near()) {
            let blank = bytes.iter().position(|byte| *byte <= b' ').unwrap_or(bytes.len());
            prop_assert_eq!(blank_at(&bytes), blank);
            let is_empty = bytes.split(|byte| *byte == b'.').any(<[u8]>::is_empty);
            prop_assert_eq!(has_gap(&bytes), is_empty);
        }
    }

    #[test]
    fn each_place_of_a_word_is_looked_at() {
        for len in 1..30 {
            for at in 0..len {
                let mut bytes = vec![b'a'; len];
                bytes[at] = b' ';
                assert_eq!(blank_at(&bytes), at);
                bytes[at] = b'.';
                assert_eq!(has_gap(&bytes), at == 0 || at + 1 == len, "{at} of {len}");
                if at + 1 < len {
                    bytes[at + 1] = b'.';
                    assert!(has_gap(&bytes), "{at} of {len}");
                }
            }
        }
    }
}
