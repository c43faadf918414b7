//! Why a text is no selector.

use std::fmt;

use crate::name::Printable;

/// Bytes of a selector that an error quotes.
const QUOTED_BYTES_MAX: usize = 40;

/// Why a text is no selector: where the fault is, and how to mend it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectorError {
    /// Characters before the fault, where it has a place.
    at: Option<usize>,
    problem: String,
}

impl SelectorError {
    /// A fault at a byte of the text.
    pub(super) fn at(text: &str, offset: usize, problem: impl Into<String>) -> SelectorError {
        let before = text.get(..offset).unwrap_or(text);
        SelectorError { at: Some(before.chars().count()), problem: problem.into() }
    }

    /// A fault of the whole text.
    pub(super) fn whole(problem: impl Into<String>) -> SelectorError {
        SelectorError { at: None, problem: problem.into() }
    }

    /// Where the fault is: the number of characters before it; `None` for a fault of the whole text.
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

/// A part of a selector as an error shows it.
pub(super) fn quoted(part: &str) -> String {
    let end = part.floor_char_boundary(QUOTED_BYTES_MAX);
    let shown = part.get(..end).unwrap_or_default();
    let more = if shown.len() < part.len() { "…" } else { "" };
    format!("`{}{more}`", Printable(shown.as_bytes()))
}
