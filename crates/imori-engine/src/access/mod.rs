//! Access: who asks, what each request needs, and what roles allow. The API admits clients and decides by these.

pub(crate) mod requester;
pub(crate) mod table;
mod read;
pub(crate) mod roles;

pub(crate) use requester::{Holder, Requester, requester, with_requester};
pub(crate) use roles::{Assignment, PERMISSION_TYPES, Resource, Roles};
pub(crate) use table::{Target, need};
