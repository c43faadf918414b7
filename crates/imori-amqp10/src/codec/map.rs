//! A growable map.

use crate::codec::push::push_value;
use crate::codec::value::{Map, Symbol, Value};

/// A buffer of encoded pairs. [`MapBuf::map`] lends them as a field.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct MapBuf {
    count: u32,
    bytes: Vec<u8>,
}

impl MapBuf {
    /// Creates an empty map.
    pub fn new() -> MapBuf {
        MapBuf::default()
    }

    /// Adds a pair without checking for a duplicate key.
    pub fn push(&mut self, key: Value<'_>, value: Value<'_>) {
        self.count += 2;
        push_value(&mut self.bytes, key);
        push_value(&mut self.bytes, value);
    }

    /// Adds a pair whose value `write` appends; it must append exactly one value.
    pub fn push_with(&mut self, key: Value<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        self.count += 2;
        push_value(&mut self.bytes, key);
        write(&mut self.bytes);
    }

    /// Adds a pair with a symbol as its key, as in most maps of the specification.
    #[must_use]
    pub fn with(mut self, key: &str, value: Value<'_>) -> MapBuf {
        self.push(Value::Symbol(Symbol(key)), value);
        self
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Removes all pairs but keeps the memory.
    pub fn clear(&mut self) {
        self.count = 0;
        self.bytes.clear();
    }

    /// Returns the map as a value or a field.
    pub fn map(&self) -> Map<'_> {
        Map::of(self.count, &self.bytes)
    }
}
