//! What an action asks through `self.action_service`, and what it is answered.

use std::future::Future;
use std::pin::Pin;

use serde::{Deserialize, Serialize};

/// Answers the questions of running actions.
pub trait Datastore: Send + Sync {
    /// Answers one question. The error is the text that the action sees: of a read or a deletion in its log, of
    /// anything else as an exception.
    fn answer(&self, question: DatastoreQuestion) -> DatastoreFuture<'_>;
}

/// An answer to come.
pub type DatastoreFuture<'a> = Pin<Box<dyn Future<Output = Result<DatastoreAnswer, String>> + Send + 'a>>;

/// A question of an action. Names are complete: those of the action's own keys start with `pack.Class:`. The scope is
/// always the system's.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "operation", rename_all = "lowercase")]
pub enum DatastoreQuestion {
    /// The value of a key: answered with `Value`.
    Get {
        /// The key.
        name: String,
        /// Whether a secret is decrypted.
        #[serde(default)]
        decrypt: bool,
    },
    /// Sets a key: answered with `Done`.
    Set {
        /// The key.
        name: String,
        /// Its value.
        value: String,
        /// Seconds after which the key is gone.
        ttl: Option<u64>,
        /// Whether the value becomes a secret.
        #[serde(default)]
        encrypt: bool,
    },
    /// Deletes a key: answered with `Done`, or an error if there is none.
    Delete {
        /// The key.
        name: String,
    },
    /// The items whose keys start with a prefix: answered with `Items`.
    List {
        /// What keys start with; all do with `None`.
        prefix: Option<String>,
        /// The most items to answer with; the datastore's own limit with `None`.
        limit: Option<u64>,
        /// Items to pass over.
        #[serde(default)]
        offset: u64,
    },
    /// Who runs the action: answered with `User`.
    User,
}

/// An answer of the datastore.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum DatastoreAnswer {
    /// The value of a key, if there is one.
    Value(Option<String>),
    /// Keys and values.
    Items(Vec<DatastoreItem>),
    /// What `get_user_info` returns, as StackStorm's API has it.
    User(imori_automation::value::Map),
    /// It is done.
    Done,
}

/// An item as the answer to `List` has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DatastoreItem {
    /// The key.
    pub name: String,
    /// The value; encrypted if it is a secret.
    pub value: String,
    /// Whether the value is a secret.
    pub secret: bool,
    /// Whether the value is encrypted.
    pub encrypted: bool,
    /// When the key is gone, as ISO 8601.
    pub expire_timestamp: Option<String>,
}
