//! Why a text is no YAML document.

use std::fmt;

/// An error of a YAML document and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlError {
    /// The line, from 1; 0 if the error concerns the whole document.
    pub line: usize,
    /// The column in characters, from 1; 0 if the error concerns the whole document.
    pub column: usize,
    /// What is wrong and what to do.
    pub message: String,
}

impl YamlError {
    pub(super) fn new(line: usize, column: usize, message: impl Into<String>) -> YamlError {
        YamlError { line, column, message: message.into() }
    }

    pub(super) fn of_document(message: impl Into<String>) -> YamlError {
        YamlError::new(0, 0, message)
    }
}

/// `line 3, column 7: MESSAGE`, or the message alone.
impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}, column {}: ", self.line, self.column)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for YamlError {}
