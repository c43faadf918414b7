//! Subjects and filters of configurations: validity, overlap and containment, as nats-server
//! decides them.

/// Whether the subject has no empty token, no white space, and `>` only at its end.
pub fn is_valid(subject: &str) -> bool {
    let mut is_over = false;
    for token in subject.split('.') {
        if token.is_empty() || is_over || token.contains([' ', '\t', '\n', '\r', '\x0c']) {
            return false;
        }
        is_over = token == ">";
    }
    true
}

/// Whether the subject has no wildcard.
pub fn is_literal(subject: &str) -> bool {
    subject.split('.').all(|token| !is_wildcard(token))
}

/// Whether a message can be published to the subject.
pub fn is_valid_literal(subject: &str) -> bool {
    is_valid(subject) && is_literal(subject)
}

/// Whether a stream or a consumer can have the name.
pub fn is_valid_name(name: &str) -> bool {
    !name.is_empty() && !name.contains([' ', '\t', '\r', '\n', '\x0c', '.', '*', '>', '\\', '/'])
}

/// The filter that a key of a binding of AMQP stands for; `None` if NATS has none for it.
pub fn filter_of_key(key: &[u8]) -> Option<String> {
    let key = std::str::from_utf8(key).ok()?;
    let filter = match key.strip_suffix('#') {
        Some(before) if before.is_empty() || before.ends_with('.') => format!("{before}>"),
        _ => key.to_owned(),
    };
    let has_many = filter.split('.').any(|token| token == "#");
    (is_valid(&filter) && !has_many).then_some(filter)
}

/// Whether some literal subject matches both filters.
pub fn do_collide(first: &str, second: &str) -> bool {
    let (mut firsts, mut seconds) = (first.split('.'), second.split('.'));
    loop {
        match (firsts.next(), seconds.next()) {
            (None, None) => return true,
            (Some(">"), Some(_)) | (Some(_), Some(">")) => return true,
            (Some(first), Some(second)) => {
                if !(first == second || is_wildcard(first) || is_wildcard(second)) {
                    return false;
                }
            }
            (Some(_), None) | (None, Some(_)) => return false,
        }
    }
}

/// Whether every subject that matches `inner` also matches `outer`.
pub fn is_subset(inner: &str, outer: &str) -> bool {
    let (mut inners, mut outers) = (inner.split('.'), outer.split('.'));
    loop {
        match (inners.next(), outers.next()) {
            (None, None) => return true,
            (Some(_), Some(">")) => return true,
            (Some(">"), Some(_)) => return false,
            (Some("*"), Some(outer)) => {
                if outer != "*" {
                    return false;
                }
            }
            (Some(inner), Some(outer)) => {
                if outer != "*" && inner != outer {
                    return false;
                }
            }
            (Some(_), None) | (None, Some(_)) => return false,
        }
    }
}

fn is_wildcard(token: &str) -> bool {
    matches!(token, "*" | ">")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_amqp_stand_for_filters() {
        for (key, filter) in [
            ("a.b", Some("a.b")),
            ("a.*", Some("a.*")),
            ("a.#", Some("a.>")),
            ("#", Some(">")),
            ("a#", Some("a#")),
            ("a.#.b", None),
            ("a..b", None),
            ("", None),
            ("a b", None),
        ] {
            assert_eq!(filter_of_key(key.as_bytes()).as_deref(), filter, "{key}");
        }
        assert_eq!(filter_of_key(b"\xff"), None);
    }

    #[test]
    fn subjects_are_checked_as_in_nats_server() {
        for (subject, valid, literal) in [
            ("a", true, true),
            ("a.b", true, true),
            ("a.*.b", true, false),
            ("a.>", true, false),
            (">", true, false),
            ("a*.>b", true, true),
            ("", false, true),
            ("a.", false, true),
            (".a", false, true),
            ("a..b", false, true),
            ("a b", false, true),
            (" ", false, true),
            ("a.\t", false, true),
            (">.a", false, false),
        ] {
            assert_eq!(is_valid(subject), valid, "{subject:?}");
            assert_eq!(is_literal(subject), literal, "{subject:?}");
            assert_eq!(is_valid_literal(subject), valid && literal, "{subject:?}");
        }
    }

    #[test]
    fn names_have_no_blank_dot_wildcard_or_slash() {
        for (name, expected) in [
            ("ORDERS", true),
            ("a-b_c", true),
            ("é", true),
            ("", false),
            ("a b", false),
            ("a.b", false),
            ("a*", false),
            (">", false),
            ("a/b", false),
            ("a\\b", false),
        ] {
            assert_eq!(is_valid_name(name), expected, "{name:?}");
        }
    }

    #[test]
    fn filters_overlap_and_contain_each_other() {
        for (first, second, collide, subset) in [
            ("a", "a", true, true),
            ("a", "b", false, false),
            ("a", "*", true, true),
            ("*", "a", true, false),
            ("a.b", "a.>", true, true),
            ("a", "a.>", false, false),
            ("a.>", "a.b", true, false),
            ("a.*", "*.b", true, false),
            ("a.*", "a.>", true, true),
            ("a.>", "a.*", true, false),
            ("*.*", "a", false, false),
            ("a.>", ">", true, true),
            ("a.>", "b.>", false, false),
            ("a.*.c", "a.>", true, true),
            ("a.b.c", "a.b", false, false),
        ] {
            assert_eq!(do_collide(first, second), collide, "{first} and {second}");
            assert_eq!(do_collide(second, first), collide, "{second} and {first}");
            assert_eq!(is_subset(first, second), subset, "{first} in {second}");
        }
    }
}
