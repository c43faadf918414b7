//! The subjects that a reader of a stream wants, or that an operator purges.

use crate::name::Name;
use crate::route::pattern::{Pattern, PatternError, is_match};

/// A set of patterns; without one it takes every subject.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Filter {
    /// The patterns as they were given.
    texts: Vec<Name>,
    /// None if one of them takes every subject.
    patterns: Vec<Pattern>,
}

impl Filter {
    /// The filter that takes every subject.
    #[must_use]
    pub fn all() -> Filter {
        Filter::default()
    }

    /// A filter of patterns in the syntax of NATS. `>` takes every subject, and so does a filter of no pattern.
    ///
    /// # Errors
    /// A text is no pattern.
    pub fn of(texts: &[&[u8]]) -> Result<Filter, PatternError> {
        let mut patterns = texts.iter().map(|text| Pattern::nats(text)).collect::<Result<Vec<_>, _>>()?;
        if texts.iter().any(|text| *text == b">") {
            patterns.clear();
        }
        Ok(Filter { texts: texts.iter().map(|text| Name::new(text)).collect(), patterns })
    }

    /// Whether it takes every subject.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether it takes a subject.
    #[must_use]
    pub fn takes(&self, subject: &[u8]) -> bool {
        self.patterns.is_empty() || self.patterns.iter().any(|pattern| is_match(pattern, subject))
    }

    /// The only subject that it takes, if it is a single one without wildcards.
    pub(crate) fn subject(&self) -> Option<&[u8]> {
        match self.patterns.as_slice() {
            [pattern] => pattern.subject().map(Name::as_bytes),
            _ => None,
        }
    }

    /// The patterns as they were given.
    pub fn texts(&self) -> impl Iterator<Item = &Name> + Clone {
        self.texts.iter()
    }
}

/// What an operator wants to be gone from a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamPurge {
    /// The subjects.
    pub filter: Filter,
    /// Messages from this number on stay.
    pub up_to: Option<u64>,
    /// Number of messages that stay, of those that the filter takes.
    pub keep: u64,
}
