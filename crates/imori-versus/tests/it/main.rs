//! Comparisons run as processes.

#![allow(clippy::unwrap_used, reason = "a test whose premises fail has failed")]

mod versus;
#[path = "../../../imori-bench/tests/it/liar.rs"]
#[allow(dead_code, reason = "the load tool's own tests have the broker tell its other lies")]
mod liar;
#[path = "../../../imori-bench/tests/it/frame.rs"]
mod frame;
