//! A compiled selector.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str;
use std::sync::Arc;

use super::error::SelectorError;
use super::evaluate::evaluate;
use super::operand::Fields;
use super::parser::parse;
use super::program::Program;
use crate::limits::SELECTOR_BYTES_MAX;

/// A condition on the headers of a message, compiled once and cheap to clone.
#[derive(Clone)]
pub struct Selector(Arc<Compiled>);

struct Compiled {
    text: Box<str>,
    program: Program,
}

impl Selector {
    /// Compiles a text in the grammar of JMS.
    ///
    /// # Errors
    /// The first fault and its position, or the limit that the text exceeds.
    pub fn parse(text: &str) -> Result<Selector, SelectorError> {
        // SECURITY LIM-10: length, words and depth are bounded, and so is the size of a program.
        if text.len() > SELECTOR_BYTES_MAX {
            let problem = format!("has {} bytes; use at most {SELECTOR_BYTES_MAX}", text.len());
            return Err(SelectorError::whole(problem));
        }
        let program = parse(text)?;
        Ok(Selector(Arc::new(Compiled { text: Box::from(text), program })))
    }

    /// Compiles a client's selector. As in JMS, a blank text is no condition and gives `None`.
    ///
    /// # Errors
    /// As [`Selector::parse`], and for bytes that are not UTF-8.
    pub fn read(text: &[u8]) -> Result<Option<Selector>, SelectorError> {
        if text.trim_ascii().is_empty() {
            return Ok(None);
        }
        match str::from_utf8(text) {
            Ok(text) => Selector::parse(text).map(Some),
            Err(error) => {
                let before = text.get(..error.valid_up_to()).and_then(|text| str::from_utf8(text).ok());
                let before = before.unwrap_or_default();
                Err(SelectorError::at(before, before.len(), "is not UTF-8"))
            }
        }
    }

    /// Whether a message is selected; an unknown result counts as false.
    #[inline]
    pub fn matches(&self, fields: &dyn Fields) -> bool {
        evaluate(&self.0.program, fields) == Some(true)
    }

    /// The text it was compiled from.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }
}

impl PartialEq for Selector {
    fn eq(&self, other: &Selector) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Selector {}

// Hashes the text, because `Eq` compares it.
impl Hash for Selector {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Selector({:?})", self.as_str())
    }
}

#[cfg(test)]
mod naive;
#[cfg(test)]
mod tests;
