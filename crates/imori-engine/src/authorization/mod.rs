//! What the requester of each request may do: one function decides by roles, before any handler runs.

pub(crate) mod authorize;

pub(crate) use authorize::{Refusal, authorize, may, may_everything, may_of};
