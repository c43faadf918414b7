//! The client of the broker's admin listener: which broker to ask, its answers, and how they are printed.

mod listing;
pub(crate) mod admin;
pub(crate) mod destination;
pub(crate) mod context;
pub(crate) mod listens;

pub(crate) use admin::{Admin, segment};
pub(crate) use context::{Context, Contexts};
pub(crate) use destination::{Named, destination};
pub(crate) use listens::Listens;
pub(crate) use listing::{AdminOptions, Listed, print_aligned, print_table, text};
