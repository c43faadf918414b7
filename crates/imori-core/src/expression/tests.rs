use super::*;

#[test]
fn an_expression_is_searched_for_as_rabbitmq_does() {
    for (text, name, expected) in [
        ("", "", true),
        ("", "a", false),
        ("^$", "", true),
        ("^$", "a", false),
        (".*", "", true),
        (".*", "anything", true),
        (".*", "two\nlines", true),
        ("^.*", "anything", true),
        (".*$", "anything", true),
        ("^.*$", "anything", true),
        ("nan", "banana", true),
        ("^nan", "banana", false),
        ("^ban", "banana", true),
        ("^ban.*", "banana", true),
        ("^ban.*", "ba", false),
        ("ana$", "banana", true),
        ("^banana$", "banana", true),
        ("^banana$", "bananas", false),
        (r"^amq\.gen.*", "amq.gen-1", true),
        (r"^amq\.gen.*", "amqXgen-1", false),
        ("^(a|b)$", "b", true),
        ("^(a|b)$", "ab", false),
        ("(?i)^ORDERS$", "orders", true),
        ("^é+$", "éé", true),
        (r"^\w+$", "é", false),
    ] {
        let expression = Expression::new(text).unwrap();
        assert_eq!(expression.is_match(name.as_bytes()), expected, "`{text}` against `{name}`");
    }
}

#[test]
fn usual_expressions_need_no_engine() {
    for text in ["", "^$", ".*", "^.*", ".*$", "^a", "^a.*", r"^a\.b$", "(?s).*"] {
        let expression = Expression::new(text).unwrap();
        assert!(!matches!(expression, Expression::Found(_)), "{text}");
    }
}

#[test]
fn an_expression_that_only_other_engines_know_is_refused_at_its_place() {
    for (text, expected) in [
        (
            "^(?=a)",
            "regular expression `^(?=a)`, character 2: look-around, including look-ahead and look-behind, is not supported",
        ),
        (r"(a)\1", r"regular expression `(a)\\1`, character 4: backreferences are not supported"),
        ("é(", "regular expression `é(`, character 2: unclosed group"),
        ("*", "regular expression `*`, character 1: repetition operator missing expression"),
    ] {
        assert_eq!(Expression::new(text).unwrap_err().to_string(), expected, "{text}");
    }
}

// SECURITY LIM-12.
#[test]
fn an_expression_is_bounded_in_length_nesting_and_size() {
    assert!(Expression::new(&"a".repeat(EXPRESSION_BYTES_MAX)).is_ok());
    let long = Expression::new(&"é".repeat(EXPRESSION_BYTES_MAX)).unwrap_err().to_string();
    assert!(long.ends_with("has too many bytes; use at most 1024"), "{long}");
    let deep = format!("{}a{}", "(".repeat(400), ")".repeat(400));
    assert!(Expression::new(&deep).is_err());
    let large = Expression::new("((a{100}){100}){100}").unwrap_err().to_string();
    assert!(large.ends_with("is too large when compiled; repeat less"), "{large}");
}
