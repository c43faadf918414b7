//! A configuration value with its file and line.

/// A value and its location.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The value.
    pub value: Value,
    /// File and line, as shown in messages.
    pub place: String,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A text, also one without quotes.
    Text(String),
    /// A whole number.
    Whole(i64),
    /// Any other number.
    Fraction(f64),
    /// Yes or no.
    Truth(bool),
    /// A list.
    List(Vec<Item>),
    /// Keys in file order; the last of several equal keys counts.
    Map(Vec<(String, Item)>),
}

impl Item {
    /// The text, if the value is a text.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The items of a list; any other value counts as a list of one.
    pub(super) fn items(&self) -> &[Item] {
        match &self.value {
            Value::List(items) => items,
            _ => std::slice::from_ref(self),
        }
    }

    /// The entries of a map with lower-case keys; of several equal keys only the last. `None` if the value is not a
    /// map.
    pub fn keys(&self) -> Option<Vec<(String, &Item)>> {
        let Value::Map(entries) = &self.value else { return None };
        let is_last = |at: usize, key: &str| {
            !entries.iter().skip(at + 1).any(|(later, _)| later.to_lowercase() == key.to_lowercase())
        };
        let last = entries.iter().enumerate().filter(|(at, (key, _))| is_last(*at, key));
        Some(last.map(|(_, (key, item))| (key.to_lowercase(), item)).collect())
    }
}
