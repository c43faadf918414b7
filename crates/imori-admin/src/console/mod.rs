//! The broker's side of the web console: its files, and the endpoints made for it. The console uses the paths of `/v1`
//! for everything else.
//!
//! A page of the console is no more than a program: it gets what its user's login allows, and nothing is decided for it
//! here.

#![cfg_attr(
    feature = "openapi",
    allow(unused_qualifications, reason = "the macro that describes paths qualifies names in scope")
)]

pub(crate) mod session;
pub(crate) mod feed;
pub(crate) mod history;
pub(crate) mod pages;
pub(crate) mod files;

pub(crate) use pages::endpoints;
