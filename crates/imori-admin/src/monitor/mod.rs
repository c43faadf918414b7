//! Monitoring over HTTP, compatible with the paths, parameters, names, types and units of nats-server that dashboards
//! and `nats-top` read.
//!
//! The monitor has its own thread and takes from cells only each connection's lock for a moment. Values that this
//! broker does not have are absent, or 0 if there are none. JSONP is left out on purpose, and pages of other origins
//! cannot read responses.

mod routes;
mod varz;
mod jsz;
mod subsz;
mod connz;
mod storez;
mod healthz;
mod listing;
mod rows;
mod query;
mod monitor_state;
mod wording;

pub(crate) use monitor_state::MonitorState;
pub(crate) use routes::routes;

#[cfg(test)]
mod tests;
