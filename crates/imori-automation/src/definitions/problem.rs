//! Why a workflow is refused.

use std::fmt;

use crate::value::{Map, Value};
use crate::yaml::{Lines, Position};

/// One error of a workflow's definition, as StackStorm reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// `content`, `context`, `expression`, `semantic` or `syntax`.
    pub kind: &'static str,
    /// What is wrong.
    pub message: String,
    /// The place in the document, such as `tasks.task1.next[0].do`.
    pub spec_path: Option<String>,
    /// The place in the schema of workflows.
    pub schema_path: Option<String>,
    /// `yaql` or `jinja`, where an expression is wrong.
    pub language: Option<&'static str>,
    /// The text with the expression.
    pub expression: Option<String>,
}

impl Problem {
    /// An error without an expression.
    pub(crate) fn new(kind: &'static str, message: impl Into<String>, spec: &str, schema: &str) -> Problem {
        let path = |path: &str| (!path.is_empty()).then(|| path.to_owned());
        Problem {
            kind,
            message: message.into(),
            spec_path: path(spec),
            schema_path: path(schema),
            language: None,
            expression: None,
        }
    }

    /// The position of the error in the document's text. If the document lacks the value, this is the position of the
    /// nearest value above it. `lines` has the positions of all values.
    pub fn position(&self, lines: &Lines) -> Position {
        let path = self.spec_path.as_deref().unwrap_or_default();
        let steps: Vec<&str> = path.split(['.', '[', ']']).filter(|step| !step.is_empty()).collect();
        // The parameters of an action may stand in the text of its name.
        let inline = steps.iter().position(|step| *step == "input").and_then(|at| steps.get(..at));
        let action = inline.map(|task| [task, &["action"][..]].concat());
        let found = lines.find(&steps).or_else(|| lines.find(&action?));
        found.unwrap_or_else(|| lines.nearest(&steps))
    }

    /// The error as StackStorm's API and the result of an execution show it.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("type", self.kind);
        map.insert("message", self.message.as_str());
        map.insert("spec_path", self.spec_path.as_deref());
        map.insert("schema_path", self.schema_path.as_deref());
        if let Some(language) = self.language {
            map.insert("language", language);
        }
        if let Some(expression) = &self.expression {
            map.insert("expression", expression.as_str());
        }
        Value::Map(map)
    }
}

/// `PATH: MESSAGE`, or the message alone.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.spec_path {
            Some(path) => write!(f, "{path}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Problem {}
