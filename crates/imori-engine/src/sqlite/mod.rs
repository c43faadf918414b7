//! The store in a SQLite file.

mod connection;
mod changes;
mod schema;
mod field;

pub(crate) use connection::Sqlite;
