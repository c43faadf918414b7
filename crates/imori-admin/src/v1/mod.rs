//! Imori's own admin API: typed requests and answers, described by an OpenAPI document.
//!
//! `operations` does the work, for this API and for RabbitMQ's `/api` alike. Each refusal is a `Problem`. To add a
//! path, write a function in the file of its resource, describe it with `utoipa::path`, and name it in the table of
//! `routes` and in `document`. The document derived from there is for tests alone, by the feature `openapi`; the broker
//! serves the published file.

#![cfg_attr(
    feature = "openapi",
    allow(unused_qualifications, reason = "the macro that describes paths qualifies names in scope")
)]

mod routes;
#[cfg(feature = "openapi")]
pub(crate) mod document;
pub(crate) mod events;
mod overview;
mod observation;
mod config;
mod gateway;
mod definitions;
mod users;
mod vhosts;
mod policies;
mod messages;
mod exchanges;
mod streams;
mod queues;
mod connections;
mod links;

pub use routes::endpoints;
