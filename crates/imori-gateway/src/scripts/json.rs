//! `JSON`, by serde_json: values go to and from text without a tree in between.

use std::fmt;

use imori_ruby::{Call, Error, Library, Value};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, SeqAccess, Visitor},
    ser::{Error as _, SerializeMap, SerializeSeq},
};

use super::context::bytes_at;

pub(super) fn declare(library: &mut Library) {
    library
        .module("JSON")
        .class("JSON::JSONError", "StandardError")
        .class("JSON::ParserError", "JSON::JSONError")
        .class("JSON::GeneratorError", "JSON::JSONError")
        .singleton_method("JSON", "__parse", parse)
        .singleton_method("JSON", "__generate", generate)
        .prelude("<imori>/json.rb", include_str!("../ruby/json.rb"));
}

/// `__parse(text)`
fn parse(call: &Call<'_>) -> Result<Value, Error> {
    let text = bytes_at(call, 0)?;
    let parsed: Result<Parsed, _> = serde_json::from_slice(&text);
    parsed.map(|parsed| parsed.0).map_err(|error| Error::new("JSON::ParserError", error.to_string()))
}

/// `__generate(value, is_pretty)`
fn generate(call: &Call<'_>) -> Result<Value, Error> {
    let value = Generated(call.argument(0)?);
    let is_pretty = call.arguments.get(1).is_some_and(Value::is_truthy);
    let text = if is_pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) };
    text.map(Value::String).map_err(|error| Error::new("JSON::GeneratorError", error.to_string()))
}

struct Parsed(Value);

impl<'de> Deserialize<'de> for Parsed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue).map(Parsed)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Boolean(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        // A larger number than Ruby's integers here is a float.
        Ok(i64::try_from(value).map_or(Value::Float(value as f64), Value::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(Parsed(item)) = items.next_element()? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Value, A::Error> {
        let mut hash = Vec::new();
        while let Some((key, Parsed(value))) = pairs.next_entry::<String, Parsed>()? {
            hash.push((Value::String(key.into_bytes()), value));
        }
        Ok(Value::Hash(hash))
    }
}

struct Generated<'a>(&'a Value);

impl Serialize for Generated<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Nil => serializer.serialize_unit(),
            Value::Boolean(value) => serializer.serialize_bool(*value),
            Value::Integer(value) => serializer.serialize_i64(*value),
            Value::Float(value) if value.is_finite() => serializer.serialize_f64(*value),
            Value::Float(value) => Err(S::Error::custom(format!("`{value}` is no number of JSON"))),
            Value::String(bytes) | Value::Symbol(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => serializer.serialize_str(text),
                Err(_) => Err(S::Error::custom("a string is not UTF-8")),
            },
            Value::Array(items) => {
                let mut array = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    array.serialize_element(&Generated(item))?;
                }
                array.end()
            }
            Value::Hash(pairs) => {
                let mut object = serializer.serialize_map(Some(pairs.len()))?;
                for (key, value) in pairs {
                    let key = match key {
                        Value::Nil => String::new(),
                        Value::Integer(number) => number.to_string(),
                        Value::Float(number) => number.to_string(),
                        Value::Boolean(is_true) => is_true.to_string(),
                        key => match key.text() {
                            Some(text) => text.to_owned(),
                            None => return Err(S::Error::custom("a key is no text of UTF-8")),
                        },
                    };
                    object.serialize_entry(&key, &Generated(value))?;
                }
                object.end()
            }
            Value::Handle(handle) => Err(S::Error::custom(format!("`{}` has no JSON", handle.class()))),
            Value::Object(class) => Err(S::Error::custom(format!("`{class}` has no JSON"))),
        }
    }
}
