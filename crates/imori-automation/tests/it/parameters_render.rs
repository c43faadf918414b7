//! Rows that StackStorm rendered.

use imori_automation::parameters::{ParameterContext, render_final_parameters, render_live_parameters};
use imori_automation::value::{Map, Value};

use crate::{json, map};

/// Whether the parameters are live or final; those of the runner, of the action, the given ones, further names, and the
/// result.
const ROWS: &[(&str, &str, &str, &str, &str, &str)] = &[
    (
        "live",
        r#"{"r1": {"default": "some"}}"#,
        r#"{"r2": {"default": "{{ r1 }}"}}"#,
        r#"{"r3": "lolcat", "r1": "{{ additional.stuff }}"}"#,
        r#"{"additional": {"stuff": "generic"}}"#,
        r#"{"r3": "lolcat", "r1": "generic", "r2": "generic"}"#,
    ),
    (
        "live",
        "{}",
        r#"{"a": {"type": "integer", "default": "{{ b }}"}}"#,
        r#"{"b": 5}"#,
        "{}",
        r#"{"b": 5, "a": 5}"#,
    ),
    (
        "live",
        "{}",
        r#"{"cmd": {"type": "string"}}"#,
        r#"{"cmd": "{{ config_context.host }}:{{ config_context.port }} {{ action_context.user }}"}"#,
        "{}",
        r#"{"cmd": "h:5 u"}"#,
    ),
    (
        "live",
        "{}",
        "{}",
        r#"{"a": "{{ a }}"}"#,
        "{}",
        "error: Cyclic dependency found in the following variables: a. Likely the variable is referencing itself",
    ),
    (
        "live",
        "{}",
        "{}",
        r#"{"a": "{{ b }}", "b": "{{ b }}"}"#,
        "{}",
        "error: Cyclic dependency found in the following variables: b. Likely the variable is referencing itself",
    ),
    (
        "live",
        "{}",
        "{}",
        r#"{"a": "{{ nothing }}"}"#,
        "{}",
        r#"error: Dependency unsatisfied in variable "nothing""#,
    ),
    (
        "live",
        "{}",
        r#"{"cmd": {}, "a2": {}}"#,
        r#"{"cmd": "{{a2.foo}}", "a2": "test"}"#,
        "{}",
        r#"error: Failed to render parameter "cmd": 'str object' has no attribute 'foo'"#,
    ),
    (
        "live",
        "{}",
        r#"{"o": {"type": "object"}}"#,
        r#"{"o": {"n": "{{n}}", "t": "{{ n }}", "l": ["{{n}}"]}, "n": [1, 2]}"#,
        "{}",
        r#"{"o": {"n": [1, 2], "t": "[1, 2]", "l": [[1, 2]]}, "n": [1, 2]}"#,
    ),
    (
        "live",
        "{}",
        "{}",
        r#"{"a": "{{ not closed", "b": {"x": "http://some?value={{a"}}"#,
        "{}",
        r#"{"a": "{{ not closed", "b": {"x": "http://some?value={{a"}}"#,
    ),
    ("live", "{}", r#"{"i": {"default": "x", "immutable": true}}"#, r#"{"i": "y"}"#, "{}", r#"{"i": "x"}"#),
    (
        "live",
        "{}",
        r#"{"n": {"type": "string"}}"#,
        r#"{"n": "{{ none | use_none }}"}"#,
        "{}",
        r#"{"n": null}"#,
    ),
    (
        "live",
        "{}",
        r#"{"n": {"type": "integer"}}"#,
        r#"{"n": "x"}"#,
        "{}",
        "error: invalid literal for int() with base 10: 'x'",
    ),
    ("live", "{}", r#"{"u": {"default": "{{ st2kv.system.key }}"}}"#, "{}", "{}", r#"{"u": ""}"#),
    (
        "final",
        r#"{"cmd": {"default": "echo {{ a }}"}, "timeout": {"type": "integer", "default": 60}}"#,
        r#"{"a": {"type": "string", "required": true}, "flag": {"type": "boolean", "default": false}, "timeout": {"default": 0}}"#,
        r#"{"a": "{{ x }}", "extra": 1, "flag": null}"#,
        "{}",
        r#"[{"timeout": 0, "cmd": "echo {{ x }}"}, {"a": "{{ x }}", "flag": false}]"#,
    ),
    (
        "final",
        r#"{"r": {"default": "r", "immutable": true}}"#,
        r#"{"i": {"default": "i", "immutable": true}}"#,
        r#"{"r": "no", "i": "no"}"#,
        "{}",
        r#"[{"r": "r"}, {"i": "i"}]"#,
    ),
    (
        "final",
        "{}",
        r#"{"p": {"type": "object", "default": {"host": "{{host}}", "port": "{{port}}", "path": "/bar"}}}"#,
        r#"{"host": "h", "port": 5}"#,
        "{}",
        r#"[{}, {"p": {"host": "h", "port": 5, "path": "/bar"}}]"#,
    ),
];

#[test]
fn parameters_are_rendered_as_in_stackstorm() {
    for (kind, runner, action, given, additional, expected) in ROWS {
        let context = ParameterContext {
            action_context: map(r#"{"user": "u", "pack": "p"}"#),
            config: map(r#"{"host": "h", "port": 5}"#),
            additional: map(additional),
            ..ParameterContext::default()
        };
        let (runner, action, given) = (map(runner), map(action), map(given));
        let rendered = match *kind {
            "live" => render_live_parameters(&runner, &action, &given, &context).map(Value::Map),
            _ => render_final_parameters(&runner, &action, &given, &context)
                .map(|(runner, action)| Value::List(vec![Value::Map(runner), Value::Map(action)])),
        };
        match rendered {
            Ok(rendered) => assert_eq!(rendered, json(expected), "{given:?}"),
            Err(error) => assert_eq!(format!("error: {error}"), *expected, "{given:?}"),
        }
    }
}

// SECURITY ROOM-05
#[test]
fn what_was_rendered_is_no_template_again() {
    let context = ParameterContext {
        literals: map(r#"{"a": "{{ b }}", "b": "x", "c": "{{ st2kv.system.secret }}"}"#),
        ..ParameterContext::default()
    };
    let given = map(r#"{"b": "{{ a }}!", "d": "{{ c }}"}"#);
    let rendered = render_live_parameters(&Map::new(), &Map::new(), &given, &context).unwrap();
    let expected = r#"{"a": "{{ b }}", "b": "{{ b }}!", "c": "{{ st2kv.system.secret }}", "d": "{{ st2kv.system.secret }}"}"#;
    assert_eq!(Value::Map(rendered), json(expected));
}

#[test]
fn names_of_a_cycle_are_told_once() {
    let given = map(r#"{"a": "{{ b }}", "b": "{{ c }}", "c": "{{ a }}", "d": "{{ d }}", "e": "{{ a }}"}"#);
    let error =
        render_live_parameters(&Map::new(), &Map::new(), &given, &ParameterContext::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Cyclic dependency found in the following variables: a, d. Likely the variable is referencing itself"
    );
}
