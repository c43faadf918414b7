//! Users, vhosts and permissions: the objects that an operator sets, and the logins that they decide.
//!
//! Objects are rows of the definitions file, each with its value as JSON, and in no record of the journal: that keeps
//! declarations in the order of messages, in which a permission has no place. [`Access`] has all of them in memory, as
//! one snapshot that a change replaces. A change is checked whole, made durable, and then takes effect on live
//! connections. The last administrator cannot be deleted, so that no start has to make one secretly.

mod first_start;
mod access;
mod attempts;
mod verified;
mod draft;
mod file_objects;
mod quotas;
mod login_index;
mod objects;
mod policy;
mod policy_keys;
mod operator;
mod refusal;

pub(crate) use access::Access;
pub(crate) use draft::Draft;
pub(crate) use file_objects::FileObjects;
pub use first_start::FirstPassword;
pub(crate) use first_start::make_admin;
pub(crate) use objects::{Objects, Permission, SubjectLists, TopicPermission, User, VhostFacts};
pub(crate) use operator::make_operator;
pub(crate) use policy::{PolicyKind, PolicyRow, SetPolicy};
pub(crate) use quotas::{BYTE_RATE, BYTES, CHANNELS, CONNECTIONS, QUEUES, RATE, USER_LIMITS, VHOST_LIMITS};
pub(crate) use refusal::AccessError;
