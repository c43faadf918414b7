//! Reading a journal back: at a start, for an operator who looks, and while messages stay in it.
//!
//! What is found is judged against what must be there; damage is told and set aside. Nothing is written but what
//! a cut off end has to become.

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
mod faltering;

pub use self::messages::{Messages, ReadError};
pub use self::recover::{RecoverError, Recovered, recover, recover_apart};
pub use self::report::{DamagedFile, Report};
