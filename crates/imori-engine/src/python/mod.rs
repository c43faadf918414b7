//! Runs Python: for the actions of a pack, a process that has imported what they need forks another for each of them;
//! a sensor has a process of its own; expressions of workflows share some.

pub mod hosts;
pub mod sensor;
pub mod expressions;
mod run;
pub(crate) mod conversation;
mod zygote;
mod control;
pub mod action;
mod files;
pub mod outcome;
pub mod result;
pub mod datastore;
pub mod sources;

pub use action::PythonAction;
pub use datastore::{Datastore, DatastoreAnswer, DatastoreFuture, DatastoreItem, DatastoreQuestion};
pub use expressions::Evaluators;
pub(crate) use files::RunFiles;
pub use hosts::{PythonHosts, PythonOptions};
pub use outcome::{PythonError, PythonOutcome, PythonStatus};
pub use result::PythonResult;
pub use sensor::{
    SensorAnswer, SensorCommand, SensorCommands, SensorEnds, SensorEvent, SensorProcess, SensorProgram,
    SensorQuestion, SensorQuestions,
};
