//! Side by side: the same load on several peers in turns, one command, one report.

mod experiment;
mod hand;
mod compare;
mod arguments;
mod turns;
mod table;
mod figures;
mod comparison;
mod running;
mod recipe;
mod found;
mod peer;
mod ourselves;
mod guard;

pub use arguments::VersusArgs;
pub use comparison::{Comparison, Failure, Job, LeftOut, PeerFacts, Run, Settings};
pub use experiment::ExperimentArgs;
pub use guard::GuardArgs;
pub use hand::PeersArgs;

pub(crate) use compare::run as run_versus;
pub(crate) use experiment::run as run_experiment;
pub(crate) use guard::run as run_guard;
pub(crate) use hand::run as run_peers;
