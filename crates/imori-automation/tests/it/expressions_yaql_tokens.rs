//! The tokens of YAQL expressions.

use imori_automation::for_tests::{Token, TokenError, tokens};

#[test]
fn wrong_characters_and_open_texts_have_a_position() {
    let rows = [
        ("ctx().x @ 1", TokenError::Wrong(8)),
        ("'open", TokenError::Wrong(0)),
        ("a + \"x", TokenError::Wrong(4)),
        ("__private", TokenError::Wrong(0)),
        ("$.x", TokenError::Unknown),
        ("`a`", TokenError::Unknown),
        (r"'\x41'", TokenError::Unknown),
        ("1a", TokenError::Unknown),
        ("99999999999999999999", TokenError::Unknown),
    ];
    for (source, expected) in rows {
        assert_eq!(tokens(source), Err(expected), "{source}");
    }
}

#[test]
fn a_name_right_before_a_parenthesis_is_a_call() {
    let call = tokens("not(x)").unwrap();
    assert_eq!(call.first(), Some(&Token::Call("not".to_owned())));
    let operator = tokens("not (x)").unwrap();
    assert_eq!(operator.first(), Some(&Token::Sign("not")));
}
