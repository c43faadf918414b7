//! Secrets of scripts.

use imori_gateway::for_tests::Secrets;

#[test]
fn secrets_are_left_out_of_texts() {
    let secrets = Secrets::new([("a".to_owned(), "hunter2!".to_owned()), ("b".to_owned(), "ab".to_owned())]);
    assert_eq!(secrets.redact("password is hunter2!, about"), "password is ***, about");
    assert_eq!(secrets.get("a"), Some("hunter2!"));
    assert_eq!(secrets.get("c"), None);
}
