//! The client of the admin listener: addresses, logins and saved contexts.

use std::ffi::OsString;
use std::fs;

use imori::for_tests::{
    Admin, Contexts, Destination, Listens, Named, destination, is_this_machine, permission, segment,
    with_password, without_password,
};
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
    let admin = |name| all.resolve(name, Listens::Admin).ok().flatten().map(|found| found.address);
    assert_eq!(admin(Some("a")).as_deref(), Some("http://a"));
    assert_eq!(admin(None).as_deref(), Some("http://b"));
    assert!(all.resolve(Some("c"), Listens::Admin).is_err());
    assert!(all.resolve(Some("a"), Listens::Automation).is_err(), "it has no such address");
    assert_eq!(all.resolve(None, Listens::Automation).ok().flatten(), None);
    assert_eq!(Contexts::default().resolve(None, Listens::Admin).ok().flatten(), None);
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
    let at = |url: &str| {
        let address = url.to_owned();
        let found = Destination { address, token: None, folder: None, passed_over: None };
        Admin::at(Listens::Admin, found, &Trust::default())
    };
    let error = at("ftp://guest:secret@h:1").unwrap_err().to_string();
    assert!(error.contains("`h:1` is no address") && !error.contains("secret"), "{error}");
    let admin = at("http://guest:guest@127.0.0.1:15672/").unwrap();
    assert_eq!(
        (admin.base.as_str(), admin.login.as_deref()),
        ("http://127.0.0.1:15672", Some("Basic Z3Vlc3Q6Z3Vlc3Q="))
    );
}

/// A folder of a broker that has its admin listener at this address.
fn folder(address: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("admin.url"), format!("{address}\n")).unwrap();
    folder
}

// SECURITY ROOM-14
#[test]
fn a_command_speaks_to_the_broker_that_was_named() {
    let contexts = |current: Option<&str>| -> Contexts {
        let all = json!({"current": current, "contexts": {"a": {"admin": "http://ann@context:1"}}});
        serde_json::from_value(all).unwrap()
    };
    let folder = folder("http://127.0.0.1:7\nhttps://[::1]:9");
    let dir = folder.path();
    let text = dir.to_str().unwrap();
    let address = Some("http://127.0.0.1:8");
    // What is named, variables, the current context; the address, whether the folder's secret goes there, a notice.
    for (what, named, variables, current, expected, is_of_folder, is_told) in [
        ("nothing", (None, None, None), vec![], None, "http://127.0.0.1:15672", false, false),
        ("current", (None, None, None), vec![], Some("a"), "http://ann@context:1", false, false),
        ("folder", (None, None, Some(dir)), vec![], Some("a"), "http://127.0.0.1:7", true, false),
        ("address", (address, None, None), vec![], Some("a"), "http://127.0.0.1:8", false, false),
        ("both", (address, None, Some(dir)), vec![], None, "http://127.0.0.1:8", false, true),
        (
            "option and variable",
            (address, None, Some(dir)),
            vec![("IMORI_ADMIN", "http://127.0.0.1:8")],
            None,
            "http://127.0.0.1:7",
            true,
            true,
        ),
        (
            "variables",
            (address, Some("a"), Some(dir)),
            vec![
                ("IMORI_ADMIN", "http://127.0.0.1:8"),
                ("IMORI_CONTEXT", "a"),
                ("IMORI__BROKER__DATA_DIR", text),
            ],
            None,
            "http://127.0.0.1:8",
            false,
            true,
        ),
        ("context", (None, Some("a"), Some(dir)), vec![], None, "http://ann@context:1", false, true),
        (
            "another of it",
            (Some("https://localhost:9"), None, Some(dir)),
            vec![],
            None,
            "https://localhost:9",
            true,
            false,
        ),
        (
            "the same",
            (Some("http://localhost:7/"), None, Some(dir)),
            vec![],
            None,
            "http://localhost:7/",
            true,
            false,
        ),
    ] {
        let (address, context, data_dir) = named;
        let named = Named { address, context, data_dir };
        let read = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let found = destination(Listens::Admin, named, &contexts(current), read).unwrap();
        assert_eq!(found.address, expected, "{what}");
        assert_eq!(found.folder.is_some(), is_of_folder, "{what}");
        assert_eq!(found.passed_over.is_some(), is_told, "{what}");
    }
}

// SECURITY ROOM-14
#[test]
fn a_folder_without_an_address_is_an_error_and_no_other_broker() {
    let folder = tempfile::tempdir().unwrap();
    let named = Named { data_dir: Some(folder.path()), ..Named::default() };
    let found = destination(Listens::Admin, named, &Contexts::default(), |_| None);
    assert!(found.unwrap_err().to_string().contains("has no admin listener"));
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

#[test]
fn a_grant_of_some_rights_says_what_becomes_of_the_others() {
    let grant = |rights: [Option<&str>; 3], only| {
        let [configure, write, read] = rights.map(|right| right.map(str::to_owned));
        permission([("configure", configure), ("write", write), ("read", read)], only)
    };
    for (rights, only, expected) in [
        ([None, None, None], false, Some([".*", ".*", ".*"])),
        ([Some("a"), Some("b"), Some("c")], false, Some(["a", "b", "c"])),
        ([None, Some("b"), None], true, Some(["^$", "b", "^$"])),
        ([None, Some("b"), None], false, None),
        ([Some("a"), Some("b"), None], false, None),
        ([None, None, None], true, None),
    ] {
        let found = grant(rights, only).ok();
        let expected = expected
            .map(|[configure, write, read]| json!({"configure": configure, "write": write, "read": read}));
        assert_eq!(found, expected, "{rights:?} {only}");
    }
    let error = grant([Some("a"), None, None], false).unwrap_err().to_string();
    assert_eq!(
        error,
        "give `--write REGEX` and `--read REGEX` too, or `--only` for no other rights than these"
    );
}
