//! The encryption of values in the datastore.

use std::fs;

use imori_engine::for_tests::{Cipher, is_envelope};

#[test]
fn a_value_is_decrypted_by_its_own_key_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("datastore.key");
    let sealed = Cipher::at(&path).encrypt("s3cret").unwrap();
    assert!(!sealed.contains("s3cret"));
    assert_eq!(Cipher::at(&path).decrypt(&sealed).unwrap(), "s3cret");
    for wrong in ["AAAA", "no base64", ""] {
        let error = Cipher::at(&path).decrypt(wrong).unwrap_err();
        assert!(error.starts_with("the value was not encrypted with the key"), "{wrong}: {error}");
    }
    assert!(Cipher::at(&folder.path().join("other.key")).decrypt(&sealed).is_err());
}

#[test]
fn a_tag_is_of_its_text_and_key_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("datastore.key");
    let tag = Cipher::at(&path).tag("a").unwrap();
    assert_eq!(Cipher::at(&path).verify("a", &tag), Ok(()));
    assert!(Cipher::at(&path).verify("b", &tag).is_err());
    assert!(Cipher::at(&path).verify("a", &tag[1..]).is_err());
    assert!(Cipher::at(&folder.path().join("other.key")).verify("a", &tag).is_err());
}

#[test]
fn a_value_of_stackstorm_needs_its_key_beside_ours() {
    let envelope = "3030303030490F81B067A2A36FF37B2770FC179EA08AD11C6203B0DF270528F2B3D88283E52BDAF603700B091F36499417F4F2924DC7825F98";
    let key = r#"{"hmacKey": {"hmacKeyString": "BokdnsxxQjj79Z-NiYZp8Q", "size": 128}, "aesKeyString": "mxY82GCVl7UX1Yin7akTAg", "mode": "CBC", "size": 128}"#;
    let folder = tempfile::tempdir().unwrap();
    let cipher = Cipher::at(&folder.path().join("datastore.key"));
    let error = cipher.decrypt(envelope).unwrap_err();
    assert!(error.starts_with("the value was encrypted by StackStorm; copy its"), "{error}");
    fs::write(folder.path().join("datastore_key.json"), "{").unwrap();
    let error = cipher.decrypt(envelope).unwrap_err();
    assert!(error.contains("datastore_key.json`: it is no JSON"), "{error}");
    fs::write(folder.path().join("datastore_key.json"), key).unwrap();
    assert_eq!(cipher.decrypt(envelope).unwrap(), "s3cret");
    let error = cipher.decrypt(&envelope.replace("490F", "490E")).unwrap_err();
    assert!(error.starts_with("the value was not encrypted with the key"), "{error}");
    assert!(!is_envelope(&cipher.encrypt(&"x".repeat(200)).unwrap()));
}
