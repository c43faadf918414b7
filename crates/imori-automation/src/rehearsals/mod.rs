//! Rehearsals of workflows, in the form of orquesta's test specifications: the outcome of each action is given, and the
//! tasks that run, the status and the output are compared with what is expected. The caller reads the files.

mod rehearsal;
mod mocks;
mod specification;
mod error;

pub use error::{Location, RehearsalError};
pub use rehearsal::Rehearsal;
