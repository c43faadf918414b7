//! Definitions of action chains.

use imori_automation::chains::Chain;
use imori_automation::workflows::Command;

use crate::chains_conductor::{conductor, next, started};

#[test]
fn the_first_task_is_the_default_or_one_that_no_other_leads_to() {
    let rows = [
        ("chain: [{name: b, ref: p.x}, {name: a, ref: p.x, on-success: b}]", Some("a")),
        ("default: b\nchain: [{name: a, ref: p.x, on-success: b}, {name: b, ref: p.x}]", Some("b")),
        ("chain: [{name: a, ref: p.x, on-failure: b}, {name: b, ref: p.x, on-success: a}]", Some("a")),
        ("chain: []", None),
    ];
    for (text, first) in rows {
        let commands = next(&conductor(text), None, &started()).commands;
        let called = match commands.as_slice() {
            [] => None,
            [Command::Run(call)] => Some(call.task.as_str()),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(called, first, "{text}");
    }
}

#[test]
fn wrong_chains_are_refused() {
    let rows = [
        ("[]", "an action chain is an object with a list `chain`; this is of type array"),
        ("vars: {}", "the list `chain` is missing; add the tasks"),
        ("chain: {}", "`chain` is no list of tasks"),
        (
            "chain: []\ntasks: []",
            "key `tasks` of the action chain is unknown; use `chain`, `default`, `vars`",
        ),
        ("chain: [{ref: p.x}]", "`name` of task 1 is missing"),
        ("chain: [{name: a}]", "`ref` of task `a` is missing"),
        ("chain: [{name: a, ref: 5}]", "`ref` of task `a` is 5; use a text"),
        (
            "chain: [{name: a, ref: p.x, params: {a: 1}, parameters: {b: 1}}]",
            "task `a` has both `params` and `parameters`; use `parameters`",
        ),
        (
            "chain: [{name: a, ref: p.x, on-success: b}]",
            "`on-success` of task `a` names task `b`, which does not exist",
        ),
        ("default: c\nchain: [{name: a, ref: p.x}]", "`default` names task `c`, which does not exist"),
        ("chain: [{name: a, ref: p.x}, {name: a, ref: p.y}]", "task `a` is defined twice; rename one"),
        (
            "chain: [{name: a, ref: p.x, notify: {on-end: {}}}]",
            "key `on-end` of `notify` of task `a` is unknown; use `on-complete`, `on-success`, `on-failure`",
        ),
    ];
    for (text, message) in rows {
        assert_eq!(Chain::parse(text).unwrap_err().to_string(), message, "{text}");
    }
}
