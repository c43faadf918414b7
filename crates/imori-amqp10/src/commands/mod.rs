//! The commands: each file performs one kind of performative.

pub(crate) mod login;
pub(crate) mod scram;
pub(crate) mod open;
pub(crate) mod session;
pub(crate) mod attach;
mod source;
mod target;
pub(crate) mod transfer;
pub(crate) mod disposition;
pub(crate) mod detach;
mod temporary;
mod terminus;
mod stream;
pub(crate) mod flow;
pub(crate) mod transaction;
pub(crate) mod management;
