//! What the settings of the core do not tell of a configuration, kept so that answers give it back as it was declared:
//! metadata, descriptions, numbers written in another way.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The fields in which `declared` differs from `derived`, as JSON; empty if it does not.
pub fn note_of<C: Serialize>(declared: &C, derived: &C) -> Box<[u8]> {
    let (declared, mut derived) = (fields(declared), fields(derived));
    let mut note = Map::new();
    for (name, value) in declared {
        if derived.remove(&name).as_ref() != Some(&value) {
            note.insert(name, value);
        }
    }
    note.extend(derived.into_iter().map(|(name, _)| (name, Value::Null)));
    if note.is_empty() { Box::default() } else { Value::Object(note).to_string().into_bytes().into() }
}

/// The declared configuration, of which `derived` is what the settings tell.
pub fn with_note<C: Serialize + DeserializeOwned>(derived: C, note: &[u8]) -> C {
    if note.is_empty() {
        return derived;
    }
    let mut all = fields(&derived);
    let noted: Map<String, Value> = serde_json::from_slice(note).unwrap_or_default();
    for (name, value) in noted {
        match value {
            Value::Null => drop(all.remove(&name)),
            value => drop(all.insert(name, value)),
        }
    }
    serde_json::from_value(Value::Object(all)).unwrap_or(derived)
}

fn fields<C: Serialize>(configuration: &C) -> Map<String, Value> {
    match serde_json::to_value(configuration) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}
