//! What the requester of each request may do: one function decides by roles, before any handler runs.

mod authorize;

pub(crate) use authorize::{Refusal, authorize};
