//! The client of the admin listener: addresses, logins and saved contexts.

use std::path::Path;

use imori::for_tests::{Admin, Contexts, is_this_machine, segment, with_password, without_password};
use imori_bench::Trust;
use serde_json::json;

// SECURITY OPS-02
#[test]
fn passwords_are_put_in_and_never_shown() {
    for (admin, shown, with) in [
        ("http://ann@h:1", "http://ann@h:1", Some("http://ann:p@s@h:1")),
        ("https://ann:old@h:1", "https://ann@h:1", Some("https://ann:p@s@h:1")),
        ("http://h:1", "http://h:1", None),
        ("nothing", "(no address)", None),
    ] {
        assert_eq!(without_password(admin), shown);
        assert_eq!(with_password(admin, "p@s").ok().as_deref(), with);
    }
}

#[test]
fn a_context_is_found_by_its_name_or_is_the_current_one() {
    let all: Contexts = serde_json::from_value(
        json!({"current": "b", "contexts": {"a": {"admin": "http://a"}, "b": {"admin": "http://b"}}}),
    )
    .unwrap();
    let admin = |name| all.resolve(name).ok().flatten().map(|address| address.admin);
    assert_eq!(admin(Some("a")).as_deref(), Some("http://a"));
    assert_eq!(admin(None).as_deref(), Some("http://b"));
    assert!(all.resolve(Some("c")).is_err());
    assert_eq!(Contexts::default().resolve(None).ok().flatten(), None);
}

#[test]
fn segments_are_escaped() {
    for (text, expected) in [("orders", "orders"), ("/", "%2F"), ("a b%", "a%20b%25"), ("井", "%E4%BA%95")] {
        assert_eq!(segment(text), expected);
    }
}

// SECURITY OPS-02
#[test]
fn what_is_no_address_is_refused_without_its_password() {
    let at = |url| Admin::at(url, Path::new("/nowhere"), &Trust::default());
    let error = at("ftp://guest:secret@h:1").unwrap_err().to_string();
    assert!(error.contains("`h:1` is no address") && !error.contains("secret"), "{error}");
    let admin = at("http://guest:guest@127.0.0.1:15672/").unwrap();
    assert_eq!(
        (admin.base.as_str(), admin.login.as_deref()),
        ("http://127.0.0.1:15672", Some("Basic Z3Vlc3Q6Z3Vlc3Q="))
    );
}

// SECURITY OPS-02
#[test]
fn the_operators_password_goes_to_this_machine_alone() {
    for (place, expected) in [
        ("127.0.0.1:15672", true),
        ("[::1]:15672", true),
        ("localhost", true),
        ("192.0.2.1:15672", false),
        ("[2001:db8::1]:1", false),
        ("127.0.0.1.example:1", false),
        ("localhost.example:1", false),
        ("", false),
    ] {
        assert_eq!(is_this_machine(place), expected, "{place}");
    }
}
