//! Directives that have no translation.

use super::syntax::{Directive, one_line, sentence};

/// A directive that was left out or changed, where it stands, and how to replace it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line of the directive, counted from 1.
    pub line: usize,
    /// Its name; empty for an error of syntax.
    pub directive: String,
    /// What is lost, and how to get it back.
    pub message: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.directive.as_str() {
            "" => f.write_str(&self.message),
            directive => write!(f, "`{directive}`: {}", self.message),
        }
    }
}

/// A directive that needs no translation, and why; it becomes a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) line: usize,
    pub(super) text: String,
}

impl Note {
    pub(super) fn new(directive: &Directive, reason: &str) -> Note {
        Note { line: directive.line, text: sentence(&format!("`{}`: {reason}", directive.summary())) }
    }
}

/// The problems of a file so far.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    pub(super) fn add(&mut self, directive: &Directive, message: impl Into<String>) {
        let directive_name = one_line(&directive.name);
        self.0.push(Problem {
            line: directive.line,
            directive: directive_name,
            message: sentence(&message.into()),
        });
    }

    /// All of them, in the order of their lines.
    pub(super) fn sorted(mut self) -> Vec<Problem> {
        self.0.sort_by(|a, b| (a.line, &a.directive, &a.message).cmp(&(b.line, &b.directive, &b.message)));
        self.0.dedup();
        self.0
    }
}
