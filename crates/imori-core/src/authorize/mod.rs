//! Decides whether a client may do something; no other part of the broker does.
//!
//! The rights of a user are compiled once, from grants, and shared by all connections of that user.
//! They are the same for every protocol: a protocol names an action and its object, and never reads
//! a right.

mod decide;
mod identity;
mod refusal;
mod action;
mod rights;
mod keys;
mod grants;

pub use crate::expression::ExpressionError;
pub use crate::responses::Responses;
pub use action::{Action, Object};
pub(crate) use decide::is_always_allowed;
pub use decide::{authorize, filter, is_reserved, responses};
pub use grants::{AllowDeny, Grants, SubjectGrants, Tag, Tags, TopicGrant};
pub use identity::{Actor, Identity, Renewal};
pub use refusal::{Access, Cause, Refusal, Resource};
pub use rights::{Rights, RightsError};
