//! Forms.

use imori_automation::for_tests::form_fields;
use imori_automation::limits::FORM_FIELDS_MAX;

fn check(text: &str, expected: &[(&str, &str)]) {
    let fields = form_fields(text).unwrap();
    let fields: Vec<(&str, &str)> =
        fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(fields, expected, "{text}");
}

#[test]
fn fields_are_those_of_python() {
    check("", &[]);
    check("a=1&b=2&a=3", &[("a", "1"), ("b", "2"), ("a", "3")]);
    check("a&b=&=c&&d=e=f", &[("", "c"), ("d", "e=f")]);
    check("a+b=c+d&e=%2B%20%3d", &[("a b", "c d"), ("e", "+ =")]);
    check("a=%C3%A4%ff%zz%", &[("a", "ä\u{fffd}%zz%")]);
    check("a=1;b=2", &[("a", "1;b=2")]);
}

#[test]
fn fields_are_limited() {
    assert_eq!(
        form_fields(&"a=1&".repeat(FORM_FIELDS_MAX)).map(|fields| fields.len()),
        Some(FORM_FIELDS_MAX)
    );
    assert_eq!(form_fields(&"a=1&".repeat(FORM_FIELDS_MAX + 1)), None);
}
