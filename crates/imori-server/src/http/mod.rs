//! HTTP on a thread of its own: who is let in, and for how long. The answers are the monitor's.

mod serve;
mod places;

pub(crate) use serve::start;
