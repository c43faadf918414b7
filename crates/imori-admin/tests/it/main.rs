//! Tests of the admin APIs, the console's feed, the monitor and the metrics.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets the unexpected has failed")]

mod openapi;
mod reference;
mod lists;
mod problems;
mod deeds;
mod sessions;
mod console;
mod feeds;
mod gathered;
mod rows;
mod queue_rows;
mod connection_rows;
mod samples;
mod metrics;
mod health;
mod monitor;
mod monitor_queries;
