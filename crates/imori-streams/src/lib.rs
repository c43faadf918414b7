//! The declarations of streams and of their consumers: one JSON for operators, for documents of definitions and for
//! clients of NATS.
//!
//! Names, defaults, checks and errors are those of JetStream, whose users know them. A declaration becomes settings of
//! the core, which are all that is stored; what they do not tell is their note. Deliberately absent: requests, subjects
//! and answers of a protocol.

pub mod archive;
mod archive_error;
pub mod declared;
pub mod settings;
pub mod note;
pub mod consumer_check;
pub mod consumer_config;
pub mod stream_check;
pub mod stream_config;
pub mod account;
pub mod error;
pub mod subject;
pub mod units;
pub mod json;
pub mod time;
pub mod duration;
pub mod limits;

pub use declared::DeclaredStream;
pub use settings::{config_of, config_of_consumer};
