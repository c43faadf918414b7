//! A value of a configuration, with the line that it stands on.

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    pub(crate) value: Value,
    /// File and line, as messages name them.
    pub(crate) place: String,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Whole(i64),
    Fraction(f64),
    Truth(bool),
    List(Vec<Item>),
    /// Keys in the order of the file; of two equal ones the last counts.
    Map(Vec<(String, Item)>),
}

impl Item {
    /// The text, where it is one.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The items of a list; a single value counts as a list of one.
    pub(super) fn items(&self) -> &[Item] {
        match &self.value {
            Value::List(items) => items,
            _ => std::slice::from_ref(self),
        }
    }

    /// The keys of a map, the last of equal ones.
    pub(super) fn keys(&self) -> Option<Vec<(String, &Item)>> {
        let Value::Map(entries) = &self.value else { return None };
        let is_last = |at: usize, key: &str| !entries.iter().skip(at + 1).any(|(later, _)| later == key);
        let last = entries.iter().enumerate().filter(|(at, (key, _))| is_last(*at, key));
        Some(last.map(|(_, (key, item))| (key.to_lowercase(), item)).collect())
    }
}
