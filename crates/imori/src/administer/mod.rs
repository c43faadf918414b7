//! The commands that administer a broker over its admin listener.

mod queue;
mod stream;
mod message;
mod routes;
mod policy;
mod connection;
mod readers;
mod user;
mod vhost;
mod definitions;
mod status;
mod config;
mod watch;
mod limit;
mod listing;
mod context;
mod admin;

pub(crate) use admin::{Admin, segment};
pub(crate) use config::{Asked, reload, running};
pub(crate) use connection::Connection;
pub(crate) use context::Context;
pub(crate) use definitions::Definitions;
pub(crate) use listing::{print_table, text};
pub(crate) use policy::Policy;
pub(crate) use queue::Queue;
pub(crate) use readers::{Consumer, Session};
pub(crate) use routes::{Binding, Exchange};
pub(crate) use status::Status;
pub(crate) use stream::Stream;
pub(crate) use user::User;
pub(crate) use vhost::Vhost;
pub(crate) use watch::{Events, Stalls, Top};
