//! Load and truth: a client of any broker.
//!
//! It drives a broker by URL, checks every reply and every delivery, and says what they cost
//! the broker. It never links the server, so a fault of the broker is not repeated by its judge.

mod command;
mod rpc;
mod oneway;
mod idle;
mod requester;
mod responder;
mod publisher;
mod consumer;
mod flow;
mod phase;
mod event_loop;
mod session;
mod stomp;
mod nats;
mod driver;
mod render;
mod report;
mod cost;
mod options;
mod template;
mod stamp;
mod calls;
mod seen;
mod ledger;
mod latency;
mod process;
mod url;
mod amount;
mod limits;

pub use amount::Amount;
pub use command::{BenchArgs, Scenario, run};
pub use idle::run as run_idle;
pub use latency::{Latency, LatencyKind};
pub use ledger::Ledger;
pub use oneway::{run_pubsub, run_queue};
pub use options::{
    AckMode, BrokerOptions, Depth, IdleOptions, PubsubOptions, QueueOptions, QueuePhase, ReplyKind,
    RpcOptions, Style,
};
pub use report::{Broker, Client, Count, Outcome, Report};
pub use rpc::run as run_rpc;
pub use url::{Scheme, Url};
