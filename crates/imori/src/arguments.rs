//! Keys and values on a command line: arguments of queues and exchanges, settings of policies.

use anyhow::bail;
use serde_json::{Map, Value};

/// Parses `KEY=VALUE`; a value that is not JSON is taken as text.
pub(crate) fn argument(text: &str) -> Result<(String, Value), String> {
    let Some((key, value)) = text.split_once('=') else {
        return Err(String::from("expected a key and a value, such as `max-length=1000`"));
    };
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    Ok((key.to_owned(), value))
}

/// Collects arguments into an object; a repeated key is an error.
pub(crate) fn object(arguments: Vec<(String, Value)>) -> anyhow::Result<Map<String, Value>> {
    let mut object = Map::new();
    for (key, value) in arguments {
        if object.insert(key.clone(), value).is_some() {
            bail!("`{key}` is given twice; give it once");
        }
    }
    Ok(object)
}
