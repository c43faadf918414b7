//! The automation engine: its store, packs, processes and API around `imori-automation`.

mod start;
mod api;
mod credentials;
mod answers;
mod sensors;
mod authorization;
mod aliases;
mod events;
mod requests;
mod scheduling;
mod runners;
mod workflows;
mod notifications;
mod retries;
mod registration;
mod parameters;
mod run_tokens;
mod configurations;
mod expressions;
mod datastore;
mod ownership;
mod engine;
mod executions;
mod rules;
mod registry;
mod cipher;
mod keyczar;
mod access;
pub mod packs;
pub mod environments;
pub mod python;
mod outputs;
mod process;
mod store;
mod postgres;
mod sqlite;
mod sql;
mod times;
pub mod limits;

pub use engine::EngineOptions;
pub use postgres::ServerAddress;
pub use start::{check_store, start};
pub use store::{Finding, Retention};

/// What the tests of this crate reach beside its public items.
#[doc(hidden)]
pub mod for_tests {
    pub use crate::access::need::{Login, Need, Permission, Target};
    pub use crate::access::requester::{Requester, requester, with_requester};
    pub use crate::access::roles::{Resource, Roles, split_permission};
    pub use crate::aliases::run::{AliasError, acknowledge, add_immutable};
    pub use crate::api::routes::listed as api_rows;
    pub use crate::api::views::traced as traces;
    pub use crate::authorization::authorize::{decoded as decoded_path, pairs as query_pairs};
    pub use crate::cipher::Cipher;
    pub use crate::environments::copy::copy as copy_environment;
    pub use crate::executions::execution::{Execution, Origin, RuleOrigin};
    pub use crate::executions::status::Status;
    pub use crate::keyczar::{KeyczarKey, is_envelope};
    pub use crate::notifications::{
        event_id as notification_id, moments as notification_moments, routes as notification_routes,
        with_offset as notification_time,
    };
    pub use crate::outputs::{Output, Recorded, RecorderStop, ResultPlace};
    pub use crate::ownership::{StoreFault, StoreMarks, judge as judge_store};
    pub use crate::postgres::connection::{Postgres, Role};
    pub use crate::postgres::field::{decode, encode};
    pub use crate::python::conversation::{converse, receive as receive_frame};
    pub use crate::registry::alias::RegisteredAlias;
    pub use crate::registry::policy::{ActionPolicies, RegisteredPolicy};
    pub use crate::registry::trigger::Trigger;
    pub use crate::rules::breaker::{Breaker, Passage};
    pub use crate::rules::memory::{RuleMemory, Undo, Verdict};
    pub use crate::runners::ssh::{Host, host as ssh_host, hosts as ssh_hosts, quoted as shell_quoted};
    pub use crate::sensors::backoff::Backoff;
    pub use crate::sensors::dispatch::{check_payload, trigger_reference};
    pub use crate::sensors::output::{Lines, Window as LogWindow};
    pub use crate::sql::collection::{
        Collection, ENFORCEMENTS, EXECUTIONS, KEYS, SNAPSHOTS, TOKENS, TRIGGER_INSTANCES, WORKFLOWS,
    };
    pub use crate::sql::connection::{Each, LastCommit, Row, StoreConnection};
    pub use crate::sql::error::StoreError;
    pub use crate::sql::field::Field;
    pub use crate::sql::transaction::{Committed, Transaction};
    pub use crate::sqlite::connection::Sqlite;
    pub use crate::store::database::{Database, Pending};
    pub use crate::store::location::Location;
    pub use crate::store::mark::{StoreState, found as found_store};
    pub use crate::store::parts::Parts;
    pub use crate::store::query::{Condition, Query, Rows};
    pub use crate::store::retention::Sweeper;
    pub use crate::workflows::reruns::Rerun;
}
