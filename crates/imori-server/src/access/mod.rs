//! Users, vhosts and permissions: the objects that an operator sets, and the login decisions based on them.
//!
//! Objects are rows of the definitions file with JSON values. They are not in the journal, which keeps declarations in
//! the order of messages, because a permission has no place in that order. [`Access`] holds all of them in memory, as
//! one snapshot that a change replaces. A change is validated as a whole, made durable, and then applied to live
//! connections. The last administrator cannot be deleted, so no start has to make one secretly.

mod first_start;
mod standing;
mod access;
mod attempts;
mod verified;
mod draft;
mod file_objects;
mod quotas;
mod login_index;
mod objects;
mod store_marks;
mod policy;
mod policy_keys;
mod operator;
mod refusal;

pub use access::Access;
pub use draft::Draft;
pub use file_objects::FileObjects;
pub use first_start::FirstPassword;
pub(crate) use first_start::make_admin;
pub use objects::{
    Objects, Permission, ResponseLimits, SubjectList, SubjectLists, TopicPermission, User, VhostFacts,
};
pub(crate) use operator::make_operator;
pub use policy::{PolicyKind, PolicyRow, SetPolicy};
pub use quotas::{BYTE_RATE, BYTES, CHANNELS, CONNECTIONS, QUEUES, RATE, USER_LIMITS, VHOST_LIMITS};
pub use refusal::AccessError;
pub use standing::Standing;
pub use store_marks::StoreMarks;
