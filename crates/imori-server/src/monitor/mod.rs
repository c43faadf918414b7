//! Monitoring over HTTP in nats-server's shape: the paths, parameters, names, types and units that its
//! dashboards and `nats-top` read.
//!
//! The monitor runs on a thread of its own and takes nothing from the cells but a look under each
//! connection's lock. A figure that this broker does not have is absent, or 0 where it has none: nothing
//! is made up. There is no JSONP on purpose, and no page of another origin may read the answers.

mod routes;
mod varz;
mod subsz;
mod connz;
mod storez;
mod healthz;
mod listing;
mod rows;
mod query;
mod monitored;
mod wording;

pub(crate) use monitored::{Monitored, Requests, Shown, server_id};
pub(crate) use routes::routes;

#[cfg(test)]
mod tests;
