//! The automation of a broker, measured through its HTTP API, and rules evaluated in this process.
//!
//! Executions are followed by the API's stream, so that nothing is polled while a latency is measured. Throughputs count
//! what the API shows as done.

mod run;
mod table;
mod measurements;
mod throughput;
mod latency;
mod memory;
mod subject;
mod rules;
mod pack;
mod figure;
mod load;
mod stream;
mod api;
mod http;
pub(crate) mod options;

pub(crate) use run::run;
