//! Changes that are made together or not at all.

use imori_automation::value::{Map, Value};

use super::collection::{Collection, KEYS, TOKENS};

/// Changes of documents, applied in order.
#[derive(Debug, Default)]
pub struct Transaction(Vec<Change>);

/// A change of a document.
#[derive(Debug)]
pub(crate) enum Change {
    /// Stores a document, also in the place of an older one.
    Put(&'static Collection, Map),
    /// Stores a document unless one of this id exists.
    Keep(&'static Collection, Map),
    /// Stores a document; one of this id voids the transaction.
    Insert(&'static Collection, Map),
    /// Voids the transaction unless the column of this document has one of these values.
    Require(&'static Collection, String, &'static str, Vec<Value>),
    /// Deletes a document.
    Delete(&'static Collection, String),
}

/// The outcome of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    /// Its changes are on disk.
    Done,
    /// A condition did not hold or a document existed already: nothing was changed.
    Void,
}

impl Transaction {
    /// A transaction without changes.
    pub fn new() -> Transaction {
        Transaction::default()
    }

    /// Whether there is nothing to change.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Stores a document, also in the place of an older one.
    pub fn put(&mut self, collection: &'static Collection, document: Map) {
        self.0.push(Change::Put(collection, document));
    }

    /// Stores a document unless one of this id exists.
    pub fn keep(&mut self, collection: &'static Collection, document: Map) {
        self.0.push(Change::Keep(collection, document));
    }

    /// Stores a document; if one of this id exists, nothing of the transaction happens.
    pub fn insert(&mut self, collection: &'static Collection, document: Map) {
        self.0.push(Change::Insert(collection, document));
    }

    /// Lets nothing of the transaction happen unless the column of this document has one of these values.
    pub fn require(
        &mut self,
        collection: &'static Collection,
        id: &str,
        column: &'static str,
        values: Vec<Value>,
    ) {
        self.0.push(Change::Require(collection, id.to_owned(), column, values));
    }

    /// Deletes a document, if it exists.
    pub fn delete(&mut self, collection: &'static Collection, id: &str) {
        self.0.push(Change::Delete(collection, id.to_owned()));
    }

    /// Whether a document of it may expire at a time of its own.
    pub(crate) fn expires(&self) -> bool {
        let expires = |collection: &Collection| [KEYS.name, TOKENS.name].contains(&collection.name);
        self.0.iter().any(|change| match change {
            Change::Put(collection, _) | Change::Keep(collection, _) | Change::Insert(collection, _) => {
                expires(collection)
            }
            Change::Require(..) | Change::Delete(..) => false,
        })
    }

    /// The changes, in their order.
    pub(crate) fn changes(&self) -> &[Change] {
        &self.0
    }
}
