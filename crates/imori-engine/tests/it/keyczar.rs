//! Values that StackStorm encrypted.

use imori_engine::for_tests::{KeyczarKey, is_envelope};

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
