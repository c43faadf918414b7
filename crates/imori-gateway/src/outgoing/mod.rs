//! Requests and connections of scripts to other servers.

mod fetch;
mod hosts;

pub(crate) use fetch::{Answer, FetchError, FetchOptions, Fetcher, Outgoing};
pub(crate) use hosts::HostList;
