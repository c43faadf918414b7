//! Public keys of NATS users: `U` and 55 more base32 characters, which encode an Ed25519 key.

use data_encoding::BASE32_NOPAD;
use ring::signature::{ED25519, UnparsedPublicKey};

/// First byte of a user's public key: 20 in the five bits that encode the first character, `U`.
const USER_PREFIX: u8 = 20 << 3;

/// Length of an Ed25519 key.
const KEY_BYTES: usize = 32;

/// Decodes a user's public key; `None` if it is malformed or its checksum is wrong.
fn key_bytes(text: &[u8]) -> Option<[u8; KEY_BYTES]> {
    let bytes = BASE32_NOPAD.decode(text).ok()?;
    let (content, checksum) = bytes.split_last_chunk::<2>()?;
    let (prefix, key) = content.split_first()?;
    let is_sound = *prefix == USER_PREFIX && u16::from_le_bytes(*checksum) == crc16(content);
    is_sound.then(|| key.try_into().ok()).flatten()
}

/// Whether a text is a user's public key.
pub fn is_user_key(text: &str) -> bool {
    key_bytes(text.as_bytes()).is_some()
}

/// Whether `signature` is the signature of `text` by this key.
pub(crate) fn is_signed(key: &[u8], text: &[u8], signature: &[u8]) -> bool {
    let Some(key) = key_bytes(key) else { return false };
    UnparsedPublicKey::new(&ED25519, key).verify(text, signature).is_ok()
}

/// CRC-16/XMODEM: polynomial 0x1021, not reflected.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(
            crc ^ u16::from(*byte) << 8,
            |crc: u16, _| {
                if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 }
            },
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example key in the NATS documentation.
    const KEY: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

    #[test]
    fn a_checksum_is_that_of_xmodem() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
    }

    #[test]
    fn only_the_key_of_a_user_is_one() {
        assert!(is_user_key(KEY));
        for text in [
            "",
            "U",
            "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF5",
            &KEY.to_lowercase(),
            &KEY[1..],
        ] {
            assert!(!is_user_key(text), "{text}");
        }
        assert!(!is_signed(KEY.as_bytes(), b"nonce", &[0; 64]));
        assert!(!is_signed(KEY.as_bytes(), b"nonce", b"short"));
    }
}
