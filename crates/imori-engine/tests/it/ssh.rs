//! Hosts and quoting of the SSH runner.

use imori_automation::value::Value;
use imori_engine::for_tests::{shell_quoted, ssh_host, ssh_hosts};

#[test]
fn hosts_are_read_and_options_among_them_refused() {
    for (text, expected) in [
        ("a", Ok("a -")),
        ("a.b:2222", Ok("a.b 2222")),
        ("[::1]:22", Ok("::1 22")),
        ("::1", Ok("::1 -")),
        ("-oProxyCommand=x", Err("is no name")),
        ("a;b", Err("is no name")),
        ("a:b", Err("has no port")),
        ("", Err("is no name")),
    ] {
        let found = ssh_host(text).map(|host| {
            format!("{} {}", host.name, host.port.map_or(String::from("-"), |port| port.to_string()))
        });
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(reason), Err(expected)) => assert!(reason.contains(expected), "{text}: {reason}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }
    let list = Value::from("a, b:1,,a");
    assert_eq!(ssh_hosts(Some(&list)).unwrap().len(), 2);
    assert!(ssh_hosts(None).is_err());
}

#[test]
fn a_quoted_word_is_one_word() {
    for (text, expected) in [("a b", "'a b'"), ("it's $(x)", r"'it'\''s $(x)'"), ("", "''")] {
        assert_eq!(shell_quoted(text), expected);
    }
}
