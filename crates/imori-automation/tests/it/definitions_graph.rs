//! Graphs of workflows.

use imori_automation::for_tests::{Definition, Graph};
use imori_automation::value::Value;

fn graph(yaml: &str) -> Graph {
    Graph::of(&Definition::of(&imori_automation::yaml::load(yaml).unwrap()))
}

#[test]
fn transitions_to_the_same_task_have_keys_of_their_own() {
    let graph = graph(
        "tasks:\n  a:\n    next:\n      - when: x\n        do: b, b\n      - do: [b, c]\n  b: {}\n  c: {}\n",
    );
    let ids: Vec<String> = graph.next("a").map(|edge| edge.id()).collect();
    assert_eq!(ids, ["b__t0", "b__t1", "c__t0"]);
    assert_eq!(graph.roots, ["a"]);
    assert!(graph.makes_routes("b"));
    assert!(!graph.makes_routes("c"));
}

#[test]
fn a_task_in_a_cycle_makes_no_routes() {
    let graph = graph(
        "tasks:\n  a:\n    next:\n      - do: b\n  b:\n    next:\n      - do: c\n  c:\n    next:\n      - do: b\n      - do: retry\n",
    );
    assert!(!graph.makes_routes("b"));
    assert_eq!(graph.retry("c").map(|retry| &retry.count), Some(&Value::Int(3)));
    assert_eq!(graph.prev("retry").count(), 0);
}
