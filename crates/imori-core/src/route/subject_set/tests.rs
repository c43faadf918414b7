use proptest::prelude::*;

use super::*;

/// All subjects of up to four tokens of a small alphabet, the empty one included.
fn subjects() -> Vec<String> {
    let mut all = vec![String::new()];
    let mut last = vec![String::new()];
    for _ in 0..4 {
        let longer = |begin: &String| {
            ["a", "b", "c"]
                .map(|token| if begin.is_empty() { token.into() } else { format!("{begin}.{token}") })
        };
        last = last.iter().flat_map(longer).collect();
        all.extend(last.iter().cloned());
    }
    all
}

fn nats() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec!["a", "b", "c", "*"]);
    (prop::collection::vec(token, 0..4), any::<bool>()).prop_map(|(mut tokens, is_open)| {
        if is_open || tokens.is_empty() {
            tokens.push(">");
        }
        tokens.join(".")
    })
}

fn amqp() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec!["a", "b", "c", "*", "#"]);
    prop::collection::vec(token, 1..5).prop_map(|tokens| tokens.join("."))
}

fn is_in(text: &str, subject: &str) -> bool {
    text == ">" || is_match(&Pattern::nats(text.as_bytes()).unwrap(), subject.as_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_subject_is_in_a_set_whose_patterns_match_it(texts in prop::collection::vec(nats(), 0..6)) {
        let set = SubjectSet::new(texts.iter().map(String::as_str)).unwrap();
        for subject in subjects() {
            let expected = texts.iter().any(|text| is_in(text, &subject));
            prop_assert_eq!(set.allows(subject.as_bytes(), None), expected, "{:?} {}", texts, subject);
            prop_assert_eq!(set.denies(subject.as_bytes(), None), expected);
        }
    }

    // SECURITY AUTH-03: pairs of patterns against the enumeration of subjects.
    #[test]
    fn covering_and_touching_are_as_the_enumeration_says(text in nats(), other in amqp()) {
        let set = SubjectSet::new([text.as_str()]).unwrap();
        let pattern = Pattern::amqp(other.as_bytes()).unwrap();
        let heard: Vec<String> =
            subjects().into_iter().filter(|subject| is_match(&pattern, subject.as_bytes())).collect();
        let is_denied = heard.iter().any(|subject| is_in(&text, subject));
        prop_assert!(set.denies_any_of(&pattern, None) || !is_denied, "{} touches {}", text, other);
        // For patterns this short, subjects of four tokens already show every overlap.
        if other.split('.').count() + text.split('.').count() <= 4 {
            prop_assert_eq!(set.denies_any_of(&pattern, None), is_denied, "{} touches {}", text, other);
        }
        if set.allows_all_of(&pattern, None) {
            prop_assert!(heard.iter().all(|subject| is_in(&text, subject)), "{} covers {}", text, other);
        }
    }
}

#[test]
fn a_pattern_is_covered_by_a_wider_one() {
    for (wide, pattern, expected) in [
        (">", "#", true),
        ("a.>", "a.*", true),
        ("a.>", "a.*.#", true),
        ("a.>", "a.#", false),
        ("a.*", "a.*", true),
        ("a.*", "a.#", false),
        ("*", "#", false),
        ("*.*", "a.b", true),
        ("*.>", "#.a.b", true),
        ("a.>", "#.a.b", false),
        ("a.b", "a.b", true),
        ("a.b", "*.b", false),
    ] {
        let set = SubjectSet::new([wide]).unwrap();
        let pattern = Pattern::amqp(pattern.as_bytes()).unwrap();
        assert_eq!(set.allows_all_of(&pattern, None), expected, "{wide} covers {pattern}");
    }
}

#[test]
fn groups_decide_for_their_members() {
    let set = SubjectSet::new(["a.> workers", "b", "b v1.*", "> none"]).unwrap();
    for (subject, group, allowed, denied) in [
        ("a.b", None, false, false),
        ("a.b", Some("workers"), true, true),
        ("a.b", Some("others"), false, false),
        ("b", None, true, true),
        ("b", Some("v1.x"), true, true),
        ("b", Some("v2"), false, true),
    ] {
        let group: Option<&[u8]> = group.map(str::as_bytes);
        assert_eq!(set.allows(subject.as_bytes(), group), allowed, "{subject} {group:?}");
        assert_eq!(set.denies(subject.as_bytes(), group), denied, "{subject} {group:?}");
    }
}

#[test]
fn what_is_no_pattern_is_named() {
    for text in ["a..b", "", "a.>.b"] {
        assert_eq!(SubjectSet::new(["a", text]).unwrap_err().0, text);
    }
}
