//! Values of YAQL expressions.

use std::sync::Arc;

use imori_automation::for_tests::{CurrentTask, Fault, Scope, Statuses, evaluate_yaql};

use crate::{json, map};

/// The variables of the expressions in `yaql.txt`.
const VARIABLES: &str = r#"{"a": 1, "b": 2.5, "s": "abc", "n": null, "t": true, "f": false,
    "l": [1, 2, "x", null, [3]], "d": {"k": "v", "n": {"m": [{"z": 7}]}, "e": ""}, "neg": -7,
    "big": 9007199254740993, "em": [], "emd": {}, "num": "12", "fl": "1.5", "sp": " a b ", "u": "äÖ",
    "lo": ["b", "a"], "zero": 0, "fzero": 0.0, "x1": 1.0}"#;

fn scope() -> Scope {
    let mut scope = Scope::new(map(VARIABLES));
    let result = json(r#"{"stdout": "out", "code": 0, "list": [1, {"q": null}]}"#);
    scope.task =
        Some(CurrentTask { id: "t1".to_owned(), route: 0, status: "succeeded", result: Some(result) });
    scope.item = Some(json(r#"{"i": 3, "j": "w"}"#));
    let tasks = [(("t1".to_owned(), 0), "succeeded")].into_iter().collect();
    scope.statuses = Arc::new(Statuses { tasks, routes: vec![vec![]] });
    scope
}

/// Expressions with the values that yaql 3.2.0 gives with orquesta's functions.
#[test]
fn values_are_those_of_yaql() {
    let scope = scope();
    for line in include_str!("../yaql.txt").lines() {
        let (source, expected) = line.split_once('\t').unwrap();
        let value = evaluate_yaql(source, &scope).unwrap_or_else(|fault| panic!("{source}: {fault:?}"));
        assert_eq!(value, json(expected), "{source}");
    }
}

#[test]
fn what_is_not_certain_is_left_to_yaql() {
    let sources = [
        "json({a => 1})",
        "json('[1]') = [1]",
        "str([1])",
        "1 + true",
        "1 / 0",
        "1.5 mod 1",
        "ctx().l.select($)",
        "ctx().l[9]",
        "ctx().l.k",
        "ctx().n.k",
        "ctx().d.keys()",
        "'äÖ'.toUpper()",
        "9223372036854775807 + 1",
        "int('x')",
        "1.5 < 9007199254740993",
        "a in {a => 1}",
        "not(true)",
        "ctx().s[0]",
        "now()",
    ];
    for source in sources {
        assert_eq!(evaluate_yaql(source, &scope()), Err(Fault::Unsure), "{source}");
    }
}

#[test]
fn missing_variables_are_errors() {
    let rows = [
        ("ctx().none", Fault::NoKey("none".to_owned())),
        ("ctx().d.n.none", Fault::NoKey("none".to_owned())),
        ("ctx().d['none']", Fault::NoKey("none".to_owned())),
        (
            "ctx(none)",
            Fault::Failed("VariableUndefinedError: The variable \"none\" is undefined.".to_owned()),
        ),
        (
            "item(none)",
            Fault::Failed("ExpressionEvaluationException: Item does not have key \"none\".".to_owned()),
        ),
    ];
    for (source, expected) in rows {
        assert_eq!(evaluate_yaql(source, &scope()), Err(expected), "{source}");
    }
    let message = "ExpressionEvaluationException: The current task is not set in the context.";
    let fault = Fault::Failed(message.to_owned());
    assert_eq!(evaluate_yaql("result()", &Scope::default()), Err(fault));
}
