//! Wildcards, by the operator `matchwildcard`.

use crate::criteria_expression::{compile, is_match};

#[test]
fn wildcards_match_as_in_fnmatch() {
    let rows = [
        ("", "", true),
        ("*", "", true),
        ("*", "a\nb", true),
        ("a*c", "abbc", true),
        ("a*c", "abbcd", false),
        ("a?c", "aäc", true),
        ("a.c", "abc", false),
        ("[abc]x", "bx", true),
        ("[!abc]x", "bx", false),
        ("[a-c]x", "bx", true),
        ("[c-a]x", "bx", false),
        ("[!c-a]x", "bx", true),
        ("[]]", "]", true),
        ("[!]]", "]", false),
        ("[a-]", "-", true),
        ("[-a]", "-", true),
        ("[^a]", "^", true),
        ("[[]x", "[x", true),
        ("[a", "[a", true),
        ("a\\*", "a\\b", true),
        ("[a-c-e]", "-", true),
        ("x&&y", "x&&y", true),
        ("**a**", "xay", true),
        ("a", "A", false),
        ("a", "a\n", false),
    ];
    for (pattern, text, expected) in rows {
        let criteria = compile("matchwildcard", pattern).unwrap();
        assert_eq!(is_match(&criteria, text), Ok(expected), "{pattern} {text:?}");
    }
}
