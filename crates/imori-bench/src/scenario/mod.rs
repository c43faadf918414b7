//! What is measured: each scenario opens connections, drives them through its phases and reports.

mod idle;
mod oneway;
mod rpc;
mod summary;

pub use idle::run as run_idle;
pub use oneway::{run_pubsub, run_queue};
pub use rpc::run as run_rpc;
