//! Routing from an address to its targets: exchanges, bindings, and patterns that match a subject.
//!
//! The [`Table`] is an immutable snapshot. A writer derives the next one, which costs O(tokens)
//! because only the path to the change is copied; readers never lock. Each cell looks up through
//! its own [`Router`], which caches routes.

pub mod router;
mod memory;
pub mod table;
mod follow;
mod vhost;
pub mod exchange;
pub mod header;
pub mod subject_set;
pub mod trie;
mod literals;
pub mod binding;
pub mod arguments;
pub mod pattern;
pub mod target;
mod durability;
pub mod hamt;

pub use arguments::{Arguments, ArgumentsError};
pub use binding::{Binding, BindingKey};
pub use durability::DurabilityPlan;
pub use exchange::{AutoDeleted, Exchange, ExchangeKind, Settings};
pub use header::{Headers, NoHeaders};
pub use pattern::{Pattern, PatternError, Step, Syntax};
pub use router::{Router, Way};
pub use subject_set::{SubjectFilter, SubjectSet};
pub use table::{Removal, RouteError, Table, TableLimits};
pub use target::{Group, Route, Target};
