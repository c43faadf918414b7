//! The error for a text that is not a valid selector.

use std::fmt;

use crate::name::Printable;

/// The maximum number of bytes of a selector that an error quotes.
const QUOTED_BYTES_MAX: usize = 40;

/// The fault of an invalid selector: its position, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectorError {
    /// The number of characters before the fault, if it has a position.
    at: Option<usize>,
    problem: String,
}

impl SelectorError {
    /// An error at this byte of the text.
    pub(super) fn at(text: &str, offset: usize, problem: impl Into<String>) -> SelectorError {
        let before = text.get(..offset).unwrap_or(text);
        SelectorError { at: Some(before.chars().count()), problem: problem.into() }
    }

    /// An error without a position.
    pub(super) fn whole(problem: impl Into<String>) -> SelectorError {
        SelectorError { at: None, problem: problem.into() }
    }

    /// The number of characters before the fault; `None` if the whole text is at fault.
    pub fn position(&self) -> Option<usize> {
        self.at
    }
}

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("selector")?;
        if let Some(at) = self.at {
            write!(f, ", character {}", at + 1)?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl std::error::Error for SelectorError {}

/// A part of a selector, quoted and shortened for an error message.
pub(super) fn quoted(part: &str) -> String {
    let end = part.floor_char_boundary(QUOTED_BYTES_MAX);
    let shown = part.get(..end).unwrap_or_default();
    let more = if shown.len() < part.len() { "…" } else { "" };
    format!("`{}{more}`", Printable(shown.as_bytes()))
}
