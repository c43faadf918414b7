//! Reads a journal back: at a start, for an operator, and while messages stay in its files.
//!
//! Records are checked against the numbers that must exist; damage is reported and set aside.
//! Recovery itself writes nothing: `journal/open.rs` does.

pub(crate) mod recover;
mod messages;
mod damage;
mod report;
mod read_files;
pub(crate) mod chain;
pub(crate) mod scan;
pub(crate) mod window;
pub mod walk;
#[cfg(test)]
mod written;
#[cfg(test)]
mod interrupted_reads;

pub use self::messages::{Messages, ReadError};
pub use self::recover::{RecoverError, Recovered, recover, recover_apart};
pub use self::report::{DamagedFile, Report};
