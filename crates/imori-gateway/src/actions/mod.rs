//! What answers the requests of a route without a script.

mod act;
mod publish;
mod rpc;
mod stream;
mod websocket;
mod pull;
pub(crate) mod proxy;
mod tunnel;
mod unstalled;
mod progress;
mod files;
mod fixed;
mod caller;
mod message;

pub(crate) use act::act;
