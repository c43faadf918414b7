//! A connection to a store.
//!
//! Both stores run the same statements: a place of a value is `$1`, `$2` and so on, in the order in which the places
//! first stand in the statement, and an order says where rows without a value stand.

use std::borrow::Cow;
use std::ops::ControlFlow;

use super::collection::Collection;
use super::error::StoreError;
use super::field::Field;
use super::transaction::{Committed, Transaction};

/// A connection to a store, used by one thread.
pub trait StoreConnection: Send {
    /// Runs a statement that reads, and passes each row on until `each` breaks. `each` may run further statements.
    ///
    /// # Errors
    /// The store refuses, or `each` fails.
    fn query(&self, sql: &str, fields: &[Field<'_>], each: &mut Each<'_>) -> Result<(), StoreError>;

    /// Begins a transaction that writes.
    ///
    /// # Errors
    /// The store refuses.
    fn begin(&self) -> Result<(), StoreError>;

    /// Begins a transaction that reads: all its statements see the same state.
    ///
    /// # Errors
    /// The store refuses.
    fn begin_reading(&self) -> Result<(), StoreError>;

    /// Ends the transaction; what it changed is on disk.
    ///
    /// # Errors
    /// The store refuses, and nothing has changed; or [`StoreError::Unreachable`], and [`StoreConnection::reconnect`]
    /// tells what has become of it.
    fn commit(&self) -> Result<(), StoreError>;

    /// Ends the transaction, if there is one; nothing of it has changed.
    fn roll_back(&self);

    /// Makes changes within the current transaction, all of them or none.
    ///
    /// # Errors
    /// The store refuses; the transaction goes on without these changes.
    fn apply(&self, transaction: &Transaction) -> Result<Committed, StoreError>;

    /// Deletes a document within the current transaction, if it exists.
    ///
    /// # Errors
    /// The store refuses.
    fn delete(&self, collection: &Collection, id: &str) -> Result<(), StoreError>;

    /// Bytes that the documents take.
    ///
    /// # Errors
    /// The store refuses.
    fn used_bytes(&self) -> Result<u64, StoreError>;

    /// Gives some of what deletions have freed back to the file system; returns whether there is more.
    ///
    /// # Errors
    /// The store refuses.
    fn give_back(&self) -> Result<bool, StoreError>;

    /// Looks for damage below the documents; returns the first, as the store words it.
    ///
    /// # Errors
    /// The store refuses.
    fn damage(&self) -> Result<Option<String>, StoreError>;

    /// Connects again after [`StoreError::Unreachable`], in one attempt.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`] if another attempt may succeed, else the reason why none will.
    fn reconnect(&self) -> Result<LastCommit, StoreError>;
}

/// What takes the rows of a result, one after the other, until it breaks.
pub type Each<'a> = dyn FnMut(&dyn Row) -> Result<ControlFlow<()>, StoreError> + 'a;

/// What has become of the last commit before a connection was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastCommit {
    /// It is on disk.
    Kept,
    /// Nothing of it is.
    Gone,
}

/// A row of a result; columns count from 0.
pub trait Row {
    /// The text of a column, if it has a value.
    ///
    /// # Errors
    /// It is no text.
    fn text(&self, column: usize) -> Result<Option<Cow<'_, str>>, StoreError>;

    /// The number in a column; 0 if it has no value.
    ///
    /// # Errors
    /// It is no whole number.
    fn number(&self, column: usize) -> Result<i64, StoreError>;

    /// The bytes of a column that has a text or bytes.
    ///
    /// # Errors
    /// It is neither.
    fn bytes(&self, column: usize) -> Result<&[u8], StoreError>;
}
