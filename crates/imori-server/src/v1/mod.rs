//! The admin API of Imori: typed requests and answers, described by an OpenAPI document that is made of this code.
//!
//! The deeds stand in `operations`, and RabbitMQ's `/api` asks for the same. Each refusal is a `Problem`. A new path is
//! a function with `#[utoipa::path]` in the file of its resource, and a row of the table in `routes`.

#![allow(unused_qualifications, reason = "the macro that describes paths qualifies names in scope")]

mod routes;
mod document;
mod events;
mod overview;
mod config;
mod definitions;
mod users;
mod vhosts;
mod policies;
mod messages;
mod exchanges;
mod queues;
mod connections;
mod links;
mod request;
mod problem;

pub(crate) use problem::word_refusals;
pub(crate) use routes::endpoints;
