//! Where the values of a document stand.

use foldhash::fast::FixedState;
use indexmap::IndexMap;

/// A position in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

/// The positions of the values of a document: of an entry of an object the position of its key.
#[derive(Debug, Clone, PartialEq)]
pub struct Lines {
    pub(super) position: Position,
    pub(super) below: Below,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Below {
    Nothing,
    List(Vec<Lines>),
    Map(IndexMap<String, Lines, FixedState>),
}

impl Lines {
    pub(super) fn at(position: Position) -> Lines {
        Lines { position, below: Below::Nothing }
    }

    /// The position of the value at a path; a step into a list is a number from 0, in decimal. `None` if there is no such
    /// value.
    pub fn find(&self, path: &[&str]) -> Option<Position> {
        let mut lines = self;
        for step in path {
            lines = lines.step(step)?;
        }
        Some(lines.position)
    }

    /// The position of the value at a path, or of the nearest value above it that the document has.
    pub fn nearest(&self, path: &[&str]) -> Position {
        let mut lines = self;
        for step in path {
            let Some(below) = lines.step(step) else { break };
            lines = below;
        }
        lines.position
    }

    fn step(&self, step: &str) -> Option<&Lines> {
        match &self.below {
            Below::Nothing => None,
            Below::List(items) => items.get(step.parse::<usize>().ok()?),
            Below::Map(entries) => entries.get(step),
        }
    }
}
