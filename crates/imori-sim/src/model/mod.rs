//! The clients' knowledge: messages sent, deliveries received, and the deliveries that may follow.
//!
//! The model uses only what is on the wire; it knows nothing of how the broker works.

mod histories;
mod arrival;
mod address;
mod redelivery;
mod order;
mod dedup;
mod purged;
mod single_active;
mod delayed;
mod model;
mod records;
mod duplicate;
mod due;
mod wildcards;

pub(crate) use delayed::check_late;
pub(crate) use due::{Cancel, Due};
pub(crate) use duplicate::Duplicate;
pub use duplicate::Span;
pub use histories::histories;
pub(crate) use model::Model;
pub use records::Goodbyes;
pub(crate) use records::{
    Arrived, LastDelivery, MessageRecord, Mode, Outcome, Reads, RouteRecord, RouteState, SubscriptionRecord,
    To, TransactionRecord,
};
pub use wildcards::is_match;
