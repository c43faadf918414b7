//! The broker's numbers in Prometheus' text format.
//!
//! RabbitMQ's names stand where one means the same, so that its dashboards work; all others begin with `imori_`. The
//! series are bounded: a name with a queue in it is there for the busiest queues only, and for all on request.

mod page;
mod detailed;
mod limits_used;
mod families;
mod queues;
mod sources;
mod rates;
mod exposition;
mod process;

pub(crate) use detailed::detailed;
pub(crate) use exposition::CONTENT;
pub(crate) use limits_used::{Used, used_by_user, used_by_vhost};
pub(crate) use page::page;
pub(crate) use process::{CpuMeter, memory_bytes};
pub(crate) use rates::Rates;
pub(crate) use sources::Metrics;
