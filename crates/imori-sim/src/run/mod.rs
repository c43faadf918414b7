//! A run: its setup from the seed, its scheduler, and how the broker ends and restarts meanwhile.

mod run;
mod streams;
mod restarts;
mod scheduler;
mod shadows;
mod disk_full;
mod simulation;

pub use run::Outcome;
pub(crate) use simulation::Simulation;
