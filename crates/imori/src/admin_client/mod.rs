//! The client of the broker's admin listener: which broker to ask, its answers, and how they are printed.

mod listing;
mod broker_options;
pub(crate) mod admin;
pub(crate) mod destination;
pub(crate) mod context;
pub(crate) mod listens;

pub(crate) use admin::{Admin, segment};
pub(crate) use broker_options::BrokerOptions;
pub(crate) use context::Context;
pub(crate) use listens::Listens;
pub(crate) use listing::{AdminOptions, Listed, print_aligned, print_table, text};
