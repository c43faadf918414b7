//! The body of a request as a value.

use std::fmt;

use super::form::fields;
use crate::limits::FORM_FIELDS_MAX;
use crate::value::{Map, Value};

/// Why a body is no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyError {
    /// It is announced as JSON and is none; the text says where.
    Json(String),
    /// It has bytes that are no UTF-8.
    Encoding,
    /// It is a form of more than `FORM_FIELDS_MAX` fields.
    FormFields,
}

/// Decodes a body. JSON, also of types such as `application/cloudevents+json` and where no type is given, becomes its
/// value, and an empty one an empty object. A form becomes an object of lists of texts, as in StackStorm. Any other is
/// a text.
pub(super) fn decode(content_type: Option<&str>, body: &[u8]) -> Result<Value, BodyError> {
    let media_type =
        content_type.map_or("application/json", |value| value.split(';').next().unwrap_or(value).trim());
    let media_type = media_type.to_ascii_lowercase();
    if media_type.is_empty() || media_type == "application/json" || media_type.ends_with("+json") {
        if body.is_empty() {
            return Ok(Value::Map(Map::new()));
        }
        return Value::from_json(body).map_err(|error| BodyError::Json(error.to_string()));
    }
    let text = std::str::from_utf8(body).map_err(|_| BodyError::Encoding)?;
    if media_type == "application/x-www-form-urlencoded" {
        return form(text);
    }
    Ok(Value::from(text))
}

/// The value that is sent as JSON in the only field, `payload`, of a form.
pub(super) fn payload_of_form(body: &Value) -> Option<Value> {
    let form = body.as_map().filter(|form| form.len() == 1)?;
    match form.get("payload")?.as_list()? {
        [Value::String(text)] => Value::from_json(text.as_bytes()).ok(),
        _ => None,
    }
}

fn form(text: &str) -> Result<Value, BodyError> {
    let mut form = Map::new();
    for (name, value) in fields(text).ok_or(BodyError::FormFields)? {
        match form.get_mut(&name) {
            Some(Value::List(values)) => values.push(Value::from(value)),
            _ => drop(form.insert(name, vec![Value::from(value)])),
        }
    }
    Ok(Value::Map(form))
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BodyError::Json(error) => {
                write!(f, "the body is no JSON: {error}; send JSON, or another `Content-Type`")
            }
            BodyError::Encoding => f.write_str("the body is no UTF-8; send it in UTF-8"),
            BodyError::FormFields => {
                write!(f, "the form has more than {FORM_FIELDS_MAX} fields; send fewer, or JSON")
            }
        }
    }
}

impl std::error::Error for BodyError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_is_decoded_by_its_type() {
        let json = Some("application/json; charset=utf-8");
        let form = Some("application/x-www-form-urlencoded; charset=UTF-8");
        let rows: [(Option<&str>, &str, &str); 11] = [
            (json, r#"{"b":1,"a":[2.0]}"#, r#"{"b":1,"a":[2.0]}"#),
            (json, "[1]", "[1]"),
            (json, "", "{}"),
            (None, "{}", "{}"),
            (Some("Application/CloudEvents+JSON"), "{}", "{}"),
            (form, "form=test", r#"{"form":["test"]}"#),
            (form, "a=1&b=%7B&a=2", r#"{"a":["1","2"],"b":["{"]}"#),
            (form, "", "{}"),
            (Some("text/plain"), "{}", r#""{}""#),
            (Some("text/plain"), "", r#""""#),
            (Some("application/xml"), "<a/>", r#""<a/>""#),
        ];
        for (content_type, body, expected) in rows {
            assert_eq!(
                decode(content_type, body.as_bytes()).unwrap().to_json(),
                expected,
                "{content_type:?} {body}"
            );
        }
    }

    #[test]
    fn wrong_body_is_refused() {
        assert!(matches!(decode(None, b"{"), Err(BodyError::Json(_))));
        assert!(matches!(decode(None, &b"[".repeat(100_000)), Err(BodyError::Json(_))));
        assert_eq!(decode(Some("text/plain"), b"\xff"), Err(BodyError::Encoding));
        let form = "a=1&".repeat(FORM_FIELDS_MAX + 1);
        assert_eq!(
            decode(Some("application/x-www-form-urlencoded"), form.as_bytes()),
            Err(BodyError::FormFields)
        );
    }

    #[test]
    fn payload_is_the_only_field_of_a_form() {
        let payload = |body: &str| payload_of_form(&Value::from_json(body.as_bytes()).unwrap());
        assert_eq!(payload(r#"{"payload":["{\"a\":1}"]}"#).unwrap().to_json(), r#"{"a":1}"#);
        for body in
            [r#"{"payload":["{}","{}"]}"#, r#"{"payload":["{"]}"#, r#"{"payload":["{}"],"b":["1"]}"#, "[]"]
        {
            assert_eq!(payload(body), None, "{body}");
        }
    }
}
