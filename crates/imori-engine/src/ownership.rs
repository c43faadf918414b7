//! Whether the store is the one that the definitions know. Both have a mark that changes at each start, so that a store
//! that is lost, empty, older or another broker's is an error and never used as if it were right.

use std::fmt;
use std::sync::Arc;

use imori_automation::value::{Map, Value};
use imori_server::access::AccessError;
pub use imori_server::access::StoreMarks;
use imori_server::credentials::random_id;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tracing::warn;

use crate::engine::{Engine, location};
use crate::limits::STORE_RECONNECT_PAUSE_MAX;
use crate::store::{MARK_ID, MARKS, StoreError, StoreState, Transaction, found};

/// Why the automation does not use its store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreFault {
    /// There is none where the definitions know one.
    Missing,
    /// It has no mark: it is empty, or a copy from before stores had marks.
    Unmarked,
    /// It has another mark: it is another broker's, or older or newer than the definitions.
    Other,
    /// It has a mark, and the definitions know none.
    Unknown,
}

impl fmt::Display for StoreFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            StoreFault::Missing => "is missing",
            StoreFault::Unmarked => "is empty, or older than the definitions",
            StoreFault::Other => {
                "is not the one that this broker used last: another broker's, or an older copy"
            }
            StoreFault::Unknown => {
                "is one that the definitions do not know: another broker's, or they are older"
            }
        };
        write!(
            f,
            "the automation's store {what}; restore what is missing and restart the broker, or run \
             `imori automate store adopt` to go on with the store as it is"
        )
    }
}

/// Whether the store with what was found of it is the one that the definitions know.
///
/// # Errors
/// It is not.
pub fn judge(known: &StoreMarks, found: &StoreState) -> Result<(), StoreFault> {
    match (&known.current, found) {
        // A new automation, or one of a version whose stores had no marks.
        (None, StoreState::Unmarked) => Ok(()),
        // The next mark is noted once there is a store.
        (None, StoreState::Absent) if known.next.is_none() => Ok(()),
        (_, StoreState::Marked(mark))
            if known.current.as_ref() == Some(mark) || known.next.as_ref() == Some(mark) =>
        {
            Ok(())
        }
        (None, StoreState::Marked(_)) => Err(StoreFault::Unknown),
        (_, StoreState::Absent) => Err(StoreFault::Missing),
        (Some(_), StoreState::Unmarked) => Err(StoreFault::Unmarked),
        (Some(_), StoreState::Marked(_)) => Err(StoreFault::Other),
    }
}

/// Why a store does not get its mark.
#[derive(Debug)]
pub(crate) enum MarkError {
    /// The store refuses.
    Store(StoreError),
    /// The definitions cannot be written, or the system has no random bytes.
    Definitions(String),
}

impl fmt::Display for MarkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MarkError::Store(error) => error.fmt(f),
            MarkError::Definitions(error) => write!(f, "the store's mark cannot be kept: {error}"),
        }
    }
}

impl Engine {
    /// What is found of the store, before anything of it is used. Waits for a server that cannot be reached.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn found_store(&self) -> Result<StoreState, StoreError> {
        let mut told = String::new();
        loop {
            let location = location(&self.options.folder, self.options.server.as_ref());
            let reason = match spawn_blocking(move || found(&location)).await {
                Ok(Err(StoreError::Unreachable(reason))) => reason,
                Ok(found) => return found,
                Err(error) => return Err(StoreError::Io(error.to_string())),
            };
            if reason != told {
                warn!(reason, "the automation waits for its store");
                told = reason;
            }
            sleep(STORE_RECONNECT_PAUSE_MAX).await;
        }
    }

    /// Whether this is the store that the definitions know.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn check_owner(&self, found: &StoreState) -> Result<(), StoreFault> {
        judge(&self.broker.access().store_marks(), found)
    }

    /// Gives a store, of which this was found, and the definitions a new mark. A crash in between leaves a store that the
    /// next start knows.
    ///
    /// # Errors
    /// One of them cannot be written.
    pub(crate) async fn mark_store(self: &Arc<Self>, found: StoreState) -> Result<(), MarkError> {
        let no_randomness = || MarkError::Definitions(AccessError::NoRandomness.to_string());
        let mark = random_id().ok_or_else(no_randomness)?;
        let current = match found {
            StoreState::Marked(mark) => Some(mark),
            StoreState::Absent | StoreState::Unmarked => self.broker.access().store_marks().current,
        };
        self.tell_definitions(StoreMarks { current, next: Some(mark.clone()) }).await?;
        let document: Map =
            [("id", Value::from(MARK_ID)), ("mark", Value::from(mark.as_str()))].into_iter().collect();
        let mut transaction = Transaction::new();
        transaction.put(&MARKS, document);
        self.store.commit_mark(transaction).await.map_err(MarkError::Store)?;
        self.tell_definitions(StoreMarks { current: Some(mark), next: None }).await
    }

    /// Marks a store that is about to be made, once it is.
    pub(crate) async fn mark_new_store(self: &Arc<Self>) {
        self.store.opened().await;
        let marked = self.mark_store(StoreState::Absent).await;
        self.store.set_known(true);
        if let Err(error) = marked {
            warn!(%error, "the automation's new store is not known to the definitions until the next start");
        }
    }

    async fn tell_definitions(self: &Arc<Self>, marks: StoreMarks) -> Result<(), MarkError> {
        let engine = Arc::clone(self);
        // It waits for the disk.
        let kept = spawn_blocking(move || engine.broker.access().set_store_marks(marks)).await;
        let kept = kept.map_err(|error| MarkError::Definitions(error.to_string()))?;
        kept.map_err(|error: AccessError| MarkError::Definitions(error.to_string()))
    }
}
