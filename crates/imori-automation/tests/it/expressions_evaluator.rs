//! Texts with expressions.

use imori_automation::for_tests::{CurrentTask, EvaluationError, Evaluator, Scope};
use imori_automation::value::{Map, Value};
use imori_automation::workflows::Answers;

use crate::{json, map};

fn scope() -> Scope {
    let variables = r#"{"x": 1, "s": "text", "l": [1, "a", null], "o": {"k": true}, "again": "<% ctx().x %>", "jinja": "{{ ctx().x }}"}"#;
    let mut scope = Scope::new(map(variables));
    let result = json(r#"{"stdout": "out"}"#);
    scope.task = Some(CurrentTask { id: "t".into(), route: 0, status: "failed", result: Some(result) });
    scope.of_item(json(r#"{"i": 7}"#))
}

/// The value as JSON, `? EXPRESSION` for a question, or the error.
fn evaluated(text: &str, answers: &Answers) -> String {
    let mut evaluator = Evaluator::new(answers);
    match evaluator.value(&json(text), &scope(), "here") {
        Ok(value) => value.to_json(),
        Err(EvaluationError::Failed(message)) => message,
        Err(EvaluationError::Asked) => {
            let asked = evaluator.questions.iter().map(|question| format!("? {}", question.expression));
            asked.collect::<Vec<_>>().join(" ")
        }
    }
}

#[test]
fn texts_with_expressions() {
    let rows = [
        (r#""plain""#, r#""plain""#),
        (r#"[1, null, true, {"a": "<% ctx().x %>"}]"#, r#"[1,null,true,{"a":1}]"#),
        (r#"{"<% ctx().s %>": 1}"#, r#"{"text":1}"#),
        (r#""<% ctx().l %>""#, r#"[1,"a",null]"#),
        (r#""<% ctx().l %> ""#, r#""[1, 'a', None] ""#),
        (r#""<% ctx().x %>-<% ctx().o %>-<% ctx().x %>""#, r#""1-{'k': True}-1""#),
        (r#""{{ ctx().l }}""#, r#"[1,"a",null]"#),
        (r#""{{ ctx('x') + 1 }}""#, "2"),
        (r#""{{ ctx().o.k }} {{ ctx().s | upper }}""#, r#""True TEXT""#),
        (r#""{% if failed() %}{{ result().stdout }}{% endif %}""#, r#""out""#),
        (r#""{{ item('i') }}{{ item().i }}""#, r#""77""#),
        (r#""<% item(i) + len(ctx().l) %>""#, "10"),
        (r#""<% ctx().again %>""#, "1"),
        (r#""<% ctx().jinja %>""#, r#""{{ ctx().x }}""#),
        (r#""{{ ctx().jinja }}""#, "1"),
        (r#""{{ zip(ctx().l, [5]) }}""#, r#"[[1,5],["a",null],[null,null]]"#),
        (r#""{{ json('[1]') }}""#, "[1]"),
        ("\"<% ctx().x\\n %>\"", "\"<% ctx().x\\n %>\""),
        (r#""<% st2kv('system.x') %>""#, "? <% st2kv('system.x') %>"),
        (r#""{{ st2kv('system.x') }}""#, "? {{ st2kv('system.x') }}"),
        (
            r#"["<% ctx().l.select($) %>", "{{ ctx().x | unknown }}", "<% ctx().x %>"]"#,
            "? <% ctx().l.select($) %> ? {{ ctx().x | unknown }}",
        ),
        (
            r#""<% ctx().none %>""#,
            "YaqlEvaluationException: Unable to resolve key 'none' in expression '<% ctx().none %>' from context.",
        ),
        (
            r#""<% ctx(none) %>""#,
            "YaqlEvaluationException: Unable to evaluate expression '<% ctx(none) %>'. VariableUndefinedError: The variable \"none\" is undefined.",
        ),
        (r#""{{ ctx().none }}""#, "JinjaEvaluationException: There are unresolved variables: ctx().none"),
        (
            r#""{{ ctx('none') }}""#,
            "JinjaEvaluationException: Unable to evaluate expression '{{ ctx('none') }}'. VariableUndefinedError: The variable \"none\" is undefined.",
        ),
    ];
    for (json, expected) in rows {
        assert_eq!(evaluated(json, &Answers::new()), expected, "{json}");
    }
}

#[test]
fn answers_take_the_place_of_expressions() {
    let mut answers = Answers::new();
    answers.insert("here: <% f() %>".to_owned(), Ok(Value::from("<% ctx().x + 1 %>")));
    answers.insert("here: <% g() %>".to_owned(), Err("NameError: no".to_owned()));
    assert_eq!(evaluated(r#""<% f() %>""#, &answers), "2");
    let error = "YaqlEvaluationException: Unable to evaluate expression '<% g() %>'. NameError: no";
    assert_eq!(evaluated(r#""a <% g() %>""#, &answers), error);
}

#[test]
fn a_value_that_repeats_itself_ends() {
    let mut variables = Map::new();
    variables.insert("x", "<% ctx().x %>");
    let answers = Answers::new();
    let mut evaluator = Evaluator::new(&answers);
    let value = evaluator.value(&Value::from("<% ctx().x %>"), &Scope::new(variables), "here");
    assert_eq!(value, Ok(Value::from("<% ctx().x %>")));
}
