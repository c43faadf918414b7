//! The store in a SQLite file.

pub(crate) mod connection;
mod changes;
mod schema;
mod field;

pub(crate) use connection::Sqlite;
