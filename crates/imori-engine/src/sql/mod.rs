//! What both stores of the engine's documents share: collections, transactions, values of columns and the statements that
//! a connection runs.

pub(crate) mod connection;
pub(crate) mod transaction;
mod split;
pub(crate) mod collection;
pub(crate) mod field;
pub(crate) mod error;

pub(crate) use collection::{
    ACTIONS, ALIASES, API_KEYS, COLLECTIONS, Collection, ENDS, ENFORCEMENTS, EXECUTIONS, KEYS, MARK_ID,
    MARKS, NOTIFICATIONS, POLICIES, RULE_STATES, RULES, SENSORS, SNAPSHOTS, TIMERS, TOKENS,
    TRIGGER_INSTANCES, TRIGGER_TYPES, WORKFLOWS,
};
pub(crate) use connection::{Each, LastCommit, Row, StoreConnection};
pub(crate) use error::StoreError;
pub(crate) use field::Field;
pub(crate) use split::{REFERENCES, Split, hash, unsealed};
pub(crate) use transaction::{Change, Committed, Transaction};

/// The version of the tables, which each store keeps beside them.
pub(crate) const VERSION: i64 = 3;

/// The oldest version whose tables are those of [`VERSION`]: its documents have no checksums.
pub(crate) const VERSION_WITHOUT_SUMS: i64 = 2;
