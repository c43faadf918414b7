//! Quoted scalars left of their block.

use imori_automation::for_tests::indented;
use imori_automation::limits::YAML_BYTES_MAX;

#[test]
fn a_text_that_would_be_too_long_is_left() {
    let text = format!("a: '{}'", "\n".repeat(YAML_BYTES_MAX / 2));
    assert_eq!(indented(&text, 3, 3), None);
}

#[test]
fn lines_up_to_the_closing_quote_are_indented() {
    let rows = [
        ("ä: 'x\ny'\nz", 3, Some("ä: 'x\n  y'\nz")),
        ("a: \"x\\\"\n\ny\"\nz", 3, Some("a: \"x\\\"\n  \n  y\"\nz")),
        ("a: 'it''s\n'", 3, Some("a: 'it''s\n  '")),
        ("a: 'x'\ny", 3, None),
        ("a: 'x\n", 3, None),
        ("a: x\n", 3, None),
        ("a", 3, None),
    ];
    for (text, at, expected) in rows {
        assert_eq!(indented(text, at, 2).as_deref(), expected, "{text}");
    }
}
