//! Casts of parameters.

use imori_automation::parameters::cast;
use imori_automation::value::Value;

use crate::json;

/// A value, a type, and what StackStorm casts it to.
const ROWS: &[(&str, &str, &str)] = &[
    (r#""5""#, "integer", "5"),
    (r#"" 1_0 ""#, "integer", "10"),
    ("2.9", "integer", "2"),
    ("true", "integer", "1"),
    (r#""x""#, "integer", "error: invalid literal for int() with base 10: 'x'"),
    (
        "[1]",
        "integer",
        "error: int() argument must be a string, a bytes-like object or a real number, not 'list'",
    ),
    (r#""1e3""#, "number", "1000.0"),
    ("7", "number", "7.0"),
    (r#""x""#, "number", "error: could not convert string to float: 'x'"),
    (r#""true""#, "boolean", "true"),
    (r#""False""#, "boolean", "false"),
    (r#""tRUE""#, "boolean", "true"),
    ("0", "boolean", "0"),
    (r#""x""#, "string", r#""x""#),
    ("5", "string", r#"error: Value "5" must either be a string or None. Got "int"."#),
    ("null", "string", "null"),
    (r#""[1, \"a\"]""#, "array", r#"[1, "a"]"#),
    (r#""['a', None, (1, 2.5)]""#, "array", r#"["a", null, [1, 2.5]]"#),
    (r#""{'a': True, 'b': {'c': 'd'}}""#, "array", r#"{"a": true, "b": {"c": "d"}}"#),
    (r#""{\"a\": 1}""#, "object", r#"{"a": 1}"#),
    (r#""{'a': 'it\\'s \\u00e9'}""#, "object", r#"{"a": "it's é"}"#),
    ("[1]", "array", "[1]"),
    (r#""%*****__%NONE%__*****%""#, "array", "null"),
    (r#""%*****__%NONE%__*****%""#, "string", "null"),
    (r#""5""#, "foo", r#""5""#),
    (r#""5""#, "", r#""5""#),
    (r#""[1, -2, +3, 1e2, 0x1f, 'a' 'b']""#, "array", r#"[1, -2, 3, 100.0, 31, "ab"]"#),
    (r#""()""#, "array", "[]"),
    (r#""(1)""#, "array", "1"),
    (r#""1, 2""#, "array", "[1, 2]"),
    (r#""'''a\nb'''""#, "array", r#""a\nb""#),
];

#[test]
fn values_are_cast_as_in_stackstorm() {
    for (value, kind, expected) in ROWS {
        let value = json(value);
        let cast = match cast(&value, Some(*kind).filter(|kind| !kind.is_empty())) {
            Ok(cast) => cast,
            Err(error) => Value::from(format!("error: {error}")),
        };
        let expected = match expected.starts_with("error: ") {
            true => Value::from(*expected),
            false => json(expected),
        };
        assert_eq!(cast, expected, "{value} {kind}");
    }
}

#[test]
fn literals_that_are_wrong_or_too_deep_are_refused() {
    let deep = "[".repeat(1_000);
    for text in ["", "[1", "{1: 2", "'a", "b'x'", "1+2j", "name", "[1] 2", "{[1]: 2}", "{1: 2, 3}", &deep] {
        assert!(cast(&Value::from(text), Some("array")).is_err(), "{text}");
    }
}
