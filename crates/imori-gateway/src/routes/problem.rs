//! Faults of a routes file.

use std::fmt;

/// A fault, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The file.
    pub(crate) file: String,
    /// The line, from 1; 0 if the whole file is at fault.
    pub(crate) line: usize,
    /// What is wrong, and how to mend it.
    pub(crate) message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { file, line, message } = self;
        // It quotes what the file says, and stays on one line.
        let message = message.replace(char::is_control, " ");
        match line {
            0 => write!(f, "{file}: {message}"),
            line => write!(f, "{file}:{line}: {message}"),
        }
    }
}

/// All faults of a routes file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(pub(crate) Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// The line of a byte of a text, from 1.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count()
}
