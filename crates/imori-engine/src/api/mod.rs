//! StackStorm's API over HTTP: its paths, shapes and words.

pub(crate) mod routes;
mod trials;
mod aliases;
mod stream;
mod executions;
mod store;
mod workflows;
mod inquiries;
mod actions;
mod rules;
mod triggers;
mod webhooks;
mod spool;
pub(crate) mod views;
mod packs;
mod policies;
mod sensors;
mod keys;
mod tenure;
mod admission;

pub(crate) use routes::routes;
