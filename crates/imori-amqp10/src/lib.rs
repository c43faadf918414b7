//! AMQP 1.0 as a state machine: bytes in, bytes and commands out.
//!
//! The codec serves both ends. Modules are listed in reading order; protocol crates share module
//! names where they share jobs.

pub mod connection;
mod commands;
mod management;
mod client;
pub mod delivery;
pub mod settings;
pub mod message;
mod header_block;
mod transaction;
mod session;
mod link;
mod temporary;
mod address;
pub mod protocol_error;
pub mod codec;
pub mod limits;

/// Name and version of the protocol, as shown to operators.
pub const PROTOCOL: &str = "AMQP 1.0";

pub use header_block::{FORMS, SOLE_ORIGINS, header_reader, reader_of_form};

/// What the tests of this crate reach beside its public items.
#[doc(hidden)]
pub mod for_tests {
    pub use crate::address::Node;
    pub use crate::commands::disposition::number_of_id;
    pub use crate::commands::scram::ScramLogin;
    pub use crate::connection::state::{Action, Kind, State, action};
    pub use crate::header_block::{CONTENT, SECTIONS};
    pub use crate::management::request::{decoded, encoded};
    pub use crate::session::{Session, channel_of, session_of};
    pub use crate::transaction::{LinkOf, NumberSet, Retired, Transaction, TransactionId, Transactions};
}
