//! Rows that StackStorm's schema and Python's `jsonschema` 4.26.0 decided.

use imori_automation::parameters::{
    Defaults, Schema, action_schema, immutable_parameters, merged_parameters,
};
use imori_automation::value::Value;

use crate::{json, map};

/// A schema, a value, what is done with defaults, and the result.
const ROWS: &[(&str, &str, Defaults, &str)] = &[
    (
        r#"{"type": "object", "properties": {"cmd": {"type": "string", "required": true}}, "additionalProperties": false}"#,
        "{}",
        Defaults::AssignedOrNone,
        "error: 'cmd' is a required property",
    ),
    (
        r#"{"type": "object", "properties": {"cmd": {"type": "string", "required": true, "default": "ls"}}, "additionalProperties": false}"#,
        "{}",
        Defaults::AssignedOrNone,
        r#"{"cmd": "ls"}"#,
    ),
    (
        r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false}"#,
        r#"{"n": "x"}"#,
        Defaults::AssignedOrNone,
        "error: 'x' is not of type 'integer', 'null'",
    ),
    (
        r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false}"#,
        r#"{"n": null}"#,
        Defaults::AssignedOrNone,
        r#"{"n": null}"#,
    ),
    (
        r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false}"#,
        r#"{"n": null}"#,
        Defaults::Assigned,
        "error: None is not of type 'integer'",
    ),
    (
        r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false}"#,
        r#"{"n": 1.0}"#,
        Defaults::AssignedOrNone,
        "error: 1.0 is not of type 'integer', 'null'",
    ),
    (
        r#"{"type": "object", "properties": {"n": {"type": "number"}}, "additionalProperties": false}"#,
        r#"{"n": true}"#,
        Defaults::AssignedOrNone,
        "error: True is not of type 'number', 'null'",
    ),
    (
        r#"{"type": "object", "properties": {"n": {}}, "additionalProperties": false}"#,
        r#"{"foo": 1}"#,
        Defaults::AssignedOrNone,
        "error: Additional properties are not allowed ('foo' was unexpected)",
    ),
    (
        r#"{"type": "object", "properties": {"n": {}}, "additionalProperties": false}"#,
        r#"{"foo": 1, "bar": 2}"#,
        Defaults::AssignedOrNone,
        "error: Additional properties are not allowed ('bar', 'foo' were unexpected)",
    ),
    (
        r#"{"type": "object", "properties": {"n": {"enum": ["a", 1]}}, "additionalProperties": false}"#,
        r#"{"n": true}"#,
        Defaults::Ignored,
        "error: True is not one of ['a', 1]",
    ),
    (
        r#"{"type": "object", "properties": {"n": {"enum": ["a", 1]}}, "additionalProperties": false}"#,
        r#"{"n": 1.0}"#,
        Defaults::Ignored,
        r#"{"n": 1.0}"#,
    ),
    (
        r#"{"type": "object", "properties": {"n": {"minimum": 2}}, "additionalProperties": false}"#,
        r#"{"n": 1}"#,
        Defaults::Ignored,
        "error: 1 is less than the minimum of 2",
    ),
    (
        r#"{"type": "object", "properties": {"n": {"minimum": 2, "exclusiveMinimum": true}}, "additionalProperties": false}"#,
        r#"{"n": 2}"#,
        Defaults::Ignored,
        "error: 2 is less than or equal to the minimum of 2",
    ),
    (
        r#"{"type": "object", "properties": {"n": {"maximum": 2.5}}, "additionalProperties": false}"#,
        r#"{"n": 3}"#,
        Defaults::Ignored,
        "error: 3 is greater than the maximum of 2.5",
    ),
    (
        r#"{"type": "object", "properties": {"n": {"pattern": "^a$"}}, "additionalProperties": false}"#,
        r#"{"n": "b"}"#,
        Defaults::Ignored,
        "error: 'b' does not match '^a$'",
    ),
    (
        r#"{"type": "object", "properties": {"n": {"pattern": "a$"}}, "additionalProperties": false}"#,
        r#"{"n": "a\n"}"#,
        Defaults::Ignored,
        r#"{"n": "a\n"}"#,
    ),
    (
        r#"{"type": "object", "properties": {"n": {"minLength": 1}}, "additionalProperties": false}"#,
        r#"{"n": ""}"#,
        Defaults::Ignored,
        "error: '' should be non-empty",
    ),
    (
        r#"{"type": "object", "properties": {"n": {"maxLength": 2}}, "additionalProperties": false}"#,
        r#"{"n": "äöü"}"#,
        Defaults::Ignored,
        "error: 'äöü' is too long",
    ),
    (
        r#"{"type": "object", "properties": {"n": {"minItems": 2}}, "additionalProperties": false}"#,
        r#"{"n": [1]}"#,
        Defaults::Ignored,
        "error: [1] is too short",
    ),
    (
        r#"{"type": "object", "properties": {"n": {"maxItems": 0}}, "additionalProperties": false}"#,
        r#"{"n": [1]}"#,
        Defaults::Ignored,
        "error: [1] is expected to be empty",
    ),
    (
        r#"{"type": "object", "properties": {"n": {"uniqueItems": true}}, "additionalProperties": false}"#,
        r#"{"n": [1, 1.0]}"#,
        Defaults::Ignored,
        "error: [1, 1.0] has non-unique elements",
    ),
    (
        r#"{"type": "object", "properties": {"n": {"uniqueItems": true}}, "additionalProperties": false}"#,
        r#"{"n": [1, true]}"#,
        Defaults::Ignored,
        r#"{"n": [1, true]}"#,
    ),
    (
        r#"{"type": "object", "properties": {"n": {"multipleOf": 2}}, "additionalProperties": false}"#,
        r#"{"n": 3}"#,
        Defaults::Ignored,
        "error: 3 is not a multiple of 2",
    ),
    (
        r#"{"type": "object", "properties": {"o": {"type": "object", "properties": {"a": {"type": "string", "default": "x"}, "b": {"type": "array", "items": {"type": "object", "properties": {"c": {"default": 1}}}}}}}, "additionalProperties": false}"#,
        r#"{"o": {"b": [{}, {"c": 2}]}}"#,
        Defaults::Assigned,
        r#"{"o": {"b": [{"c": 1}, {"c": 2}], "a": "x"}}"#,
    ),
    (
        r#"{"type": "object", "properties": {"o": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}, "additionalProperties": false}"#,
        r#"{"o": [1]}"#,
        Defaults::Ignored,
        "error: [1] is not valid under any of the given schemas",
    ),
    (
        r#"{"type": "object", "properties": {"o": {"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "integer"}]}}, "additionalProperties": false}"#,
        r#"{"o": {"a": 1}}"#,
        Defaults::Ignored,
        "error: 1 is not of type 'string'",
    ),
    (
        r#"{"type": "object", "properties": {"o": {"oneOf": [{"type": "string"}, {"minLength": 1}]}}, "additionalProperties": false}"#,
        r#"{"o": "x"}"#,
        Defaults::Ignored,
        "error: 'x' is valid under each of {'minLength': 1}, {'type': 'string'}",
    ),
    (
        r#"{"type": "object", "properties": {"o": {"not": {"type": "string"}}}, "additionalProperties": false}"#,
        r#"{"o": "x"}"#,
        Defaults::Ignored,
        "error: 'x' should not be valid under {'type': 'string'}",
    ),
    (
        r#"{"type": "object", "properties": {"l": {"items": [{"type": "string"}], "additionalItems": false}}, "additionalProperties": false}"#,
        r#"{"l": ["a", 1]}"#,
        Defaults::Ignored,
        "error: Additional items are not allowed (1 was unexpected)",
    ),
    (
        r#"{"type": "object", "patternProperties": {"^a": {"type": "string"}}, "additionalProperties": false}"#,
        r#"{"b": 1, "a": "x"}"#,
        Defaults::Ignored,
        "error: 'b' does not match any of the regexes: '^a'",
    ),
    (
        r#"{"type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": false, "dependencies": {"a": ["b"]}}"#,
        r#"{"a": 1}"#,
        Defaults::Ignored,
        "error: 'b' is a dependency of 'a'",
    ),
    (r#"{"type": "object", "minProperties": 1}"#, "{}", Defaults::Ignored, "error: {} should be non-empty"),
    (
        r#"{"type": "object", "properties": {"n": {"type": ["integer", "string"]}}, "additionalProperties": false}"#,
        r#"{"n": null}"#,
        Defaults::AssignedOrNone,
        r#"{"n": null}"#,
    ),
    (
        r#"{"type": "object", "properties": {"n": {"anyOf": [{"type": "string"}]}}, "additionalProperties": false}"#,
        r#"{"n": null}"#,
        Defaults::AssignedOrNone,
        r#"{"n": null}"#,
    ),
    (
        r##"{"definitions": {"p": {"type": "integer"}}, "type": "object", "properties": {"n": {"$ref": "#/definitions/p"}}}"##,
        r#"{"n": "x"}"#,
        Defaults::Ignored,
        "error: 'x' is not of type 'integer'",
    ),
    (
        r#"{"type": "object", "properties": {"a": {"type": "string"}, "z": {"type": "string"}}, "additionalProperties": false}"#,
        r#"{"a": 1, "z": 2}"#,
        Defaults::Ignored,
        "error: 2 is not of type 'string'",
    ),
    ("{}", r#"{"any": 1}"#, Defaults::AssignedOrNone, r#"{"any": 1}"#),
];

#[test]
fn values_are_checked_as_in_stackstorm() {
    for (schema, value, defaults, expected) in ROWS {
        let checked =
            Schema::compile(&json(schema)).and_then(|schema| schema.validate(&json(value), *defaults));
        match checked {
            Ok(checked) => assert_eq!(checked, json(expected), "{schema} {value}"),
            Err(error) => assert_eq!(format!("error: {error}"), *expected, "{schema} {value}"),
        }
    }
}

#[test]
fn an_error_tells_where_it_is() {
    let schema = json(r#"{"type": "object", "properties": {"a": {"items": {"type": "string"}}}}"#);
    let schema = Schema::compile(&schema).unwrap();
    let error = schema.validate(&json(r#"{"a": ["x", 1]}"#), Defaults::Ignored).unwrap_err();
    assert_eq!(error.path(), ["a", "1"]);
}

#[test]
fn schemas_that_are_wrong_are_refused() {
    let rows = [
        (r#"{"type": "text"}"#, "the value `'text'` of `type` must be one of"),
        (r#"{"properties": {"a": {"required": "yes"}}}"#, "of `properties.a.required` must be a boolean"),
        (r#"{"properties": {"a": {"pattern": "("}}}"#, "the regular expression `(` is wrong"),
        (r#"{"anyOf": {}}"#, "must be a list of schemas"),
        (r#"{"minLength": -1}"#, "must be a whole number from 0 on"),
        (r#"{"enum": []}"#, "must be a list with values"),
        ("[]", "must be a schema"),
    ];
    for (schema, expected) in rows {
        let error = Schema::compile(&json(schema)).unwrap_err().to_string();
        assert!(error.contains(expected), "{schema}: {error}");
    }
}

#[test]
fn greedy_schemas_end_with_an_error() {
    let twice = r##"{"anyOf": [{"allOf": [{"$ref": "#"}]}, {"allOf": [{"$ref": "#"}]}]}"##;
    for schema in [twice, r##"{"$ref": "#"}"##, r##"{"$ref": "#/nowhere"}"##, r##"{"$ref": "http://x"}"##] {
        assert!(Schema::compile(&json(schema)).unwrap().validate(&Value::Null, Defaults::Ignored).is_err());
    }
}

#[test]
fn an_action_changes_some_attributes_of_its_runner_alone() {
    let runner =
        map(r#"{"cmd": {"type": "string", "required": true, "default": "ls"}, "env": {"type": "object"}}"#);
    let action = map(r#"{"cmd": {"default": "pwd", "immutable": true}, "own": {}}"#);
    let merged = merged_parameters(&runner, &action);
    let expected = r#"{"cmd":{"type":"string","required":true,"default":"pwd","immutable":true},"env":{"type":"object"},"own":{}}"#;
    assert_eq!(Value::Map(merged).to_json(), expected);
    let schema = action_schema("pack.name", &runner, &action).unwrap();
    let checked = schema.validate(&json(r#"{"own": [1]}"#), Defaults::AssignedOrNone).unwrap();
    assert_eq!(checked.to_json(), r#"{"own":[1],"cmd":"pwd"}"#);
    let refused = action_schema("pack.name", &runner, &map(r#"{"cmd": {"type": "integer"}}"#)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "The attribute \"type\" for the runner parameter \"cmd\" in action \"pack.name\" cannot be overridden."
    );
    let overridden = immutable_parameters(&runner, &action, &map(r#"{"cmd": "x", "own": 1}"#)).unwrap_err();
    assert_eq!(overridden.to_string(), "Override of immutable parameter(s) ['cmd'] is unsupported.");
}
