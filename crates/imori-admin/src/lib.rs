//! Administration and monitoring of a broker over HTTP: two admin APIs, metrics, and the monitor.

mod services;
mod admin;
mod v1;
mod console;
mod requests;
mod live;
mod archives;
mod operations;
mod objects;
mod monitor;
mod metrics;
mod health;
mod http;
mod lock;
mod milliseconds;
mod limits;

pub use services::services;

/// What the tests of this crate reach beside its public items.
#[doc(hidden)]
pub mod for_tests {
    pub use crate::admin::routes::endpoints as api_endpoints;
    pub use crate::http::{Endpoint, Login, Right};
    #[cfg(feature = "openapi")]
    pub use crate::v1::document::description;
    pub use crate::v1::endpoints as v1_endpoints;
}
