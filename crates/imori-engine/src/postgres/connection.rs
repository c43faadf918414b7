//! A connection to the server, used by one thread, which drives it while it waits.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use super::address::ServerAddress;
use super::changes::{apply, delete};
use super::pipeline::{Step, run};
use super::schema::{prepare, stored};
use super::session::Session;
use crate::sql::{Collection, Committed, Each, Field, LastCommit, StoreConnection, StoreError, Transaction};

/// The first half of the advisory lock's key; the second is the hash of the schema's name.
const LOCK: i32 = 0x696d_6f72;

/// What every connection needs: commits that are on disk before they are answered, no end by a timeout, and a lock that is
/// free soon after a broker is gone.
const SESSION: &str = "\
    SELECT set_config('synchronous_commit', 'on', false) \
    WHERE current_setting('synchronous_commit') IN ('off', 'local'); \
    SET client_min_messages = warning; SET statement_timeout = 0; SET lock_timeout = 0; \
    SET idle_in_transaction_session_timeout = 0; SET default_transaction_isolation = 'read committed'; \
    SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3";

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The one connection that writes; it holds the lock and makes the tables.
    Writer,
    /// A connection that reads.
    Reader,
}

/// A connection to a store on a server. It is made by [`StoreConnection::reconnect`].
#[derive(Debug)]
pub struct Postgres {
    address: ServerAddress,
    role: Role,
    runtime: Runtime,
    session: Session,
    /// Bytes that the documents take at the begin of the transaction.
    used_before: Cell<i64>,
    /// What begins the marks of this broker's commits, and the number of the last one.
    broker: String,
    number: Cell<u64>,
    /// The mark that the store has as far as this connection knows.
    known: RefCell<Option<String>>,
    /// The mark of a commit without an answer.
    unanswered: RefCell<Option<String>>,
}

impl Postgres {
    /// A connection that has to be made yet.
    ///
    /// # Errors
    /// The system gives no timer or poller.
    pub fn new(address: &ServerAddress, role: Role) -> Result<Postgres, StoreError> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| StoreError::Io(error.to_string()))?;
        Ok(Postgres {
            address: address.clone(),
            role,
            runtime: Builder::new_current_thread().enable_all().build()?,
            session: Session::default(),
            used_before: Cell::default(),
            broker: format!("{:016x}", u64::from_be_bytes(random)),
            number: Cell::default(),
            known: RefCell::default(),
            unanswered: RefCell::default(),
        })
    }

    /// Connects, and tells whether the database has a store.
    ///
    /// # Errors
    /// The server cannot be reached, or the store is of another format.
    pub fn has_store(&self) -> Result<bool, StoreError> {
        self.runtime.block_on(async {
            let client = self.address.connect().await?;
            client.batch_execute(SESSION).await.map_err(|error| self.session.fault(&error))?;
            let has_store = stored(&client).await?.is_some();
            self.session.take(client);
            Ok(has_store)
        })
    }

    /// Whether the store has a table of this name.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn has_table(&self, name: &str) -> Result<bool, StoreError> {
        let mut is_there = false;
        let sql = "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = $1";
        self.query(sql, &[Field::Text(name)], &mut |_| {
            is_there = true;
            Ok(ControlFlow::Break(()))
        })?;
        Ok(is_there)
    }

    async fn connect(&self) -> Result<LastCommit, StoreError> {
        let client = self.address.connect().await?;
        client.batch_execute(SESSION).await.map_err(|error| self.session.fault(&error))?;
        let found = match self.role {
            Role::Writer => {
                self.lock(&client).await?;
                prepare(&client).await?
            }
            Role::Reader => stored(&client).await?.ok_or_else(|| {
                StoreError::Unreachable(String::from("the database has no tables of the automation yet"))
            })?,
        };
        self.session.take(client);
        self.session.set_used(found.used_bytes);
        let unanswered = self.unanswered.take();
        let last = match self.known.borrow().as_deref() {
            _ if self.role == Role::Reader => LastCommit::Gone,
            None => LastCommit::Gone,
            Some(known) if known == found.last_commit => LastCommit::Gone,
            Some(_) if unanswered.as_deref() == Some(&found.last_commit) => LastCommit::Kept,
            Some(_) => {
                // The lock goes back with the connection.
                self.session.close();
                return Err(StoreError::TakenOver);
            }
        };
        *self.known.borrow_mut() = Some(found.last_commit);
        Ok(last)
    }

    /// Takes the lock that one connection holds at a time, for as long as it lasts.
    async fn lock(&self, client: &Client) -> Result<(), StoreError> {
        let sql = "SELECT pg_try_advisory_lock($1, hashtext(current_schema()::text))";
        let row = client.query_one(sql, &[&LOCK]).await.map_err(|error| self.session.fault(&error))?;
        match row.try_get(0).map_err(|error| self.session.fault(&error))? {
            true => Ok(()),
            false => Err(StoreError::Unreachable(String::from(
                "another broker uses this store, which one broker may use at a time; stop it, or give each a database \
                 of its own",
            ))),
        }
    }

    fn execute_now(&self, sql: &str) -> Result<(), StoreError> {
        let client = self.session.client()?;
        self.runtime.block_on(client.batch_execute(sql)).map_err(|error| self.session.fault(&error))
    }

    async fn commit_with_mark(&self, client: &Client, mark: &str) -> Result<(), StoreError> {
        let sql = "UPDATE store SET used_bytes = $1, last_commit = $2";
        let fields = vec![Field::Int(self.session.used()), Field::Text(mark)];
        let steps = [
            Step { statement: self.session.statement(client, sql).await?, fields },
            Step { statement: self.session.statement(client, "COMMIT").await?, fields: Vec::new() },
        ];
        *self.unanswered.borrow_mut() = Some(mark.to_owned());
        for result in run(client, &steps).await {
            // A transaction in which a statement failed is rolled back by its end.
            result.map_err(|error| self.session.fault(&error))?;
        }
        Ok(())
    }
}

impl StoreConnection for Postgres {
    fn query(&self, sql: &str, fields: &[Field<'_>], each: &mut Each<'_>) -> Result<(), StoreError> {
        let client = self.session.client()?;
        let parameters: Vec<&(dyn ToSql + Sync)> =
            fields.iter().map(|field| field as &(dyn ToSql + Sync)).collect();
        let rows = self.runtime.block_on(async {
            let statement = self.session.statement(&client, sql).await?;
            client.query(&statement, &parameters).await.map_err(|error| self.session.fault(&error))
        })?;
        for row in &rows {
            if each(row)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn begin(&self) -> Result<(), StoreError> {
        self.used_before.set(self.session.used());
        self.session.forget_savepoint();
        self.execute_now("BEGIN")
    }

    fn begin_reading(&self) -> Result<(), StoreError> {
        self.execute_now("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    }

    fn commit(&self) -> Result<(), StoreError> {
        let client = self.session.client()?;
        let number = self.number.get() + 1;
        self.number.set(number);
        let mark = format!("{}-{number}", self.broker);
        let committed = self.runtime.block_on(self.commit_with_mark(&client, &mark));
        match &committed {
            Ok(()) => {
                *self.unanswered.borrow_mut() = None;
                *self.known.borrow_mut() = Some(mark);
            }
            Err(StoreError::Unreachable(_)) => {}
            Err(_) => {
                *self.unanswered.borrow_mut() = None;
                self.roll_back();
            }
        }
        committed
    }

    fn roll_back(&self) {
        self.session.set_used(self.used_before.get());
        // A connection that is lost has rolled back.
        let _ = self.execute_now("ROLLBACK");
    }

    fn apply(&self, transaction: &Transaction) -> Result<Committed, StoreError> {
        let client = self.session.client()?;
        self.runtime.block_on(apply(&self.session, &client, transaction))
    }

    fn delete(&self, collection: &Collection, id: &str) -> Result<(), StoreError> {
        let client = self.session.client()?;
        self.runtime.block_on(delete(&self.session, &client, collection, id))
    }

    /// Bytes of documents and large values, with an estimate for columns and indexes. The server's files have more,
    /// because it frees rows later.
    fn used_bytes(&self) -> Result<u64, StoreError> {
        Ok(u64::try_from(self.session.used()).unwrap_or_default())
    }

    /// The server gives back what it can by itself.
    fn give_back(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// The server's checksums and its `amcheck` look for damage.
    fn damage(&self) -> Result<Option<String>, StoreError> {
        Ok(None)
    }

    fn reconnect(&self) -> Result<LastCommit, StoreError> {
        self.session.close();
        self.runtime.block_on(self.connect())
    }
}
