//! Imori's own admin API: typed requests and answers, described by an OpenAPI document generated from this code.
//!
//! `operations` does the work, for this API and for RabbitMQ's `/api` alike. Each refusal is a `Problem`. To add a
//! path, write a function with `#[utoipa::path]` in the file of its resource, and add a row to the table in `routes`.

#![allow(unused_qualifications, reason = "the macro that describes paths qualifies names in scope")]

mod routes;
mod document;
mod events;
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

pub(crate) use routes::endpoints;
