//! A virtual cell: its turns, its connections' tasks, and the locks and records that the core asks it for.

mod cell;
mod task;
mod host;
mod session_bugs;
mod world;

pub(crate) use world::CellWorld;
