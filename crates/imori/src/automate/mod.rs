//! The commands of the automation, over its API.

mod command;
mod login;
mod execution;
mod rule;
mod trigger;
mod pack;
mod key;
mod new;
mod workflow;
mod check;
mod store;
mod api;

pub(crate) use command::Automate;
