//! Reads a field of a form that a program uploads as `multipart/form-data` (RFC 7578).

use axum::http::HeaderValue;

use crate::limits::{BOUNDARY_BYTES_MAX, FORM_FIELDS_MAX};

/// The error of a body that ends within a part.
const CUT: &str = "the form does not end with its boundary";

/// The boundary of a form, if this content type is that of one.
///
/// # Errors
/// The content type has no usable boundary.
pub(super) fn boundary(kind: &HeaderValue) -> Result<Option<&str>, &'static str> {
    let mut parts = kind.to_str().unwrap_or_default().split(';').map(str::trim);
    if !parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("multipart/form-data")) {
        return Ok(None);
    }
    let boundary = parts.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.eq_ignore_ascii_case("boundary").then(|| value.trim_matches('"'))
    });
    match boundary.filter(|boundary| (1..=BOUNDARY_BYTES_MAX).contains(&boundary.len())) {
        Some(boundary) => Ok(Some(boundary)),
        None => Err("the `boundary` of the form is missing or too long"),
    }
}

/// The content of a form's field; the first of its name counts.
///
/// # Errors
/// The form is cut off, has too many fields, or lacks the field.
pub(super) fn field<'a>(form: &'a [u8], boundary: &str, name: &str) -> Result<&'a [u8], String> {
    let delimiter = format!("\r\n--{boundary}");
    let (first, delimiter) = (delimiter.trim_start().as_bytes(), delimiter.as_bytes());
    let mut rest = form.strip_prefix(first).ok_or("the form does not begin with its boundary")?;
    for _ in 0..FORM_FIELDS_MAX {
        if rest.starts_with(b"--") {
            return Err(format!("the form has no field `{name}`"));
        }
        // Spaces may follow the boundary; without headers, the blank line comes at once.
        let (head, content) = cut_at(rest, b"\r\n\r\n").ok_or(CUT)?;
        let (content, after) = cut_at(content, delimiter).ok_or(CUT)?;
        if is_field(head, name) {
            return Ok(content);
        }
        rest = after;
    }
    Err(format!("the form has more than `{FORM_FIELDS_MAX}` fields"))
}

/// Whether these headers of a part name this field.
fn is_field(head: &[u8], name: &str) -> bool {
    let head = String::from_utf8_lossy(head);
    let disposition = head.split("\r\n").filter_map(|line| line.split_once(':'));
    let mut disposition =
        disposition.filter(|(header, _)| header.trim().eq_ignore_ascii_case("content-disposition"));
    disposition.next().is_some_and(|(_, value)| {
        value.split(';').filter_map(|parameter| parameter.trim().split_once('=')).any(|(parameter, value)| {
            parameter.eq_ignore_ascii_case("name") && value.trim_matches('"') == name
        })
    })
}

/// The bytes before and after the first occurrence of `mark`.
fn cut_at<'a>(bytes: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = bytes.windows(mark.len()).position(|window| window == mark)?;
    let (before, after) = bytes.split_at_checked(at)?;
    Some((before, after.get(mark.len()..)?))
}
