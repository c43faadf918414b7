//! The database: opened when it is first used, written by one thread and read by another.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Builder;

use imori_automation::value::Map;
use tokio::sync::{oneshot, watch};

use super::location::Location;
use super::outage::{Outage, Reasons};
use super::query::{Query, Rows};
use super::reader::{Question, run_reader};
use super::retention::{Retention, Sweeper};
use super::writer::{Commit, run_writer};
use crate::limits::STORE_READ_TIME_MAX;
use crate::postgres::{Postgres, Role};
use crate::sql::{Collection, Committed, StoreConnection, StoreError, Transaction};
use crate::sqlite::Sqlite;
use crate::times::now;

/// The engine's database.
pub struct Database {
    location: Location,
    retention: Retention,
    is_final: fn(&str) -> bool,
    threads: OnceLock<Threads>,
    opening: Mutex<()>,
    outage: Arc<Outage>,
    is_open: watch::Sender<bool>,
    /// Whether the definitions know the store, as far as its user cares.
    is_known: watch::Sender<bool>,
}

/// Changes that are on their way to disk.
#[derive(Debug)]
pub struct Pending {
    answered: oneshot::Receiver<Result<Committed, StoreError>>,
    /// `None` if it does not matter whether the store is known.
    is_known: Option<watch::Receiver<bool>>,
}

impl Pending {
    /// What became of them, once it is known. A new store answers once the definitions know it, so that nothing is told to
    /// be stored whose loss would not be noticed.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn committed(self) -> Result<Committed, StoreError> {
        let committed = self.answered.await.map_err(|_| StoreError::Closed)?;
        if let Some(mut is_known) = self.is_known {
            is_known.wait_for(|is_known| *is_known).await.map_err(|_| StoreError::Closed)?;
        }
        committed
    }
}

struct Threads {
    commits: Sender<Commit>,
    questions: Sender<Question>,
}

impl Database {
    /// The database at this location. It is opened, and made if it is missing, when it is first used.
    /// It deletes history as `retention` says, of executions those in a status that `is_final`.
    pub fn at(location: Location, retention: Retention, is_final: fn(&str) -> bool) -> Database {
        let outage = match location {
            Location::File(_) => Outage::none(),
            Location::Server(_) => Outage::until_connected(),
        };
        let (threads, opening) = (OnceLock::new(), Mutex::new(()));
        let (is_open, is_known) = (watch::Sender::new(false), watch::Sender::new(true));
        let outage = Arc::new(outage);
        Database { location, retention, is_final, threads, opening, outage, is_open, is_known }
    }

    /// Whether there may be documents.
    pub(crate) fn exists(&self) -> bool {
        match &self.location {
            Location::File(path) => self.threads.get().is_some() || path.exists(),
            Location::Server(_) => true,
        }
    }

    /// Returns once the database has been opened, and with that made if it was missing.
    pub(crate) async fn opened(&self) {
        // The sender lives as long as this.
        let _ = self.is_open.subscribe().wait_for(|is_open| *is_open).await;
    }

    /// Why the database cannot be reached now; `None` if it can.
    pub fn outage(&self) -> Option<String> {
        self.outage.reason()
    }

    /// Follows whether the database can be reached, as [`Database::outage`] tells.
    pub(crate) fn follow_outage(&self) -> watch::Receiver<Reasons> {
        self.outage.follow()
    }

    /// Returns once the database can be reached, at once if it is a file.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub async fn reachable(&self) -> Result<(), StoreError> {
        if let Location::Server(_) = self.location {
            self.threads()?;
            if self.outage.reason().is_some() {
                self.outage.end().await;
            }
        }
        Ok(())
    }

    /// Makes the changes; returns once they are on disk.
    ///
    /// # Errors
    /// The store cannot be opened or written.
    pub async fn commit(&self, transaction: Transaction) -> Result<Committed, StoreError> {
        if transaction.is_empty() {
            return Ok(Committed::Done);
        }
        self.submit(transaction)?.committed().await
    }

    /// Hands changes over; transactions are applied in the order of these calls.
    ///
    /// # Errors
    /// The store cannot be opened.
    pub fn submit(&self, transaction: Transaction) -> Result<Pending, StoreError> {
        let (answer, answered) = oneshot::channel();
        let commit = Commit { transaction, answer };
        self.threads()?.commits.send(commit).map_err(|_| StoreError::Closed)?;
        Ok(Pending { answered, is_known: Some(self.is_known.subscribe()) })
    }

    /// Lets commits be answered once the definitions know the store, or at once.
    pub(crate) fn set_known(&self, is_known: bool) {
        self.is_known.send_replace(is_known);
    }

    /// Makes the changes by which the definitions know the store; returns once they are on disk.
    ///
    /// # Errors
    /// The store cannot be opened or written.
    pub(crate) async fn commit_mark(&self, transaction: Transaction) -> Result<Committed, StoreError> {
        let pending = self.submit(transaction)?;
        Pending { is_known: None, ..pending }.committed().await
    }

    /// The document of this id.
    ///
    /// # Errors
    /// The store cannot be opened or read.
    pub async fn get(&self, collection: &'static Collection, id: &str) -> Result<Option<Map>, StoreError> {
        if !self.exists() {
            return Ok(None);
        }
        let (sender, answered) = oneshot::channel();
        // The caller may be gone.
        let answer = Box::new(|found| drop(sender.send(found)));
        let question = Question::One(collection, id.to_owned(), answer);
        self.threads()?.questions.send(question).map_err(|_| StoreError::Closed)?;
        answered.await.map_err(|_| StoreError::Closed)?
    }

    /// The document of this id, without a task: the thread waits for it, but no longer than [`STORE_READ_TIME_MAX`] for
    /// a server.
    ///
    /// # Errors
    /// The store cannot be opened or read.
    pub(crate) fn get_now(
        &self,
        collection: &'static Collection,
        id: &str,
    ) -> Result<Option<Map>, StoreError> {
        if !self.exists() {
            return Ok(None);
        }
        let (sender, answered) = channel();
        let answer = Box::new(move |found| drop(sender.send(found)));
        let question = Question::One(collection, id.to_owned(), answer);
        self.threads()?.questions.send(question).map_err(|_| StoreError::Closed)?;
        let found = match self.location {
            Location::File(_) => answered.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Location::Server(_) => answered.recv_timeout(STORE_READ_TIME_MAX),
        };
        found.map_err(|error| match error {
            RecvTimeoutError::Disconnected => StoreError::Closed,
            RecvTimeoutError::Timeout => {
                let reason = self.outage().unwrap_or_else(|| String::from("it has not answered in time"));
                StoreError::Unreachable(reason)
            }
        })?
    }

    /// The documents that a query finds.
    ///
    /// # Errors
    /// The store cannot be opened or read.
    pub async fn find(&self, query: Query) -> Result<Rows, StoreError> {
        if !self.exists() {
            return Ok(Rows::default());
        }
        let (sender, answered) = oneshot::channel();
        let answer = Box::new(|found| drop(sender.send(found)));
        self.threads()?.questions.send(Question::Many(query, answer)).map_err(|_| StoreError::Closed)?;
        answered.await.map_err(|_| StoreError::Closed)?
    }

    fn threads(&self) -> Result<&Threads, StoreError> {
        if let Some(threads) = self.threads.get() {
            return Ok(threads);
        }
        let _opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if self.threads.get().is_none() {
            let threads = self.open()?;
            // Only the holder of the lock sets it.
            let _ = self.threads.set(threads);
            self.is_open.send_replace(true);
        }
        self.threads.get().ok_or(StoreError::Closed)
    }

    fn open(&self) -> Result<Threads, StoreError> {
        let (writing, reading): (Box<dyn StoreConnection>, Box<dyn StoreConnection>) = match &self.location {
            Location::File(path) => {
                if let Some(folder) = path.parent() {
                    std::fs::create_dir_all(folder)?;
                }
                (Box::new(Sqlite::writing(path)?), Box::new(Sqlite::reading(path)?))
            }
            // Their threads connect.
            Location::Server(address) => (
                Box::new(Postgres::new(address, Role::Writer)?),
                Box::new(Postgres::new(address, Role::Reader)?),
            ),
        };
        let ((commits, committed), (questions, asked)) = (channel(), channel());
        let writer = Builder::new().name(String::from("automation-write"));
        let sweeper = Sweeper::new(self.retention, self.is_final);
        let outage = Arc::clone(&self.outage);
        writer.spawn(move || run_writer(&*writing, &committed, sweeper, now, &outage))?;
        let reader = Builder::new().name(String::from("automation-read"));
        let outage = Arc::clone(&self.outage);
        reader.spawn(move || run_reader(&*reading, &asked, &outage))?;
        Ok(Threads { commits, questions })
    }
}
