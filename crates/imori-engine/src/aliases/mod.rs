//! Aliases: registering those that the API creates, and running the actions of chat commands.

pub(crate) mod run;
mod changes;

pub(crate) use changes::AliasChangeError;
pub(crate) use run::{AliasError, Command, acknowledge};
