//! Why a change of what is registered is refused.

use crate::store::StoreError;

/// Why a rule or a trigger type cannot be registered.
#[derive(Debug)]
pub(crate) enum RuleChangeError {
    /// It is wrong.
    Wrong(String),
    /// One of this reference exists, with this id.
    Exists(String, String),
    /// The store refused.
    Store(StoreError),
}
