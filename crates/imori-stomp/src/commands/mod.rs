//! The commands of a client: each file reads one frame and calls the broker's verbs.
//!
//! Nothing here decides whether a frame may be performed now; that is the connection's state.

pub(crate) mod login;
pub(crate) mod commit;
pub(crate) mod settle;
pub(crate) mod subscribe;
pub(crate) mod repeat;
pub(crate) mod send;
mod send_headers;
pub(crate) mod foreign;
mod arguments;
