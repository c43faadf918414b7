//! Fields: reads the keys of a document's object with their types, and collects what is wrong with them.

use imori_automation::value::{Map, Value};

use super::document::{Document, PackProblem, Read, Severity};

/// The keys of an object of a document. A key that is `null` counts as missing, as in StackStorm.
pub(crate) struct Fields<'a> {
    document: &'a Document,
    path: Vec<String>,
    map: &'a Map,
    problems: Vec<PackProblem>,
}

impl<'a> Fields<'a> {
    /// The fields of a whole document.
    ///
    /// # Errors
    /// The document is no object.
    pub(crate) fn of(document: &'a Document) -> Result<Fields<'a>, PackProblem> {
        Fields::at(document, Vec::new(), document.value())
    }

    /// The fields of an object at a path of a document.
    ///
    /// # Errors
    /// The value is no object.
    pub(crate) fn at(
        document: &'a Document,
        path: Vec<String>,
        value: &'a Value,
    ) -> Result<Fields<'a>, PackProblem> {
        match value {
            Value::Map(map) => Ok(Fields { document, path, map, problems: Vec::new() }),
            other => {
                let steps: Vec<_> = path.iter().map(String::as_str).collect();
                let found = if other.is_null() { "is empty" } else { article(other.type_name()) };
                Err(document.problem(&steps, format!("{found}; give it keys with values")))
            }
        }
    }

    /// A text, if the key is there.
    pub(crate) fn text(&mut self, key: &str) -> Option<String> {
        self.typed(key, "a text", |value| value.as_str().map(str::to_owned))
    }

    /// A text that must be there; empty with a problem where it is not.
    pub(crate) fn required_text(&mut self, key: &str) -> String {
        if self.value(key).is_none() {
            self.complain(&[], format!("key `{key}` is missing; give it a text"));
        }
        self.text(key).unwrap_or_default()
    }

    /// A boolean, or this one.
    pub(crate) fn flag(&mut self, key: &str, default: bool) -> bool {
        self.typed(key, "true or false", Value::as_bool).unwrap_or(default)
    }

    /// A number, if the key is there.
    pub(crate) fn number(&mut self, key: &str) -> Option<f64> {
        self.typed(key, "a number", Value::as_number)
    }

    /// An object, if the key is there.
    pub(crate) fn map(&mut self, key: &str) -> Option<Map> {
        self.typed(key, "an object", |value| value.as_map().cloned())
    }

    /// A list, empty where the key is missing.
    pub(crate) fn list(&mut self, key: &str) -> Vec<Value> {
        self.typed(key, "a list", |value| value.as_list().map(<[Value]>::to_vec)).unwrap_or_default()
    }

    /// A list of texts, empty where the key is missing.
    pub(crate) fn texts(&mut self, key: &str) -> Vec<String> {
        let mut texts = Vec::new();
        for (index, item) in self.list(key).iter().enumerate() {
            match item.as_str() {
                Some(text) => texts.push(text.to_owned()),
                None => self.complain(
                    &[key, &index.to_string()],
                    format!("key `{key}` lists something else than a text"),
                ),
            }
        }
        texts
    }

    /// A list of objects, empty where the key is missing.
    pub(crate) fn maps(&mut self, key: &str) -> Vec<Map> {
        let mut maps = Vec::new();
        for (index, item) in self.list(key).into_iter().enumerate() {
            match item {
                Value::Map(map) => maps.push(map),
                _ => self.complain(
                    &[key, &index.to_string()],
                    format!("key `{key}` lists something else than an object"),
                ),
            }
        }
        maps
    }

    /// The pack: the one that the document names must be this one.
    pub(crate) fn pack(&mut self, pack: &str) -> String {
        match self.text("pack") {
            Some(named) if !named.is_empty() && named != pack => {
                self.complain(
                    &["pack"],
                    format!("key `pack` is `{named}` in a file of pack `{pack}`; leave it out"),
                );
            }
            _ => {}
        }
        pack.to_owned()
    }

    /// Complains about keys that are none of these.
    pub(crate) fn only(&mut self, known: &[&str]) {
        for (key, message) in unknown_keys(self.map, known) {
            self.complain(&[&key], message);
        }
    }

    /// Warns of keys that are none of these.
    pub(crate) fn mostly(&mut self, known: &[&str]) {
        for (key, message) in unknown_keys(self.map, known) {
            self.warn(&[&key], message);
        }
    }

    /// A value as it stands, if it is not `null`.
    pub(crate) fn value(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// The document.
    pub(crate) fn document(&self) -> &'a Document {
        self.document
    }

    /// The path of a node below this object.
    pub(crate) fn path(&self, below: &[&str]) -> Vec<String> {
        self.path.iter().cloned().chain(below.iter().map(|step| (*step).to_owned())).collect()
    }

    /// Adds an error at a node below this object.
    pub(crate) fn complain(&mut self, below: &[&str], message: impl Into<String>) {
        let path = self.path(below);
        let steps: Vec<_> = path.iter().map(String::as_str).collect();
        self.problems.push(self.document.problem(&steps, message));
    }

    /// Adds a warning at a node below this object.
    pub(crate) fn warn(&mut self, below: &[&str], message: impl Into<String>) {
        self.complain(below, message);
        if let Some(last) = self.problems.pop() {
            self.problems.push(last.as_warning());
        }
    }

    /// Adds problems that were found elsewhere.
    pub(crate) fn add(&mut self, problems: Vec<PackProblem>) {
        self.problems.extend(problems);
    }

    /// What was read with its warnings, or what is wrong.
    pub(crate) fn read<T>(self, definition: T) -> Read<T> {
        match self.problems.iter().all(|problem| problem.severity == Severity::Warning) {
            true => Ok((definition, self.problems)),
            false => Err(self.problems),
        }
    }

    fn typed<T>(&mut self, key: &str, wanted: &str, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
        let value = self.value(key)?;
        let found = read(value);
        if found.is_none() {
            self.complain(&[key], format!("key `{key}` {}; give it {wanted}", article(value.type_name())));
        }
        found
    }
}

/// A complaint about each key that is none of these, with the key.
pub(crate) fn unknown_keys(map: &Map, known: &[&str]) -> Vec<(String, String)> {
    let unknown = map.iter().map(|(key, _)| key).filter(|key| !known.contains(key));
    unknown
        .map(|key| (key.to_owned(), format!("key `{key}` is unknown; use one of {}", quoted(known))))
        .collect()
}

/// Names in backticks, separated by commas.
pub(crate) fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// That something is of a type of JSON Schema.
pub(crate) fn article(type_name: &str) -> &'static str {
    match type_name {
        "null" => "is null",
        "boolean" => "is a boolean",
        "integer" | "number" => "is a number",
        "string" => "is a text",
        "array" => "is a list",
        _ => "is an object",
    }
}
