//! Tests of the published reference of the admin APIs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets the unexpected has failed")]

mod openapi;
mod reference;
