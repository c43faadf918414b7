//! The simulator: its runs, which take minutes and have a stage of their own, and units of what they are made of.

mod seeds;
mod locks;
mod model;
