//! What is measured: each scenario opens connections, drives them through its phases and reports.

mod idle;
mod pubsub;
mod queue;
mod fill_drain;
mod oneway;
mod rpc;
mod summary;

pub use idle::run as run_idle;
pub use pubsub::{run as run_pubsub, run_fan_out};
pub use queue::run as run_queue;
pub use rpc::run as run_rpc;
