//! The parts of documents that a query asks for.

/// Which parts of documents a query reads, where they are large; small ones come always.
#[derive(Debug, Clone, Default)]
pub enum Parts {
    /// All of them.
    #[default]
    All,
    /// These.
    Only(Vec<String>),
    /// All but these.
    Without(Vec<String>),
}

impl Parts {
    /// Whether the part of this name is asked for.
    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Parts::All => true,
            Parts::Only(names) => names.iter().any(|only| only == name),
            Parts::Without(names) => names.iter().all(|without| without != name),
        }
    }
}
