//! The options of the command line, each with its meaning and default.

mod soak;
mod oneway;
mod rpc;
pub(crate) mod load;
mod slo;
pub(crate) mod level;
mod broker;
mod outputs;

pub use broker::{BrokerOptions, IdleOptions, Style};
pub use level::{KeepOptions, Level, QueueArgument};
pub use load::{Arrival, LoadOptions, Rate};
pub use oneway::{AckMode, AckOrder, FanOutOptions, FlowOptions, PubsubOptions, QueueOptions, QueuePhase};
pub use outputs::Outputs;
pub use rpc::{Depth, ReplyKind, RpcOptions};
pub use slo::{Objective, Slo};
pub use soak::SoakOptions;
