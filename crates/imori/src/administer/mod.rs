//! The commands that administer a broker over its admin listener.

mod queue;
mod exchange;
mod policy;
mod connection;
mod user;
mod vhost;
mod definitions;
mod status;
mod config;
mod limit;
mod listing;
mod admin;

pub(crate) use config::{Asked, reload, running};
pub(crate) use connection::Connection;
pub(crate) use definitions::Definitions;
pub(crate) use exchange::{Binding, Exchange};
pub(crate) use policy::Policy;
pub(crate) use queue::Queue;
pub(crate) use status::Status;
pub(crate) use user::User;
pub(crate) use vhost::Vhost;
