//! StackStorm's API over HTTP: its paths, shapes and words.

pub(crate) mod routes;
mod admission;
mod trials;
mod aliases;
mod stream;
mod executions;
mod workflows;
mod inquiries;
mod actions;
mod rules;
mod triggers;
mod webhooks;
pub(crate) mod views;
mod packs;
mod policies;
mod sensors;
mod keys;

pub(crate) use routes::routes;
