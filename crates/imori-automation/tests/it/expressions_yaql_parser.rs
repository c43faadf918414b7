//! The syntax of YAQL expressions.

use imori_automation::for_tests::{parse_yaql, yaql_syntax_error};

#[test]
fn certain_errors_are_found() {
    let rows = [
        ("ctx().x", None),
        ("$.where($.a = 1)", None),
        ("(1 + 2", Some("Parse error: unexpected end of statement")),
        ("1 +", Some("Parse error: unexpected end of statement")),
        ("a)", Some("Parse error: unexpected ')' in expression 'a)'")),
        ("[1)", Some("Parse error: unexpected ')' in expression '[1)'")),
        ("ctx() x", Some("Parse error: unexpected 'x' in expression 'ctx() x'")),
        ("a @ b", Some("Lexical error: illegal character '@' at position 2")),
    ];
    for (source, expected) in rows {
        assert_eq!(yaql_syntax_error(source).as_deref(), expected, "{source}");
    }
}

#[test]
fn forms_that_are_left_to_yaql() {
    for source in ["a -> b", "a =~ b", "$.x", "f(,1)", "a.1", "a.(b)", "a?.b", "", "x.-y", "[a => b]", "{a}"]
    {
        assert_eq!(parse_yaql(source), None, "{source}");
    }
}

#[test]
fn deep_expressions_are_left_to_yaql() {
    assert_eq!(parse_yaql(&"(".repeat(100_000)), None);
    assert_eq!(parse_yaql(&"not ".repeat(100_000)), None);
    assert_eq!(parse_yaql(&format!("a{}", ".b".repeat(100_000))), None);
}
