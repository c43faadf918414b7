//! Patterns of criteria: values, and templates that are rendered on the payload.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::instance::TriggerInstance;
use super::outcome::cut;
use crate::templates::Template;
use crate::value::Value;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub(super) enum Pattern {
    Literal(Value),
    Template(Box<Rendered>),
}

#[derive(Debug, Clone)]
pub(super) struct Rendered {
    source: String,
    text: Template,
    /// The same with its last expression as JSON, which keeps the type of a value that stands alone.
    json: Option<Template>,
}

/// An expression of a template, up to the last end of one on its line: where StackStorm puts its filter.
static EXPRESSION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(\{\{)\s*(.*)\s*(\}\})").expect("the syntax is right"));

impl Pattern {
    /// Compiles a pattern; null compiles to `Null`.
    ///
    /// # Errors
    /// The syntax of a template is wrong.
    pub(super) fn compile(pattern: Option<&Value>) -> Result<Pattern, String> {
        let text = match pattern {
            Some(Value::String(text)) => text,
            Some(other) => return Ok(Pattern::Literal(other.clone())),
            None => return Ok(Pattern::Literal(Value::Null)),
        };
        if !Template::is_template(text) && !text.contains("{#") {
            return Ok(Pattern::Literal(Value::String(unified(text))));
        }
        let compile = |source: &str| {
            Template::compile(source).map_err(|error| format!("template `{}`: {error}", cut(source)))
        };
        let json = EXPRESSION.replace_all(text, "$1$2 | to_complex$3");
        let json = match json {
            Cow::Borrowed(_) => None,
            Cow::Owned(json) => Some(compile(&json)?),
        };
        Ok(Pattern::Template(Box::new(Rendered { source: text.clone(), text: compile(text)?, json })))
    }

    /// The value, if it is the same for every payload.
    pub(super) fn literal(&self) -> Option<&Value> {
        match self {
            Pattern::Literal(value) => Some(value),
            Pattern::Template(_) => None,
        }
    }

    /// The pattern as it is written.
    pub(super) fn source(&self) -> Value {
        match self {
            Pattern::Literal(value) => value.clone(),
            Pattern::Template(rendered) => Value::from(rendered.source.as_str()),
        }
    }

    /// The value for this payload.
    ///
    /// # Errors
    /// A template cannot be rendered.
    pub(super) fn render(&self, instance: &TriggerInstance<'_>) -> Result<Cow<'_, Value>, String> {
        let rendered = match self {
            Pattern::Literal(value) => return Ok(Cow::Borrowed(value)),
            Pattern::Template(rendered) => rendered,
        };
        let render = |template: &Template| {
            template
                .render(instance.context())
                .map_err(|error| format!("template `{}`: {error}", cut(&rendered.source)))
        };
        if let Some(json) = &rendered.json
            && let Ok(value) = Value::from_json(render(json)?.as_bytes())
        {
            return Ok(Cow::Owned(value));
        }
        render(&rendered.text).map(|text| Cow::Owned(Value::String(text)))
    }
}

/// The text as a template without expressions renders it: newlines of one kind, and none at the end.
fn unified(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.strip_suffix('\n').map(ToOwned::to_owned).unwrap_or(text)
}
