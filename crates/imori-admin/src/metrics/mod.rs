//! Metrics in Prometheus text format.
//!
//! A metric that RabbitMQ also has uses RabbitMQ's name, so that its dashboards work; all others start with `imori_`.
//! The number of series is bounded: series per queue and per stream exist for the busiest only, and for all on request.

mod page;
mod detailed;
mod limits_used;
mod families;
pub(crate) mod queues;
pub(crate) mod streams;
mod sources;
pub(crate) mod rates;
pub(crate) mod exposition;
pub(crate) mod process;

pub(crate) use detailed::detailed;
pub(crate) use exposition::CONTENT;
pub(crate) use page::page;
pub(crate) use process::{CpuMeter, memory_bytes};
pub(crate) use sources::{Metrics, node_name, raise};
