//! The store on a PostgreSQL server.
//!
//! One broker uses a store at a time: the connection that writes holds an advisory lock. Each transaction writes a mark of
//! its own, by which a commit whose answer was lost with the connection is found again.

pub(crate) mod connection;
mod changes;
mod pipeline;
mod session;
mod schema;
mod row;
pub(crate) mod field;
mod address;
mod tls;
mod fault;

pub use address::ServerAddress;
pub(crate) use connection::{Postgres, Role};
