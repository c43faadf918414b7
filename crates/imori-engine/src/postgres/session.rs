//! What a connection has for as long as it lasts: its client, prepared statements and an open savepoint.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use tokio_postgres::{Client, Error, Statement};

use super::fault::{is_lost, reason};
use crate::limits::SERVER_STATEMENTS_MAX;
use crate::sql::StoreError;

/// What a connection has for as long as it lasts.
#[derive(Debug, Default)]
pub(super) struct Session {
    client: RefCell<Option<Arc<Client>>>,
    statements: RefCell<HashMap<String, Statement>>,
    has_savepoint: Cell<bool>,
    /// Bytes that the documents take.
    used: Cell<i64>,
}

impl Session {
    /// Begins with a client that has connected.
    pub(super) fn take(&self, client: Client) {
        self.statements.borrow_mut().clear();
        self.has_savepoint.set(false);
        *self.client.borrow_mut() = Some(Arc::new(client));
    }

    /// Ends the connection, if there is one.
    pub(super) fn close(&self) {
        *self.client.borrow_mut() = None;
    }

    /// The client.
    pub(super) fn client(&self) -> Result<Arc<Client>, StoreError> {
        let client = self.client.borrow().clone();
        client.ok_or_else(|| StoreError::Unreachable(String::from("there is no connection to the server")))
    }

    /// Whether a statement needs no request to be prepared.
    pub(super) fn is_prepared(&self, sql: &str) -> bool {
        self.statements.borrow().contains_key(sql)
    }

    /// The prepared form of a statement.
    pub(super) async fn statement(&self, client: &Client, sql: &str) -> Result<Statement, StoreError> {
        if let Some(statement) = self.statements.borrow().get(sql) {
            return Ok(statement.clone());
        }
        let statement = client.prepare(sql).await.map_err(|error| self.fault(&error))?;
        let mut statements = self.statements.borrow_mut();
        if statements.len() >= SERVER_STATEMENTS_MAX {
            statements.clear();
        }
        statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// What an error means. The connection is given up where it is lost.
    pub(super) fn fault(&self, error: &Error) -> StoreError {
        let is_closed = self.client.borrow().as_ref().is_some_and(|client| client.is_closed());
        if is_closed || is_lost(error) {
            self.close();
            return StoreError::Unreachable(reason(error));
        }
        StoreError::Sql(reason(error))
    }

    /// Takes note that a savepoint is opened; returns whether one was open.
    pub(super) fn open_savepoint(&self) -> bool {
        self.has_savepoint.replace(true)
    }

    /// Undoes what was done since the savepoint was opened.
    pub(super) async fn undo_savepoint(&self, client: &Client) -> Result<(), StoreError> {
        let sql = "ROLLBACK TO SAVEPOINT part; RELEASE SAVEPOINT part";
        client.batch_execute(sql).await.map_err(|error| self.fault(&error))?;
        self.has_savepoint.set(false);
        Ok(())
    }

    /// Takes note that the documents take more bytes, or fewer.
    pub(super) fn grow(&self, bytes: i64) {
        self.used.set(self.used.get().saturating_add(bytes));
    }

    /// Takes note that no savepoint is open.
    pub(super) fn forget_savepoint(&self) {
        self.has_savepoint.set(false);
    }

    /// Bytes that the documents take.
    pub(super) fn used(&self) -> i64 {
        self.used.get()
    }

    /// Sets the bytes that the documents take.
    pub(super) fn set_used(&self, bytes: i64) {
        self.used.set(bytes);
    }
}
