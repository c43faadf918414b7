//! Access: who asks, what each request needs, and what roles allow. The API admits clients and decides by these.

pub(crate) mod requester;
pub(crate) mod need;
mod read;
pub(crate) mod roles;

pub(crate) use need::{Login, Need, Permission, Target};
pub(crate) use requester::{Holder, Requester, may_administer, requester, with_requester};
pub(crate) use roles::{Assignment, PERMISSION_TYPES, Resource, Roles};
