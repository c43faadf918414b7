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
pub(crate) struct KeyczarKey {
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
    pub(crate) fn read(json: &[u8]) -> Result<KeyczarKey, String> {
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
    pub(crate) fn decrypt(&self, envelope: &str) -> Option<String> {
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
pub(crate) fn is_envelope(text: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = r#"{"hmacKey": {"hmacKeyString": "XzkiYPL1vlrIN10KAwRUqVCnFH2wdT1Ya9vCKp69bGQ", "size": 256}, "aesKeyString": "se9kHQvxd7-8tWVaDbNfhxcLsBK6lIlOBoJ8W7W-WOw", "mode": "CBC", "size": 256}"#;

    const SHORT_KEY: &str = r#"{"hmacKey": {"hmacKeyString": "BokdnsxxQjj79Z-NiYZp8Q", "size": 128}, "aesKeyString": "mxY82GCVl7UX1Yin7akTAg==", "mode": "cbc", "size": 128}"#;

    /// Values that StackStorm's own `symmetric_encrypt` made.
    const ROWS: [(&str, &str, &str); 10] = [
        (
            KEY,
            "",
            "3030303030AD42F3D00C0987D1473275A4513A818BD6070F6E0549A1B7D50B4226F72186E286A52557FECE7236DB1FE9F7F29FD0118EFA16CE",
        ),
        (
            KEY,
            "s3cret",
            "3030303030BFE89718F399D5CE0F02A39D9613511D0073ADEC425936E9DDFF5139D4AAE503C5815AF88AB623E78D51F4601129F7221027940A",
        ),
        (
            KEY,
            "xxxxxxxxxxxxxxxx",
            "3030303030DCF6E5CE0AF9B3EA984EC0B80531023CE44639D63341A41839D5E11B6E436BF91EA706F1A3F1C098AD80C6A0890DB5DAE3766D37E8E9A5B8B8C67F469A9096C880AEB2CA",
        ),
        (
            KEY,
            "grüße \u{1f600}",
            "30303030300E9EC9FA3F2D6CC932B020D79B87F2BFB15FF6EAD9E0F9E3A94DC5F175B406BE4436B0C0C185CE744968BA51CAEE1B228A1E72E9",
        ),
        (
            KEY,
            "a long value: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy",
            "30303030306A80E059BB51D289D89B069556A263FB60C33EB1EDF25E3A8FD6A0203F42C0960F8A7B93FD887F88A69E602E7DF6848DA1B4CB07A9A907277F04D55489CDED7811192146106DF8D5F0F64B2F4ACE4EEF8E90F65915B74DA44CAFF01C5A5758091AFCE121",
        ),
        (
            SHORT_KEY,
            "",
            "303030303000F4352FB767C7630838A69E18A29B70F47F8AB7B53A5E2AD786BF1E0331638A28EDC92EA49FF3D5B8648559897044C3FE731782",
        ),
        (
            SHORT_KEY,
            "s3cret",
            "3030303030490F81B067A2A36FF37B2770FC179EA08AD11C6203B0DF270528F2B3D88283E52BDAF603700B091F36499417F4F2924DC7825F98",
        ),
        (
            SHORT_KEY,
            "xxxxxxxxxxxxxxxx",
            "303030303048913265DFCD2A32D8DD4A0F4FDE9AE76799268B29826D5A95CB9B676FD76657D1C87C85E0C461DAA15DCF070E34C3DE0C1B6E3287FBD41E2093CF4E5C10B744EA3E5F53",
        ),
        (
            SHORT_KEY,
            "grüße \u{1f600}",
            "30303030307CFC7E7B44E200A02DF4803BA3F0312665B7D7EE5C2D56BAEBFABFE965D793EE2282E954229AAA9170196A65F6BEDB657BE6BC53",
        ),
        (
            SHORT_KEY,
            "a long value: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy",
            "3030303030C41EDBA31385A061EC3EDC34B2019BB3986755E9966C36C55DC7ADBCEDC93169A441EA4C270AB5BBF1CF66F6BE7FB439ACF44FBA34879E9B97F642258AC419E0064B2E735293E4D23B9561EA9C4193F03A9D26A472F08B9C9F9AAF546BE6E506E7664CBB",
        ),
    ];

    #[test]
    fn what_stackstorm_encrypted_is_read() {
        for (key, text, envelope) in ROWS {
            assert!(is_envelope(envelope), "{text}");
            let key = KeyczarKey::read(key.as_bytes()).unwrap();
            assert_eq!(key.decrypt(envelope).as_deref(), Some(text));
            assert_eq!(key.decrypt(&envelope.to_lowercase()).as_deref(), Some(text));
        }
    }

    #[test]
    fn a_changed_or_shortened_envelope_is_refused() {
        let (key, _, envelope) = ROWS[1];
        let other = KeyczarKey::read(SHORT_KEY.as_bytes()).unwrap();
        assert_eq!(other.decrypt(envelope), None, "the key is another one");
        let key = KeyczarKey::read(key.as_bytes()).unwrap();
        for index in 0..envelope.len() {
            let mut changed = envelope.to_owned();
            let digit = if envelope.as_bytes()[index] == b'0' { "1" } else { "0" };
            changed.replace_range(index..=index, digit);
            assert_eq!(key.decrypt(&changed), None, "digit {index} is changed");
            assert_eq!(key.decrypt(&envelope[..index]), None, "{index} digits are left");
        }
        assert_eq!(key.decrypt("no digits"), None);
    }

    #[test]
    fn a_wrong_key_file_is_told() {
        for (json, reason) in [
            ("{", "it is no JSON"),
            ("{}", "`mode` is ``; only `CBC` can be read"),
            (r#"{"mode": "GCM"}"#, "`mode` is `GCM`"),
            (r#"{"mode": "CBC"}"#, "`aesKeyString` is missing"),
            (r#"{"mode": "CBC", "aesKeyString": "!"}"#, "`aesKeyString` is no base64"),
            (r#"{"mode": "CBC", "aesKeyString": "AAAA"}"#, "`hmacKey.hmacKeyString` is missing"),
            (
                r#"{"mode": "CBC", "aesKeyString": "AAAA", "hmacKey": {"hmacKeyString": "AAAA"}}"#,
                "`aesKeyString` has 3 bytes; a key has 16, 24 or 32",
            ),
        ] {
            let error = KeyczarKey::read(json.as_bytes()).err().unwrap();
            assert!(error.starts_with(reason), "{json}: {error}");
        }
    }
}
