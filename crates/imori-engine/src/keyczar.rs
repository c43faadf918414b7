//! Values that StackStorm encrypted: AES in CBC mode and HMAC-SHA1 in keyczar's envelope, as hexadecimal digits. They
//! are read and never written: new values are encrypted by `cipher.rs`.

use aes::cipher::{BlockCipherDecrypt as _, KeyInit as _};
use aes::{Aes128, Aes192, Aes256, Block};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use imori_automation::value::Value;
use ring::hmac;

/// Bytes before the initialization vector: a version and a hash of the key, neither of which StackStorm reads.
const HEADER_BYTES: usize = 5;

/// Bytes of a block of AES, and of the initialization vector.
const BLOCK_BYTES: usize = 16;

/// Bytes of the signature at the end, which covers all before it.
const SIGNATURE_BYTES: usize = 20;

/// A key of StackStorm, as `st2-generate-symmetric-crypto-key` writes it.
pub struct KeyczarKey {
    aes: Aes,
    hmac: hmac::Key,
}

enum Aes {
    Bits128(Aes128),
    Bits192(Aes192),
    Bits256(Aes256),
}

impl KeyczarKey {
    /// Reads a key file: JSON with `aesKeyString` and `hmacKey.hmacKeyString`.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn read(json: &[u8]) -> Result<KeyczarKey, String> {
        let file = Value::from_json(json).map_err(|error| format!("it is no JSON: {error}"))?;
        let mode = file.get("mode").and_then(Value::as_str).unwrap_or_default();
        if !mode.eq_ignore_ascii_case("CBC") {
            return Err(format!("`mode` is `{mode}`; only `CBC` can be read"));
        }
        let aes = bytes(file.get("aesKeyString"), "aesKeyString")?;
        let signing = file.get("hmacKey").and_then(|key| key.get("hmacKeyString"));
        let signing = bytes(signing, "hmacKey.hmacKeyString")?;
        let wrong = || format!("`aesKeyString` has {} bytes; a key has 16, 24 or 32", aes.len());
        let aes = match aes.len() {
            16 => Aes128::new_from_slice(&aes).ok().map(Aes::Bits128),
            24 => Aes192::new_from_slice(&aes).ok().map(Aes::Bits192),
            32 => Aes256::new_from_slice(&aes).ok().map(Aes::Bits256),
            _ => None,
        };
        let aes = aes.ok_or_else(wrong)?;
        Ok(KeyczarKey { aes, hmac: hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &signing) })
    }

    /// Decrypts an envelope; `None` if this key did not make it.
    pub fn decrypt(&self, envelope: &str) -> Option<String> {
        let bytes = from_hex(envelope)?;
        let (signed, signature) = bytes.split_at_checked(bytes.len().checked_sub(SIGNATURE_BYTES)?)?;
        hmac::verify(&self.hmac, signed, signature).ok()?;
        let (vector, sealed) = signed.get(HEADER_BYTES..)?.split_at_checked(BLOCK_BYTES)?;
        let (blocks, rest) = sealed.as_chunks::<BLOCK_BYTES>();
        if !rest.is_empty() {
            return None;
        }
        let mut before: [u8; BLOCK_BYTES] = vector.try_into().ok()?;
        let mut text = Vec::with_capacity(sealed.len());
        for block in blocks {
            let mut opened = Block::from(*block);
            self.aes.decrypt(&mut opened);
            text.extend(opened.iter().zip(before).map(|(byte, before)| byte ^ before));
            before = *block;
        }
        let padding = usize::from(*text.last()?);
        let is_padded = (1..=BLOCK_BYTES).contains(&padding)
            && text.iter().rev().take(padding).all(|byte| usize::from(*byte) == padding);
        text.truncate(text.len().checked_sub(padding).filter(|_| is_padded)?);
        String::from_utf8(text).ok()
    }
}

impl Aes {
    fn decrypt(&self, block: &mut Block) {
        match self {
            Aes::Bits128(aes) => aes.decrypt_block(block),
            Aes::Bits192(aes) => aes.decrypt_block(block),
            Aes::Bits256(aes) => aes.decrypt_block(block),
        }
    }
}

/// Whether a value has the form of an envelope, which no value of our own cipher has.
pub fn is_envelope(text: &str) -> bool {
    let least = 2 * (HEADER_BYTES + 2 * BLOCK_BYTES + SIGNATURE_BYTES);
    text.len() >= least && text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Decodes a part of a key: base64 with the alphabet for URLs, in which white space and padding are ignored.
fn bytes(text: Option<&Value>, name: &str) -> Result<Vec<u8>, String> {
    let text = text.and_then(Value::as_str).ok_or_else(|| format!("`{name}` is missing"))?;
    let text: String =
        text.chars().filter(|character| !character.is_whitespace() && *character != '=').collect();
    URL_SAFE_NO_PAD.decode(text).map_err(|error| format!("`{name}` is no base64: {error}"))
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let bytes =
        pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect::<Option<_>>();
    bytes.filter(|_| rest.is_empty())
}
