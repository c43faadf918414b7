//! Clients on sockets: what is known of them, how many may connect, the hosts they may name, and how often refusals are
//! logged.

pub(crate) mod sums;
pub(crate) mod client;
pub(crate) mod publisher_wait;
pub(crate) mod admission;
pub(crate) mod log_limit;
pub(crate) mod stranger;
pub(crate) mod proxy;
pub(crate) mod host_names;
