//! The load tool's commands for developers: comparisons of brokers in turns, and measurements of the automation.
//!
//! They stand apart from `imori-bench` so that the broker's program, whose users measure one broker, does not link them.

mod command;
mod automation;
mod versus;
mod peers;
mod limits;

pub use automation::options::{ApiUrl, AutomationOptions};
pub use command::{BenchArgs, Task, run};
pub use versus::{
    Beside, Comparison, ExperimentArgs, Failure, GuardArgs, Job, LeftOut, PeerFacts, PeersArgs, ReportArgs,
    Settings, SyncsArgs, Turn, VersusArgs,
};
