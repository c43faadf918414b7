//! The client of the broker's admin listener: which broker to ask, its answers, and how they are printed.

mod listing;
pub(crate) mod context;
pub(crate) mod admin;

pub(crate) use admin::{ADMIN_URL_FILE, Admin, segment};
pub(crate) use context::Context;
pub(crate) use listing::{AdminOptions, Listed, print_aligned, print_table, text};
