//! The servers that scripts may connect to.

use std::net::{IpAddr, SocketAddr};

use imori_gateway::for_tests::{HostError, HostList, is_private};

fn resolve(entries: &[&str], host: &str, port: u16) -> Result<Vec<SocketAddr>, HostError> {
    let list = HostList::parse(entries.iter().copied()).expect("the entries are right");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime is small").block_on(list.resolve(host, port))
}

#[test]
fn server_is_allowed_by_name_domain_or_port() {
    for (entries, host, port, expected) in [
        (&["192.0.2.1:80"][..], "192.0.2.1", 80, true),
        (&["192.0.2.1:80"], "192.0.2.1", 81, false),
        (&["192.0.2.1"], "192.0.2.1", 81, true),
        (&["*"], "192.0.2.1", 80, true),
        (&[], "192.0.2.1", 80, false),
        (&["example.com"], "192.0.2.1", 80, false),
        (&["[2001:db8::1]:80"], "[2001:db8::1]", 80, true),
        (&["2001:db8::1"], "2001:db8::1", 80, true),
    ] {
        assert_eq!(resolve(entries, host, port).is_ok(), expected, "{entries:?} {host}:{port}");
    }
    let list = HostList::parse(["*.example.com:443"]).expect("an entry");
    assert_eq!(list.is_named("a.example.com", 443), Ok(false));
    for host in ["example.com", "badexample.com", "a.example.com.evil"] {
        assert!(list.is_named(host, 443).is_err(), "{host}");
    }
}

#[test]
fn private_address_has_to_be_named() {
    for address in [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "0.0.0.0",
        "100.64.0.1",
        "255.255.255.255",
        "224.0.0.1",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "::127.0.0.1",
        "ff02::1",
    ] {
        let ip: IpAddr = address.parse().expect("an address");
        let refused = resolve(&["*"], address, 80);
        assert!(matches!(refused, Err(HostError::Private(..))), "{address}: {refused:?}");
        assert!(resolve(&["*", address], address, 80).is_ok(), "{address}");
        assert!(is_private(ip));
    }
    for address in ["8.8.8.8", "2606:4700::1111", "172.32.0.1", "100.128.0.1"] {
        assert!(resolve(&["*"], address, 80).is_ok(), "{address}");
    }
    assert!(matches!(resolve(&["*"], "localhost", 80), Err(HostError::Private(..))));
    assert!(resolve(&["localhost"], "LOCALHOST", 80).is_ok());
    assert!(resolve(&["*", "127.0.0.1:80", "[::1]:80"], "localhost", 80).is_ok(), "by its address");
}

#[test]
fn wrong_entries_are_named() {
    for entry in ["", "a b", "*x", "host:port", "host:99999", "http://host", "*.", "a/b"] {
        let error = HostList::parse([entry]);
        assert!(entry == "*." || error.is_err_and(|error| error.contains("is no server")), "{entry}");
    }
}
