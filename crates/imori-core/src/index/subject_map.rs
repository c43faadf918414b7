//! A change of subjects, in a protocol's language.

use std::fmt;
use std::sync::Arc;

/// Changes subjects, as a protocol describes it.
pub trait MapSubject: Send + Sync + fmt::Debug {
    /// The changed subject; `None` for a subject that stays. `random` is any number.
    fn map(&self, subject: &[u8], random: u32) -> Option<Vec<u8>>;

    /// The subject that all changed ones become; `None` if it depends on them.
    fn constant(&self) -> Option<Vec<u8>>;
}

/// A change of subjects that can be compared with another.
#[derive(Debug, Clone)]
pub struct SubjectMap {
    /// The description, which decides whether two are equal.
    text: Box<str>,
    map: Arc<dyn MapSubject>,
}

impl SubjectMap {
    /// A change with this description.
    #[must_use]
    pub fn new(text: &str, map: Arc<dyn MapSubject>) -> SubjectMap {
        SubjectMap { text: Box::from(text), map }
    }

    /// The changed subject; `None` for a subject that stays. `random` is any number.
    pub(crate) fn map(&self, subject: &[u8], random: u32) -> Option<Vec<u8>> {
        self.map.map(subject, random)
    }

    /// The subject that all changed ones become; `None` if it depends on them.
    pub(crate) fn constant(&self) -> Option<Vec<u8>> {
        self.map.constant()
    }
}

impl PartialEq for SubjectMap {
    fn eq(&self, other: &SubjectMap) -> bool {
        self.text == other.text
    }
}

impl Eq for SubjectMap {}
