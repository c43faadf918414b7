//! Compares the router with the methods and paths of StackStorm's API. The test fails when one is added or lost without
//! `absent.txt` saying so.

use std::collections::{BTreeMap, BTreeSet};

/// Every method and path of StackStorm's API, as `METHOD /path`.
const STACKSTORM: &str = include_str!("stackstorm.txt");

/// Those that are not offered, each with the reason after a colon.
const ABSENT: &str = include_str!("absent.txt");

/// The router is built from this text.
const ROUTES: &str = include_str!("../routes.rs");

/// The methods and paths of the router, with `{}` for each variable.
fn routed() -> BTreeSet<String> {
    let mut routed = BTreeSet::new();
    for line in ROUTES.lines().filter(|line| line.contains(".route(\"")) {
        let path = line.split('"').nth(1).unwrap();
        for (verb, method) in [("get(", "GET"), ("post(", "POST"), ("put(", "PUT"), ("delete(", "DELETE")] {
            if line.contains(&format!(" {verb}")) || line.contains(&format!(").{verb}")) {
                routed.insert(format!("{method} {}", plain(path)));
            }
        }
    }
    routed
}

/// A path below its version, with `{}` for each variable.
fn plain(path: &str) -> String {
    let path = ["/api/v1", "/auth/v1", "/stream/v1"]
        .iter()
        .find_map(|version| path.strip_prefix(version))
        .unwrap_or(path);
    let part = |part: &str| if part.starts_with('{') { String::from("{}") } else { part.to_owned() };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[test]
fn each_path_of_stackstorm_is_answered_or_said_to_be_absent() {
    let absent: BTreeMap<&str, &str> =
        ABSENT.lines().map(|line| line.split_once(": ").expect("a reason follows")).collect();
    let routed = routed();
    let (mut missing, mut found) = (Vec::new(), Vec::new());
    for line in STACKSTORM.lines() {
        let (method, path) = line.split_once(' ').unwrap();
        let is_routed = routed.contains(&format!("{method} {}", plain(path)));
        match (is_routed, absent.contains_key(line)) {
            (false, false) => missing.push(line),
            (true, true) => found.push(line),
            _ => {}
        }
    }
    assert!(missing.is_empty(), "not answered, and not in absent.txt: {missing:#?}");
    assert!(found.is_empty(), "answered, but in absent.txt: {found:#?}");
    let unknown: Vec<_> =
        absent.keys().filter(|line| !STACKSTORM.lines().any(|known| known == **line)).collect();
    assert!(unknown.is_empty(), "no path of StackStorm: {unknown:?}");
}
