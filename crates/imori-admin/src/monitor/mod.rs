//! Monitoring over HTTP, compatible with the paths, parameters, names, types and units of nats-server that dashboards
//! and `nats-top` read.
//!
//! The monitor has its own thread and takes from cells only each connection's lock for a moment. Values that this
//! broker does not have are absent, or 0 if there are none. JSONP is left out on purpose, and pages of other origins
//! cannot read responses.

mod routes;
mod varz;
pub(crate) mod jsz;
pub(crate) mod subsz;
pub(crate) mod connz;
mod storez;
pub(crate) mod healthz;
pub(crate) mod listing;
pub(crate) mod rows;
pub(crate) mod query;
pub(crate) mod monitor_state;
pub(crate) mod wording;

pub(crate) use monitor_state::MonitorState;
pub(crate) use routes::routes;
