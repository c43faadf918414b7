//! The paths of StackStorm's API. A test fails when a method or path of theirs is added or lost without `absent.txt`
//! saying so.

use std::collections::{BTreeMap, BTreeSet};

use imori_automation::value::{Map, Value};
use imori_engine::for_tests::{api_rows, traces};

/// Every method and path of StackStorm's API, as `METHOD /path`.
const STACKSTORM: &str = include_str!("stackstorm.txt");

/// Those that are not offered, each with the reason after a colon.
const ABSENT: &str = include_str!("absent.txt");

/// The methods and paths of the router, with `{}` for each variable.
fn routed() -> BTreeSet<String> {
    api_rows().into_iter().map(|(method, path, _)| format!("{method} {}", plain(&path))).collect()
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

#[test]
fn executions_of_one_tag_are_one_trace() {
    let execution = |id: &str, tag: &str, rule: &str| {
        let text = format!(
            r#"{{"id": "{id}", "action": "core.noop", "start_timestamp": "t{id}", "rule": "{rule}",
            "context": {{"trace_context": {{"trace_tag": "{tag}"}}}}}}"#
        );
        Value::from_json(text.as_bytes()).unwrap().as_map().unwrap().clone()
    };
    let plain: Map = [("id", "9")].into_iter().collect();
    let found =
        traces(&[execution("3", "b", ""), plain, execution("2", "a", "p.r"), execution("1", "a", "p.r")]);
    let shown: Vec<String> = found
        .iter()
        .map(|trace| {
            let ids = |part: &str| {
                let list = trace.get(part).and_then(Value::as_list).unwrap();
                list.iter()
                    .map(|it| it.get("object_id").unwrap().as_str().unwrap())
                    .collect::<Vec<_>>()
                    .join("+")
            };
            let text = |key: &str| trace.get(key).unwrap().as_str().unwrap();
            format!("{} {} {} {}", text("id"), text("trace_tag"), ids("action_executions"), ids("rules"))
        })
        .collect();
    assert_eq!(shown, ["3 b 3 ", "1 a 1+2 p.r"]);
}
