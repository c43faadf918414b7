//! `imori bench`: picks the scenario, runs it, and reports the result.

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::interrupt;
use crate::options::{
    FanOutOptions, IdleOptions, Outputs, PubsubOptions, QueueOptions, RpcOptions, SoakOptions,
};
use crate::record::report::Report;
use crate::report::compare::{CompareOptions, compare};
use crate::report::runs::{Run, Runs};
use crate::scenario;
use crate::trust::Trust;

/// Puts load on a broker and checks everything that comes back.
#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    /// The task of `imori bench`.
    #[command(subcommand)]
    pub task: Task,
}

/// The task of `imori bench`.
#[derive(Debug, Clone, Subcommand)]
pub enum Task {
    /// Measure one broker.
    #[command(flatten)]
    Scenario(Box<Scenario>),
    /// Compare one result with another, and say whether it got worse.
    Compare(CompareOptions),
}

/// The scenario to measure.
#[derive(Debug, Clone, Subcommand)]
pub enum Scenario {
    /// Requests and replies: round trips, or pipelined calls, each reply checked.
    Rpc(RpcOptions),
    /// Publishers, queues, consumers with acknowledgement; not with core NATS, which stores nothing.
    Queue(QueueOptions),
    /// Publishers, subjects, subscribers to each subject, nothing stored.
    Pubsub(PubsubOptions),
    /// One publisher and many subscribers: when the first, the median and the last subscriber has each message.
    FanOut(FanOutOptions),
    /// All of the above at once at a moderate rate, for hours.
    Soak(SoakOptions),
    /// Idle connections, to measure their memory.
    Idle(IdleOptions),
}

impl Scenario {
    /// Runs the scenario; an error means that it could not be run at all.
    pub fn measure(&self) -> Result<Report> {
        match self {
            Scenario::Rpc(options) => scenario::measure(options),
            Scenario::Queue(options) => scenario::measure(options),
            Scenario::Pubsub(options) => scenario::measure(options),
            Scenario::FanOut(options) => scenario::measure(options),
            Scenario::Soak(options) => scenario::measure(options),
            Scenario::Idle(options) => scenario::run_idle(options),
        }
    }

    /// TLS settings of the scenario's connections.
    fn trust(&self) -> &Trust {
        match self {
            Scenario::Rpc(options) => &options.broker.trust,
            Scenario::Queue(options) => &options.broker.trust,
            Scenario::Pubsub(options) => &options.broker.trust,
            Scenario::FanOut(options) => &options.broker.trust,
            Scenario::Soak(options) => &options.broker.trust,
            Scenario::Idle(options) => &options.broker.trust,
        }
    }

    /// Files that the results are written to.
    fn outputs(&self) -> &Outputs {
        match self {
            Scenario::Rpc(options) => &options.broker.outputs,
            Scenario::Queue(options) => &options.broker.outputs,
            Scenario::Pubsub(options) => &options.broker.outputs,
            Scenario::FanOut(options) => &options.broker.outputs,
            Scenario::Soak(options) => &options.broker.outputs,
            Scenario::Idle(options) => &options.broker.outputs,
        }
    }
}

impl Task {
    /// Runs the task, prints and writes the results, and returns the exit code of the command.
    ///
    /// # Errors
    ///
    /// The task could not be run at all.
    pub fn run(&self) -> Result<u8> {
        match self {
            Task::Scenario(scenario) => {
                interrupt::listen()?;
                scenario.trust().put_in_force();
                let report = scenario.measure()?;
                let code = report.exit_code();
                let runs = Runs::new(vec![Run { side: String::new(), report }]);
                scenario.outputs().publish("imori bench", &runs)?;
                Ok(code)
            }
            Task::Compare(options) => compare(options),
        }
    }
}
