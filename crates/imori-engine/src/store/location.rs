//! Where the documents are.

use std::path::PathBuf;

use crate::postgres::ServerAddress;

/// Where the documents are.
#[derive(Debug, Clone)]
pub enum Location {
    /// In this file, which is made when something is stored.
    File(PathBuf),
    /// On this server.
    Server(Box<ServerAddress>),
}
