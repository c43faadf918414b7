//! Metrics in Prometheus text format.
//!
//! A metric that RabbitMQ also has uses RabbitMQ's name, so that its dashboards work; all others start with `imori_`.
//! The number of series is bounded: series per queue and per stream exist for the busiest only, and for all on request.

mod page;
mod detailed;
mod limits_used;
mod families;
mod queues;
mod streams;
mod sources;
mod rates;
mod exposition;
mod process;

pub(crate) use detailed::detailed;
pub(crate) use exposition::CONTENT;
pub(crate) use page::page;
pub(crate) use process::{CpuMeter, memory_bytes};
pub(crate) use sources::{Metrics, node_name, raise};
