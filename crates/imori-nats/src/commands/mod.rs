//! The commands of a client: each file takes one operation and calls the broker's verbs.
//!
//! Nothing here decides whether an operation may be performed now; that is the connection's state.

pub(crate) mod login;
pub(crate) mod subscribe;
pub(crate) mod repeat;
pub(crate) mod publish;
