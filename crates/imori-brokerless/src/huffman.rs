//! The Huffman code of HPACK (RFC 7541, Appendix B), read only.
//!
//! The code is canonical, so the lengths say all: codes rise with length, and with the byte within one.

/// Bits of the code of each byte; that of the end has 30 ones.
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, //
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28, //
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, //
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, //
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, //
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, //
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, //
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, //
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, //
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, //
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, //
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, //
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, //
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, //
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, //
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, //
];

const LENGTH_MAX: usize = 30;

/// The canonical code: for each length the first code, how many there are, and the bytes in order.
struct Code {
    first: [u32; LENGTH_MAX + 1],
    count: [u32; LENGTH_MAX + 1],
    from: [u32; LENGTH_MAX + 1],
    bytes: [u8; 256],
}

static CODE: Code = code();

const fn code() -> Code {
    let mut made = Code {
        first: [0; LENGTH_MAX + 1],
        count: [0; LENGTH_MAX + 1],
        from: [0; LENGTH_MAX + 1],
        bytes: [0; 256],
    };
    let (mut next, mut placed, mut length) = (0, 0, 1);
    while length <= LENGTH_MAX {
        next <<= 1;
        made.first[length] = next;
        made.from[length] = placed as u32;
        let mut byte = 0;
        while byte < 256 {
            if LENGTHS[byte] as usize == length {
                made.bytes[placed] = byte as u8;
                placed += 1;
                next += 1;
            }
            byte += 1;
        }
        made.count[length] = placed as u32 - made.from[length];
        length += 1;
    }
    made
}

/// Appends the text that a code stands for; none if it is not one.
pub(crate) fn decode(coded: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (mut bits, mut length) = (0_u32, 0_usize);
    for byte in coded {
        for shift in (0..8).rev() {
            bits = bits << 1 | u32::from(byte >> shift & 1);
            length += 1;
            if let Some(byte) = byte_of(bits, length) {
                out.push(byte);
                (bits, length) = (0, 0);
            } else if length >= LENGTH_MAX {
                return None;
            }
        }
    }
    // RFC 7541, 5.2: padding is shorter than a byte and begins the code of the end, which is all ones.
    (length < 8 && bits == (1 << length) - 1).then_some(())
}

fn byte_of(bits: u32, length: usize) -> Option<u8> {
    let offset = bits.checked_sub(*CODE.first.get(length)?)?;
    if offset >= *CODE.count.get(length)? {
        return None;
    }
    CODE.bytes.get((*CODE.from.get(length)? + offset) as usize).copied()
}

/// The code of a text, which only tests write.
#[cfg(test)]
pub(crate) fn encode(text: &[u8]) -> Vec<u8> {
    let (mut coded, mut bits, mut length) = (Vec::new(), 0_u64, 0_usize);
    for byte in text {
        let width = usize::from(LENGTHS[usize::from(*byte)]);
        let below =
            (0..=255_u8).filter(|other| usize::from(LENGTHS[usize::from(*other)]) == width && other < byte);
        let code = CODE.first[width] + below.count() as u32;
        bits = bits << width | u64::from(code);
        length += width;
        while length >= 8 {
            length -= 8;
            coded.push((bits >> length) as u8);
        }
        bits &= (1 << length) - 1;
    }
    if length > 0 {
        coded.push((bits << (8 - length)) as u8 | (0xff >> length));
    }
    coded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(coded: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        decode(coded, &mut out)?;
        Some(out)
    }

    #[test]
    fn the_samples_of_the_standard_are_read() {
        // RFC 7541, C.4 and C.6.
        for (coded, text) in [
            (&b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"[..], &b"www.example.com"[..]),
            (b"\xa8\xeb\x10\x64\x9c\xbf", b"no-cache"),
            (b"\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf", b"custom-value"),
            (b"\x64\x02", b"302"),
            (b"", b""),
        ] {
            assert_eq!(decoded(coded).as_deref(), Some(text));
            assert_eq!(encode(text), coded);
        }
    }

    #[test]
    fn every_byte_has_a_code() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decoded(&encode(&all)).as_deref(), Some(&all[..]));
        for byte in 0..=255 {
            assert_eq!(decoded(&encode(&[byte])), Some(vec![byte]));
        }
    }

    #[test]
    fn padding_is_short_and_all_ones() {
        for coded in [&b"\xff"[..], b"\x64\x02\xff", b"\x00", b"\xff\xff\xff\xfc", b"\xff\xff\xff\xff"] {
            assert_eq!(decoded(coded), None, "{coded:x?}");
        }
    }
}
