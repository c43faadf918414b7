//! Regular expressions of Python, by the operator `regex`.

use imori_automation::criteria::Criteria;
use imori_automation::limits::{EXPRESSION_BYTES_MAX, EXPRESSION_DEPTH_MAX};
use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};

/// A criterion on `trigger.text`.
pub(crate) fn compile(operator: &str, pattern: &str) -> Result<Criteria, String> {
    let criterion: Map = [("type", operator), ("pattern", pattern)].into_iter().collect();
    let criteria: Map = [("trigger.text", criterion)].into_iter().collect();
    Criteria::compile(&criteria).map_err(|error| error.message)
}

/// Whether the criterion holds for this text, or why it fails.
pub(crate) fn is_match(criteria: &Criteria, text: &str) -> Result<bool, String> {
    let payload: Map = [("text", text)].into_iter().collect();
    let outcome = criteria.evaluate(&Value::Map(payload), Timestamp::from_seconds(0));
    outcome.failure.map_or(Ok(outcome.is_match), |failure| Err(failure.reason))
}

#[test]
fn expressions_search_as_in_python() {
    let rows = [
        ("b", "abc", true),
        ("^b", "abc", false),
        ("c$", "abc\n", true),
        ("c$", "abc\n\n", false),
        (r"c\Z", "abc\n", false),
        ("(?m)^b$", "a\nb\nc", true),
        ("a.c", "a\nc", false),
        ("(?s)a.c", "a\nc", true),
        ("(?i)ABC", "abc", true),
        ("(?i:A)b", "aB", false),
        ("(?x) a b # c\n d", "abd", true),
        (r"\d+\s\w", "12 x", true),
        (r"\s", "\x1c", true),
        (r"[\S]", "\x1c", false),
        ("[]a]+", "]", true),
        ("[^]a]", "]", false),
        ("[a-c-]", "-", true),
        ("[a&&b]", "&", true),
        ("[[:alpha:]]", ":]", true),
        (r"[\b]", "\x08", true),
        ("a{,2}b", "b", true),
        ("a{x", "a{x", true),
        ("{}", "{}", true),
        ("a{2}", "aa", true),
        (r"\x41\u00e4\101\0", "AäA\0", true),
        ("(?P<n>a)(b)?", "a", true),
        ("a(?#comment)b", "ab", true),
        (r"\b\.\-\/", "a.-/", true),
        ("a|", "x", true),
        ("(a$|b)c", "bc", true),
        (r"(a$|b)\s", "a\n", true),
        (r"(\n|$)*\Z", "\n", true),
        (r"a$\Z", "a\n", false),
        ("^(?!a)", "b", true),
        ("^(?!a)", "a", false),
        ("(?<=a)b$", "ab\n", true),
        (r"(a|b)\1", "abb", true),
        (r"(a|b)\1", "ab", false),
        (r"(?P<n>a)x(?P=n)\Z", "axa", true),
        ("a*+a", "aaa", false),
        ("(?>a*)b", "aab", true),
    ];
    for (pattern, text, expected) in rows {
        let criteria = compile("regex", pattern).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(is_match(&criteria, text), Ok(expected), "{pattern} {text:?}");
    }
}

#[test]
fn what_has_no_equivalent_is_refused_by_name() {
    let rows = [
        (r"\1(a)", r"back-reference `\1` has no group"),
        (r"(a\1)", r"back-reference `\1` stands within its group"),
        ("(?P=n)(?P<n>a)", "back-reference `(?P=n)` has no group"),
        ("(a)?(?(1)b|c)", "conditional group"),
        ("a{2}+", "possessive quantifier `{2}+`"),
        ("a**", "repeats a repetition"),
        ("*a", "nothing to repeat"),
        ("^*", "nothing to repeat"),
        ("a|*", "nothing to repeat"),
        ("(", "does not end"),
        (")", "has no `(`"),
        ("[a", "set does not end"),
        ("[b-a]", "no range"),
        (r"[a-\d]", "no range"),
        (r"\q", r"escape `\q` is unknown"),
        (r"\x4", r"escape `\x4` is no character"),
        ("\\", "ends with"),
        ("a(?i)", "do not stand at the beginning"),
        ("(?L)a", "flag `L`"),
        ("(?P<1>a)", "no name of a group"),
        ("a{3,2}", "wrong order"),
        ("((a{100}){100}){100}", "bytes of memory"),
    ];
    for (pattern, part) in rows {
        let error = compile("regex", pattern).expect_err(pattern);
        assert!(error.contains(part), "{pattern}: {error}");
    }
    let slow = compile("regex", r"(a*)*b\1$").unwrap();
    assert!(is_match(&slow, &"a".repeat(10_000)).is_err());
    assert!(compile("regex", &"(".repeat(EXPRESSION_DEPTH_MAX + 1)).is_err());
    assert!(compile("regex", &"a".repeat(EXPRESSION_BYTES_MAX + 1)).is_err());
}
