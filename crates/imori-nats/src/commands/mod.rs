//! Performs the commands of a client: each file takes one kind of operation and calls the broker's
//! verbs.
//!
//! The connection's state machine decides whether an operation may be performed now; this module
//! does not.

pub(crate) mod login;
pub(crate) mod subscribe;
pub(crate) mod repeat;
pub(crate) mod publish;
