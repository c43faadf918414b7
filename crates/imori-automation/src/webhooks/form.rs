//! Forms, as Python's `parse_qs` reads them.

use percent_encoding::percent_decode_str;

use crate::limits::FORM_FIELDS_MAX;

/// Names and values of a form, or of a query, in order; those without a value are left out. `None` means that there
/// are more than `FORM_FIELDS_MAX`.
pub fn fields(text: &str) -> Option<Vec<(String, String)>> {
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
