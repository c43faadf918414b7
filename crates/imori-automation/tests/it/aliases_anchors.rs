//! The anchors of formats.

use imori_automation::for_tests::{Anchors, anchors};

#[test]
fn anchors_are_found_as_in_stackstorm() {
    for (expression, begins, ends) in [
        ("asdf", false, false),
        ("^asdf", true, false),
        (r"asdf\s*$", false, true),
        (r"\Aasdf\Z", true, true),
        ("(^asdf)|b", false, false),
        ("b|(^asdf$)", true, true),
        ("^a$|^b$", true, true),
        ("a$|b|c$", false, false),
        ("((?:^a))", true, false),
        ("(^a)?b", false, false),
        ("(?=^a)b(?!$)", false, false),
        (r"\^a[$]\$", false, false),
        (r"[]^$]a[^^]", false, false),
        ("(?P<a>^x)", true, false),
        ("(?:a|b$)*", false, false),
        ("(", false, false),
    ] {
        assert_eq!(anchors(expression), Anchors { begins, ends }, "{expression}");
    }
    assert_eq!(anchors(&"(".repeat(100_000)), Anchors::default());
}
