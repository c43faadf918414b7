//! The engine's state: documents in collections, changed in transactions that one sync confirms together. They are in a
//! SQLite file, or on a PostgreSQL server.

pub(crate) mod database;
mod writer;
mod reader;
mod outage;
mod pause;
pub(crate) mod retention;
mod check;
pub(crate) mod mark;
pub(crate) mod query;
mod large;
pub(crate) mod parts;
pub(crate) mod location;

pub use check::Finding;
pub(crate) use check::check;
pub(crate) use database::{Database, Pending};
pub(crate) use location::Location;
pub(crate) use mark::{StoreState, found};
pub(crate) use parts::Parts;
pub(crate) use query::{Condition, Query, Rows};
pub use retention::Retention;

pub(crate) use crate::sql::{
    ACTIONS, ALIASES, API_KEYS, Collection, Committed, ENDS, ENFORCEMENTS, EXECUTIONS, KEYS, MARK_ID, MARKS,
    NOTIFICATIONS, POLICIES, RULE_STATES, RULES, SENSORS, SNAPSHOTS, StoreError, TIMERS, TOKENS,
    TRIGGER_INSTANCES, TRIGGER_TYPES, Transaction, WORKFLOWS,
};
