//! Why a template is refused or fails.

use std::fmt;

use minijinja::{Error, ErrorKind};

/// Why a template cannot be compiled or rendered, in Jinja's words where it has some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    text: String,
    line: Option<usize>,
    is_syntax: bool,
    kind: Option<ErrorKind>,
}

impl TemplateError {
    /// An error with a text of its own.
    pub(super) fn new(text: impl Into<String>) -> TemplateError {
        TemplateError { text: text.into(), line: None, is_syntax: false, kind: None }
    }

    /// The line of the template, from 1 on, where it is known.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// Whether the template could not be read at all.
    pub fn is_syntax(&self) -> bool {
        self.is_syntax
    }

    /// Whether a value is undefined.
    pub(crate) fn is_undefined(&self) -> bool {
        self.kind == Some(ErrorKind::UndefinedError)
    }

    /// Whether the template uses a function, a filter, a test or a method that is unknown here.
    pub(crate) fn is_unknown(&self) -> bool {
        use ErrorKind::{UnknownFilter, UnknownFunction, UnknownMethod, UnknownTest};
        matches!(self.kind, Some(UnknownFunction | UnknownFilter | UnknownTest | UnknownMethod))
    }

    /// The error of the engine; `undefined` is what is said of a value that is not there.
    pub(super) fn of(error: &Error, undefined: Option<String>) -> TemplateError {
        let detail = error.detail().map(str::to_owned);
        let text = match error.kind() {
            ErrorKind::OutOfFuel => "the template takes too long or makes too much data".to_owned(),
            ErrorKind::UndefinedError => {
                undefined.or(detail).unwrap_or_else(|| "a value is undefined".to_owned())
            }
            kind => detail.unwrap_or_else(|| kind.to_string()),
        };
        TemplateError {
            text,
            line: error.line(),
            is_syntax: error.kind() == ErrorKind::SyntaxError,
            kind: Some(error.kind()),
        }
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for TemplateError {}
