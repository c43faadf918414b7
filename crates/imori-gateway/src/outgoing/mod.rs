//! Requests and connections of scripts to other servers.

pub(crate) mod fetch;
pub(crate) mod hosts;
mod client;

pub(crate) use client::{Versions, client, system_roots, trusting};
pub(crate) use fetch::{Answer, FetchError, FetchOptions, Fetcher, Outgoing};
pub(crate) use hosts::HostList;
