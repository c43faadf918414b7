//! Routes files, scripts and their library, and what carries requests, without a broker's network.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets the unexpected has failed")]

mod scripts;
mod library;
mod methods;
mod request_context;
mod facts;
mod feeds;
mod fetch;
mod hosts;
mod load;
mod proxy;
mod regexp;
mod requests;
mod script_faults;
mod secrets;
mod shared_state;
mod template;
mod timer;
mod variables;
