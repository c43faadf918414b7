//! The commands that administer a broker over its admin listener.

mod queue;
pub(crate) mod stream;
mod message;
mod routes;
mod policy;
mod connection;
mod readers;
pub(crate) mod user;
mod vhost;
mod definitions;
mod status;
mod config;
mod watch;
mod limit;
mod queue_report;
pub(crate) mod diagnosis;

pub(crate) use config::{reload, running};
pub(crate) use connection::Connection;
pub(crate) use definitions::Definitions;
pub(crate) use policy::Policy;
pub(crate) use queue::{Queue, Why};
pub(crate) use readers::{Consumer, Session};
pub(crate) use routes::{Binding, Exchange};
pub(crate) use status::Status;
pub(crate) use stream::Stream;
pub(crate) use user::User;
pub(crate) use vhost::Vhost;
pub(crate) use watch::{Events, Stalls, Top};
