//! A run: what a seed begins, who goes on at each step, and how the broker ends and begins again meanwhile.

mod run;
mod restarts;
mod scheduler;
mod disk_full;
mod simulation;

pub use run::Outcome;
pub(crate) use simulation::Simulation;
