//! Reads the JSON of JetStream as nats-server does: names in any case, `null` as absent, unknown
//! names refused or ignored.

use std::fmt;

use serde::Serialize;
use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Visitor};
use serde_json::{Error, Value};

use crate::limits::API_BODY_BYTES_MAX;

/// Treatment of a field that a request does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownNames {
    /// The request fails, as nats-server has it for all requests that configure something.
    Refused,
    /// The name is skipped, as for pull requests and stored configurations.
    Ignored,
}

/// The reason why a body is not a valid request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError(String);

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for JsonError {}

impl From<Error> for JsonError {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

/// Reads the body of a request; an empty body is a request of defaults.
///
/// # Errors
///
/// Fails for a body over [`API_BODY_BYTES_MAX`], for bytes that are not JSON and for JSON that is
/// not this request.
pub fn decode<T: DeserializeOwned + Default>(
    body: &[u8],
    unknown_names: UnknownNames,
) -> Result<T, JsonError> {
    match parse(body)? {
        None => Ok(T::default()),
        Some(value) => from_value(value, unknown_names),
    }
}

/// Reads JSON of any shape; `None` for an empty body.
///
/// # Errors
///
/// As for [`decode`].
pub fn parse(body: &[u8]) -> Result<Option<Value>, JsonError> {
    if body.len() > API_BODY_BYTES_MAX {
        return Err(JsonError(format!("more than {API_BODY_BYTES_MAX} bytes")));
    }
    if body.trim_ascii().is_empty() {
        return Ok(None);
    }
    serde_json::from_slice(body).map(Some).map_err(JsonError::from)
}

/// Reads a request from JSON that is already parsed.
///
/// # Errors
///
/// Fails if the JSON is not this request.
pub fn from_value<T: DeserializeOwned>(value: Value, unknown_names: UnknownNames) -> Result<T, JsonError> {
    T::deserialize(Lenient { value, unknown_names }).map_err(JsonError::from)
}

/// Writes a value as JSON.
pub fn to_json(value: &impl Serialize) -> Vec<u8> {
    // Writing to memory fails only for maps whose keys are not text, and there are none.
    serde_json::to_vec(value).unwrap_or_default()
}

/// Whether JSON omits the number.
pub fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

/// Whether JSON omits the bool.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
pub fn is_false(flag: &bool) -> bool {
    !flag
}

/// Deserializes a struct by names in any case and without its nulls.
struct Lenient {
    value: Value,
    unknown_names: UnknownNames,
}

impl IntoDeserializer<'_, Error> for Lenient {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Lenient {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let unknown_names = self.unknown_names;
        let lenient = |value| Self { value, unknown_names };
        match self.value {
            Value::Array(values) => visitor.visit_seq(SeqDeserializer::new(values.into_iter().map(lenient))),
            Value::Object(map) => {
                let entries = map.into_iter().map(|(name, value)| (name, lenient(value)));
                visitor.visit_map(MapDeserializer::new(entries))
            }
            value => value.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let Value::Object(map) = self.value else {
            // A struct would also read an array, which Go refuses.
            return Err(Error::custom("expected an object"));
        };
        let unknown_names = self.unknown_names;
        let mut entries: Vec<(&'static str, Self)> = Vec::with_capacity(map.len());
        for (name, value) in map {
            let field = fields.iter().find(|field| **field == name);
            let field = field.or_else(|| fields.iter().find(|field| field.eq_ignore_ascii_case(&name)));
            match field {
                None if unknown_names == UnknownNames::Refused => {
                    return Err(Error::custom(format_args!("json: unknown field {name:?}")));
                }
                None => {}
                Some(_) if value.is_null() => {}
                Some(field) => {
                    // Of two spellings one counts.
                    entries.retain(|(earlier, _)| earlier != field);
                    entries.push((field, Self { value, unknown_names }));
                }
            }
        }
        visitor.visit_map(MapDeserializer::new(entries.into_iter()))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.value.deserialize_enum(name, variants, visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;
    use crate::limits::JSON_DEPTH_MAX;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Outer {
        number: i64,
        inner: Option<Inner>,
        names: BTreeMap<String, String>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Inner {
        list: Vec<Outer>,
    }

    #[test]
    fn names_match_in_any_case_and_null_is_absent() {
        let inner = |list| Some(Inner { list });
        for (json, expected) in [
            ("", Outer::default()),
            (" \n", Outer::default()),
            ("{}", Outer::default()),
            (r#"{"NUMBER":1,"inner":null,"names":null}"#, Outer { number: 1, ..Outer::default() }),
            (r#"{"number":1,"Number":2}"#, Outer { number: 1, ..Outer::default() }),
            (
                r#"{"inner":{"List":[{"number":3}]}}"#,
                Outer { inner: inner(vec![Outer { number: 3, ..Outer::default() }]), ..Outer::default() },
            ),
            (
                r#"{"names":{"Number":"x"}}"#,
                Outer { names: [("Number".to_string(), "x".to_string())].into(), ..Outer::default() },
            ),
        ] {
            assert_eq!(decode::<Outer>(json.as_bytes(), UnknownNames::Refused), Ok(expected), "{json}");
        }
    }

    #[test]
    fn what_is_not_the_request_is_refused() {
        let deep = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
        for (json, text) in [
            ("{", "EOF"),
            ("[]", "expected an object"),
            ("7", "expected an object"),
            ("{} x", "trailing"),
            (r#"{"number":"1"}"#, "invalid type"),
            (r#"{"number":1.5}"#, "invalid type"),
            (r#"{"number":18446744073709551616}"#, "invalid type"),
            (r#"{"other":1}"#, "json: unknown field \"other\""),
            (r#"{"inner":{"other":1}}"#, "json: unknown field \"other\""),
            (r#"{"inner":[]}"#, "expected an object"),
            (&deep(JSON_DEPTH_MAX + 1), "recursion limit"),
            (&" ".repeat(API_BODY_BYTES_MAX + 1), "more than"),
        ] {
            let error = decode::<Outer>(json.as_bytes(), UnknownNames::Refused).unwrap_err();
            assert!(error.to_string().contains(text), "{json}: {error}");
        }
        assert!(parse(deep(JSON_DEPTH_MAX).as_bytes()).is_ok());
    }

    #[test]
    fn unknown_names_can_be_ignored() {
        let read = decode::<Outer>(br#"{"other":{"a":1},"number":1}"#, UnknownNames::Ignored);
        assert_eq!(read, Ok(Outer { number: 1, ..Outer::default() }));
    }
}
