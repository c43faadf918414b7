use super::*;

fn shown(pattern: Result<Pattern, PatternError>) -> String {
    match pattern {
        Ok(pattern) => pattern.to_string(),
        Err(error) => error.to_string(),
    }
}

fn check(parse: fn(&[u8]) -> Result<Pattern, PatternError>, rows: &[(&str, &str, bool)]) {
    for (pattern, subject, expected) in rows {
        let parsed = parse(pattern.as_bytes()).unwrap();
        assert_eq!(is_match(&parsed, subject.as_bytes()), *expected, "{pattern} against {subject}");
    }
}

#[test]
fn amqp_wildcards() {
    check(
        Pattern::amqp,
        &[
            ("a.b", "a.b", true),
            ("a.b", "a.c", false),
            ("a.*", "a.b", true),
            ("a.*", "a", false),
            ("a.*", "a.b.c", false),
            ("a.*", "a.", true),
            ("a.#", "a", true),
            ("a.#", "a.b", true),
            ("a.#", "a.b.c", true),
            ("a.#", "ab", false),
            ("#", "", true),
            ("#", "a.b", true),
            ("*", "", false),
            ("*", "a", true),
            ("", "", true),
            ("", "a", false),
            ("..", "..", true),
            ("*.*", ".", true),
            ("#.a.#", "a.a", true),
            ("#.a.#", "b.b", false),
            ("#.b", "a.b", true),
            ("#.b", "b.a", false),
            ("a.#.b", "a.b", true),
            ("a.#.b", "a.x.y.b", true),
            ("a.#.b", "a.b.c", false),
            ("#.*", "", false),
            ("#.*", "a.b.c", true),
            ("#.#", "", true),
            ("*.#.*", "a", false),
            ("*.#.*", "a.b", true),
            ("a*", "ab", false),
            ("a*", "a*", true),
            ("a#.b", "a#.b", true),
            // Names that the broker generates.
            ("amq.gen-x", "amq.gen-x", true),
            ("amq.*", "amq.gen-x", false),
            ("#", "amq.gen-x", false),
            ("amq.*", "amq.x", true),
        ],
    );
}

#[test]
fn nats_wildcards() {
    check(
        Pattern::nats,
        &[
            ("a.b", "a.b", true),
            ("a.*", "a.b", true),
            ("a.*", "a", false),
            ("a.>", "a", false),
            ("a.>", "a.b", true),
            ("a.>", "a.b.c", true),
            (">", "a", true),
            ("*.b", "a.b", true),
            ("*.*.>", "a.b", false),
            ("*.*.>", "a.b.c", true),
            ("a*.b", "ab.b", false),
            ("a.>b", "a.>b", true),
        ],
    );
}

#[test]
fn mqtt_wildcards() {
    check(
        Pattern::mqtt,
        &[
            ("a/b", "a.b", true),
            ("a/+", "a.b", true),
            ("a/+", "a", false),
            ("a/#", "a", true),
            ("a/#", "a.b.c", true),
            ("a/#", "ab", false),
            ("#", "a", true),
            ("+/+", ".b", true),
            ("/+", ".b", true),
            ("+", ".b", false),
            ("a.b/c", "a/b.c", true),
            ("a.b/c", "a.b.c", false),
            ("*", "x", false),
            ("*", "*", true),
        ],
    );
}

#[test]
fn only_nats_patterns_that_begin_with_a_wildcard_see_reserved_subjects() {
    for subject in ["_INBOX.a", "$JS.a", "$.a", "_INBOX"] {
        for (pattern, expected) in [
            (Pattern::amqp(b"#"), false),
            (Pattern::amqp(b"*.#"), false),
            (Pattern::amqp(b"#.a"), false),
            (Pattern::mqtt(b"#"), false),
            (Pattern::mqtt(b"+/#"), false),
            (Pattern::nats(b">"), true),
        ] {
            let pattern = pattern.unwrap();
            assert_eq!(is_match(&pattern, subject.as_bytes()), expected, "{pattern} against {subject}");
        }
    }
    check(
        Pattern::amqp,
        &[
            ("_INBOX.#", "_INBOX.a", true),
            ("$SYS.*", "$SYS.a", true),
            ("#", "_INBOXES.a", true),
            ("#", "a.$b", true),
            ("*.a", "_inbox.a", true),
        ],
    );
}

#[test]
fn runs_of_wildcards_have_one_form() {
    for (written, kept) in [
        ("#.#", "#"),
        ("#.#.#.#", "#"),
        ("#.*", "*.#"),
        ("#.*.#.*.a.#.#", "*.*.#.a.#"),
        ("a.#.*.b", "a.*.#.b"),
        ("a.*.b", "a.*.b"),
    ] {
        let pattern = Pattern::amqp(written.as_bytes()).unwrap();
        assert_eq!(pattern.to_string(), kept);
        assert_eq!(pattern.is_normalised(), written != kept);
    }
}

#[test]
fn what_is_not_a_pattern_is_refused_with_advice() {
    let many = ".".repeat(SUBJECT_TOKENS_MAX);
    let long = "a".repeat(SUBJECT_BYTES_MAX + 1);
    for (pattern, error) in [
        (Pattern::nats(b"a..b"), "subject `a..b` has an empty token; put a name between the dots"),
        (Pattern::nats(b""), "subject `` has an empty token; put a name between the dots"),
        (Pattern::nats(b"a."), "subject `a.` has an empty token; put a name between the dots"),
        (Pattern::nats(b"a.>.b"), "`a.>.b` goes on after its multi-level wildcard; end it there"),
        (Pattern::mqtt(b"a/#/b"), "`a/#/b` goes on after its multi-level wildcard; end it there"),
        (Pattern::mqtt(b""), "topic filter is empty; use `#` for all topics"),
        (
            Pattern::mqtt(b"a/b+"),
            "topic filter `a/b+` has a wildcard beside other characters; give it a level of its own",
        ),
        (
            Pattern::amqp(b"#.a.b.#.c.d.#.e"),
            "pattern `#.a.b.#.c.d.#.e` has 4 words between its first and last `#`; use at most 3",
        ),
        (Pattern::amqp(many.as_bytes()), "subject has 129 tokens; use at most 128"),
        (Pattern::amqp(long.as_bytes()), "subject has 1025 bytes; use at most 1024"),
        (Pattern::literal(long.as_bytes()), "subject has 1025 bytes; use at most 1024"),
    ] {
        assert_eq!(shown(pattern), error);
    }
}

#[test]
fn literal_syntax_has_no_wildcards() {
    let pattern = Pattern::literal(b"a.*.#").unwrap();
    assert!(is_match(&pattern, b"a.*.#"));
    assert!(!is_match(&pattern, b"a.b.c"));
}

#[test]
fn mqtt_topics_and_subjects_change_into_each_other() {
    for topic in ["a/b", "/a.b//c", "", "."] {
        assert_eq!(mqtt_subject(&mqtt_subject(topic.as_bytes())), topic.as_bytes());
    }
}
