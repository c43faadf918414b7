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
