//! Criteria: the operators, and which criteria are refused.

use imori_automation::criteria::{Criteria, CriteriaError, TriggerInstance, Verdict};
use imori_automation::limits::{CRITERIA_MAX, EXPRESSIONS_MAX, SEARCH_DEPTH_MAX};
use imori_automation::value::{Map, Value};

use crate::json;

const NOW: &str = "2026-11-26T12:00:00Z";

fn compiled(text: &str) -> Criteria {
    let value = json(text);
    Criteria::compile(value.as_map().unwrap()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> CriteriaError {
    let value = json(text);
    Criteria::compile(value.as_map().unwrap()).expect_err(text)
}

/// The verdict of a criterion: `yes`, `no` or `failure`.
fn verdict(criteria: &str, payload: &str) -> &'static str {
    let criteria = compiled(criteria);
    let payload = json(payload);
    let outcome = criteria.evaluate(&payload, NOW.parse().unwrap());
    let explained = criteria.explain(&TriggerInstance::new(&payload, NOW.parse().unwrap()));
    assert_eq!(explained.is_match, outcome.is_match);
    match (outcome.is_match, outcome.failure) {
        (true, None) => "yes",
        (true, Some(_)) => "yes, with a failure",
        (false, None) => "no",
        (false, Some(_)) => "failure",
    }
}

#[test]
fn operators_answer_as_in_stackstorm() {
    // The operator, the value, the pattern, and what `st2common/operators.py` gives.
    let rows = [
        ("equals", "1", "1.0", "yes"),
        ("eq", "true", "1", "yes"),
        ("equals", "\"1\"", "1", "no"),
        ("equals", "9007199254740993", "9007199254740992.0", "no"),
        ("equals", r#"{"a":1,"b":[2]}"#, r#"{"b":[2.0],"a":1}"#, "yes"),
        ("nequals", "null", "\"x\"", "yes"),
        ("neq", "\"x\"", "\"x\"", "no"),
        ("iequals", "\"ΑΣ\"", "\"ας\"", "yes"),
        ("ieq", "null", "\"x\"", "failure"),
        ("iequals", "\"5\"", "5", "failure"),
        ("contains", "\"abc\"", "\"b\"", "yes"),
        ("contains", "[1, \"b\"]", "1.0", "yes"),
        ("contains", r#"{"b":1}"#, "\"b\"", "yes"),
        ("contains", r#"{"b":1}"#, "5", "no"),
        ("contains", r#"{"b":1}"#, "[5]", "failure"),
        ("contains", "\"abc\"", "5", "failure"),
        ("contains", "5", "5", "failure"),
        ("contains", "null", "\"b\"", "failure"),
        ("icontains", "\"ABC\"", "\"b\"", "yes"),
        ("icontains", "[\"b\"]", "\"b\"", "failure"),
        ("ncontains", "\"abc\"", "\"x\"", "yes"),
        ("ncontains", "[\"abc\"]", "\"abc\"", "no"),
        ("incontains", "\"ABC\"", "\"b\"", "no"),
        ("startswith", "\"abc\"", "\"ab\"", "yes"),
        ("istartswith", "\"ABC\"", "\"ab\"", "yes"),
        ("endswith", "\"abc\"", "\"bc\"", "yes"),
        ("iendswith", "\"ABC\"", "\"bc\"", "yes"),
        ("endswith", "[\"abc\"]", "\"bc\"", "failure"),
        ("lessthan", "1", "1.5", "yes"),
        ("lt", "\"10\"", "\"9\"", "yes"),
        ("lessthan", "[1, 2]", "[1, 3]", "yes"),
        ("lessthan", "[1]", "[1, 0]", "yes"),
        ("lessthan", "[\"a\", 1]", "[1]", "failure"),
        ("greaterthan", "\"10\"", "9", "failure"),
        ("greaterthan", "null", "9", "failure"),
        ("greaterthan", "{}", "{}", "failure"),
        ("gt", "true", "0.5", "yes"),
        ("matchwildcard", "\"abc\"", "\"a*\"", "yes"),
        ("matchwildcard", "\"ABC\"", "\"a*\"", "no"),
        ("matchwildcard", "5", "\"5\"", "failure"),
        ("matchregex", "\"a\\nb\"", "\"a.b\"", "yes"),
        ("matchregex", "\"xab\"", "\"ab\"", "no"),
        ("regex", "\"xab\"", "\"ab$\"", "yes"),
        ("regex", "\"a\\nb\"", "\"a.b\"", "no"),
        ("regex", "5", "\"5\"", "failure"),
        ("regex", "\"production\"", "\"^(?!test)\"", "yes"),
        ("iregex", "\"XAB\"", "\"ab\"", "yes"),
        ("timediff_lt", "\"2026-11-26T11:59:00Z\"", "61", "yes"),
        ("td_lt", "\"2026-11-26T11:59:00Z\"", "\" 60 \"", "no"),
        ("timediff_gt", "\"Thu, 26 Nov 2026 12:59:00 +0100\"", "59.5", "yes"),
        ("td_gt", "20261125", "86400", "yes"),
        ("timediff_gt", "\"soon\"", "1", "failure"),
        ("timediff_gt", "\"2026-11-26\"", "\"x\"", "failure"),
        ("timediff_gt", "null", "1", "failure"),
        ("exists", "0", "true", "yes"),
        ("exists", "null", "true", "no"),
        ("nexists", "null", "true", "yes"),
        ("inside", "\"b\"", "\"abc\"", "yes"),
        ("in", "2", "[1, 2]", "yes"),
        ("inside", "2", "5", "failure"),
        ("inside", "null", "\"abc\"", "failure"),
        ("ninside", "2", "[1]", "yes"),
        ("nin", "\"b\"", "[\"b\"]", "no"),
        ("EQUALS", "1", "1", "yes"),
    ];
    for (operator, value, pattern, expected) in rows {
        let criteria = format!(r#"{{"trigger.v":{{"type":"{operator}","pattern":{pattern}}}}}"#);
        let given = verdict(&criteria, &format!(r#"{{"v":{value},"x":1}}"#));
        assert_eq!(given, expected, "{value} {operator} {pattern}");
    }
}

#[test]
fn searches_combine_items_and_criteria() {
    let payload = r#"{"f":[{"n":"a","v":1},{"n":"b","v":5}],"one":{"n":"a"},"none":[],"t":"aa","i":5}"#;
    let rows = [
        ("f", "any", r#""item.n":{"type":"equals","pattern":"b"},"item.v":{"type":"gt","pattern":4}"#, "yes"),
        ("f", "any", r#""item.n":{"type":"equals","pattern":"a"},"item.v":{"type":"gt","pattern":4}"#, "no"),
        ("f", "all", r#""item.v":{"type":"gt","pattern":0},"item.v#2":{"type":"lt","pattern":6}"#, "yes"),
        ("f", "all", r#""item.n":{"type":"equals","pattern":"a"}"#, "no"),
        (
            "f",
            "all2any",
            r#""item.n":{"type":"equals","pattern":"a"},"item.v":{"type":"gt","pattern":4}"#,
            "yes",
        ),
        (
            "f",
            "any2any",
            r#""item.n":{"type":"equals","pattern":"z"},"item.v":{"type":"gt","pattern":4}"#,
            "yes",
        ),
        ("f", "all", "", "yes"),
        ("f", "all2any", "", "no"),
        ("none", "all", r#""item":{"type":"equals","pattern":"z"}"#, "yes"),
        ("none", "any", r#""item":{"type":"equals","pattern":"z"}"#, "no"),
        ("one", "any", r#""item.n":{"type":"equals","pattern":"a"}"#, "yes"),
        ("t", "all", r#""item":{"type":"equals","pattern":"a"}"#, "yes"),
        ("i", "any", r#""item":{"type":"equals","pattern":"a"}"#, "failure"),
        ("missing", "any", r#""item":{"type":"equals","pattern":"a"}"#, "failure"),
        ("f", "any", r#""item.v":{"type":"equals","pattern":"{{ item.v }}"}"#, "yes"),
        ("f", "any", r#""item.v":{"type":"equals","pattern":"{{ trigger.v }}"}"#, "failure"),
        (
            "f",
            "any2any",
            r#""item.n":{"type":"gt","pattern":4},"item.v":{"type":"gt","pattern":4}"#,
            "yes, with a failure",
        ),
        ("f", "any", r#""item.n":{"type":"equals"}"#, "no"),
    ];
    for (field, condition, criteria, expected) in rows {
        let text = format!(
            r#"{{"trigger.{field}":{{"type":"search","condition":"{condition}","pattern":{{{criteria}}}}}}}"#
        );
        assert_eq!(verdict(&text, payload), expected, "{text}");
    }
}

#[test]
fn a_pattern_that_is_one_expression_keeps_its_type() {
    let payload = r#"{"v":5,"n":5,"t":"a","b":"5","l":[1,"x"],"null":null}"#;
    let rows = [
        ("v", "equals", "{{ trigger.n }}", "yes"),
        ("v", "equals", "{{trigger.n}}", "yes"),
        ("b", "equals", "{{ trigger.n }}", "no"),
        ("b", "equals", "{{ trigger.b }}", "yes"),
        ("v", "lessthan", "{{ (trigger.n + 1) }}", "yes"),
        ("v", "lessthan", "{{ trigger.n + 1 }}", "failure"),
        ("v", "equals", "{{ trigger.n }}0", "no"),
        ("v", "equals", "{% if trigger.n %}5{% endif %}", "no"),
        ("b", "equals", "{% if trigger.n %}5{% endif %}", "yes"),
        ("t", "equals", "{{ 'a' if trigger.n else 'b' }}", "yes"),
        ("t", "inside", "{{ trigger.t }}{{ trigger.b }}", "yes"),
        ("l", "equals", "{{ trigger.l }}", "yes"),
        ("t", "equals", "{{ trigger.null }}", "no"),
        ("t", "nequals", "{{ trigger.null }}", "yes"),
        ("t", "equals", "{{ trigger.missing }}", "failure"),
        ("t", "equals", "{# a comment #}a", "yes"),
        ("t", "equals", "a\\n", "yes"),
        ("t", "regex", "^{{ trigger.t }}$", "yes"),
        ("t", "regex", "{{ trigger.t }}(", "failure"),
    ];
    for (field, operator, pattern, expected) in rows {
        let text = format!(r#"{{"trigger.{field}":{{"type":"{operator}","pattern":"{pattern}"}}}}"#);
        assert_eq!(verdict(&text, payload), expected, "{text}");
    }
}

#[test]
fn criteria_never_hold_on_an_empty_payload() {
    let criteria = r#"{"trigger.x":{"type":"nexists"}}"#;
    assert_eq!(verdict(criteria, "{}"), "no");
    assert_eq!(verdict(criteria, r#"{"y":1}"#), "yes");
    assert_eq!(verdict("{}", "{}"), "yes");
}

#[test]
fn equalities_are_evaluated_before_what_can_fail() {
    let criteria = r#"{"trigger.a":{"type":"gt","pattern":1},"trigger.b":{"type":"equals","pattern":"x"}}"#;
    assert_eq!(verdict(criteria, r#"{"a":"text","b":"y"}"#), "no");
    assert_eq!(verdict(criteria, r#"{"a":"text","b":"x"}"#), "failure");
}

#[test]
fn errors_tell_the_keys() {
    let rows = [
        (
            r#"{"trigger.x":{"type":"equalz","pattern":1}}"#,
            "trigger.x/type",
            "operator `equalz` is unknown; use one of",
        ),
        (r#"{"trigger.x":{"pattern":1}}"#, "trigger.x", "has no `type`"),
        (r#"{"trigger.x":{"type":"equals"}}"#, "trigger.x", "operator `equals` has no `pattern`"),
        (r#"{"trigger.x":{"type":"equals","pattern":null}}"#, "trigger.x", "has no `pattern`"),
        (r#"{"trigger.x":5}"#, "trigger.x", "is no object"),
        (r#"{"trigger..x":{"type":"equals","pattern":1}}"#, "trigger..x", "has `..`"),
        (r#"{"trigger.x":{"type":"regex","pattern":"("}}"#, "trigger.x/pattern", "does not end"),
        (r#"{"trigger.x":{"type":"equals","pattern":"{{ x"}}"#, "trigger.x/pattern", "template"),
        (r#"{"trigger.x":{"type":"search","pattern":{}}}"#, "trigger.x", "has no `condition`"),
        (
            r#"{"trigger.x":{"type":"search","condition":"some","pattern":{}}}"#,
            "trigger.x/condition",
            "is unknown",
        ),
        (
            r#"{"trigger.x":{"type":"search","condition":"any","pattern":1}}"#,
            "trigger.x/pattern",
            "is no object",
        ),
        (
            r#"{"trigger.x":{"type":"search","condition":"any","pattern":{"item":{"type":"regex","pattern":"["}}}}"#,
            "trigger.x/pattern/item/pattern",
            "set does not end",
        ),
        (
            r#"{"trigger.x":{"type":"search","condition":"any","pattern":{"trigger.y":{"type":"eq","pattern":1}}}}"#,
            "trigger.x/pattern/trigger.y",
            "does not begin with `item`",
        ),
    ];
    for (text, path, part) in rows {
        let error = refused(text);
        assert_eq!(error.path.join("/"), path, "{text}");
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
}

#[test]
fn number_and_depth_of_criteria_are_bounded() {
    let many: Map = (0..=CRITERIA_MAX)
        .map(|at| (format!("trigger.x#{at}"), json(r#"{"type":"equals","pattern":1}"#)))
        .collect();
    assert!(Criteria::compile(&many).unwrap_err().message.contains("more than"));
    let many: Map = (0..=EXPRESSIONS_MAX)
        .map(|at| (format!("trigger.x#{at}"), json(r#"{"type":"regex","pattern":"a"}"#)))
        .collect();
    assert!(Criteria::compile(&many).unwrap_err().message.contains("regular expressions"));
    let mut deep = r#"{"type":"exists"}"#.to_owned();
    for _ in 0..=SEARCH_DEPTH_MAX {
        deep = format!(r#"{{"type":"search","condition":"any","pattern":{{"item":{deep}}}}}"#);
    }
    assert!(refused(&format!(r#"{{"trigger.x":{deep}}}"#)).message.contains("nested"));
}

#[test]
fn an_explanation_shows_each_criterion() {
    let criteria = compiled(
        r#"{"trigger.a":{"type":"lt","pattern":"{{ trigger.b }}"},"trigger.t":{"type":"gt","pattern":1},
            "trigger.m":{"type":"eq","pattern":"x"}}"#,
    );
    let payload = json(r#"{"a":1,"b":2,"t":"x"}"#);
    let explanation = criteria.explain(&TriggerInstance::new(&payload, NOW.parse().unwrap()));
    assert!(!explanation.is_match);
    let [first, second, third] = explanation.criteria.as_slice() else { panic!("there are three") };
    assert_eq!(first.verdict, Verdict::Match(None));
    assert_eq!((first.pattern.clone(), first.operator), (Value::Int(2), "lessthan"));
    assert!(matches!(&second.verdict, Verdict::Failed(reason) if reason.contains("have no order")));
    assert_eq!((&third.value, &third.verdict), (&Value::Null, &Verdict::NoMatch));
    let value = explanation.to_value();
    assert_eq!(value.get("match"), Some(&Value::Bool(false)));
    assert_eq!(value.get("criteria").and_then(Value::as_list).map(<[Value]>::len), Some(3));
}

#[test]
fn criteria_are_parsed_from_yaml() {
    let criteria = Criteria::parse("trigger.x:\n  type: eq\n  pattern: 1\n").unwrap();
    assert!(criteria.evaluate(&json(r#"{"x":1}"#), NOW.parse().unwrap()).is_match);
    assert!(Criteria::parse("- x").unwrap_err().to_string().contains("are no object"));
    assert!(Criteria::parse("a: [").is_err());
}
