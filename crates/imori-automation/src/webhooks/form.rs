//! Forms, as Python's `parse_qs` reads them.

use percent_encoding::percent_decode_str;

use crate::limits::FORM_FIELDS_MAX;

/// Names and values of a form, or of a query, in order; those without a value are left out. `None` means that there
/// are more than `FORM_FIELDS_MAX`.
pub(super) fn fields(text: &str) -> Option<Vec<(String, String)>> {
    let mut fields = Vec::new();
    for field in text.split('&') {
        let Some((name, value)) = field.split_once('=').filter(|(_, value)| !value.is_empty()) else {
            continue;
        };
        if fields.len() == FORM_FIELDS_MAX {
            return None;
        }
        fields.push((decoded(name), decoded(value)));
    }
    Some(fields)
}

fn decoded(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str)]) {
        let fields = fields(text).unwrap();
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
        assert_eq!(fields(&"a=1&".repeat(FORM_FIELDS_MAX)).map(|fields| fields.len()), Some(FORM_FIELDS_MAX));
        assert_eq!(fields(&"a=1&".repeat(FORM_FIELDS_MAX + 1)), None);
    }
}
