//! A virtual cell: its loop, its connections' tasks, and the `Host` and `World` that it provides.

mod cell;
mod task;
mod host;
mod session_bugs;
mod world;

pub(crate) use world::CellWorld;
