//! Subjects, filters and names of configurations, as nats-server decides about them.

use imori_core::index::{is_literal, is_valid};

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
                if !(first == second || !is_literal(first) || !is_literal(second)) {
                    return false;
                }
            }
            (Some(_), None) | (None, Some(_)) => return false,
        }
    }
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
    fn filters_overlap() {
        for (first, second, collide) in [
            ("a", "a", true),
            ("a", "b", false),
            ("a", "*", true),
            ("*", "a", true),
            ("a.b", "a.>", true),
            ("a", "a.>", false),
            ("a.>", "a.b", true),
            ("a.*", "*.b", true),
            ("a.*", "a.>", true),
            ("a.>", "a.*", true),
            ("*.*", "a", false),
            ("a.>", ">", true),
            ("a.>", "b.>", false),
            ("a.*.c", "a.>", true),
            ("a.b.c", "a.b", false),
        ] {
            assert_eq!(do_collide(first, second), collide, "{first} and {second}");
            assert_eq!(do_collide(second, first), collide, "{second} and {first}");
        }
    }
}
