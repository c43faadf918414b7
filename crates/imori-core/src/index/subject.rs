//! Texts of subjects and filters, and how they contain each other, as nats-server decides it.

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
        }
    }

    #[test]
    fn filters_contain_each_other() {
        for (inner, outer, expected) in [
            ("a", "a", true),
            ("a", "b", false),
            ("a", "*", true),
            ("*", "a", false),
            ("a.b", "a.>", true),
            ("a", "a.>", false),
            ("a.>", "a.b", false),
            ("a.*", "*.b", false),
            ("a.*", "a.>", true),
            ("a.>", "a.*", false),
            ("*.*", "a", false),
            ("a.>", ">", true),
            ("a.>", "b.>", false),
            ("a.*.c", "a.>", true),
            ("a.b.c", "a.b", false),
        ] {
            assert_eq!(is_subset(inner, outer), expected, "{inner} in {outer}");
        }
    }
}
