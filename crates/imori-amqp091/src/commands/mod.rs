//! Performs the methods of a client: each file has a group of related methods.

pub(crate) mod login;
pub(crate) mod repeat;
pub(crate) mod publish;
pub(crate) mod publish_headers;
pub(crate) mod confirm;
pub(crate) mod consume;
pub(crate) mod transaction;
pub(crate) mod settle;
pub(crate) mod queue;
pub(crate) mod exchange;
pub(crate) mod direct_reply;
pub(crate) mod stream;
pub(crate) mod queue_arguments;
pub(crate) mod arguments;
pub(crate) mod token;
