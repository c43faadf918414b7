//! What the definitions know of the automation's store.

use serde::{Deserialize, Serialize};

/// The marks by which the definitions know the automation's store. It gets another one at each start, so that a store or
/// definitions that are older than the other are told apart.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreMarks {
    /// The mark that the store has; absent until there is a store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// The mark that the store is about to get, or has got, if the broker ended before it could tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
