//! `imori bench`: picks the scenario, runs it, and says what it found.

use std::fs;
use std::io::Write;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};

use crate::interrupt;
use crate::options::{
    BrokerOptions, FanOutOptions, IdleOptions, PubsubOptions, QueueOptions, RpcOptions, SoakOptions,
};
use crate::record::report::Report;
use crate::scenario;

/// Puts load on a broker and checks everything that comes back.
#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    /// What to measure.
    #[command(subcommand)]
    pub scenario: Scenario,
}

/// What to measure.
#[derive(Debug, Clone, Subcommand)]
pub enum Scenario {
    /// Requests and replies: round trips, or pipelined calls, each reply checked.
    Rpc(RpcOptions),
    /// Publishers, queues, consumers with acknowledgement; not with core NATS, which keeps nothing.
    Queue(QueueOptions),
    /// Publishers, subjects, subscribers to each subject, nothing stored.
    Pubsub(PubsubOptions),
    /// One publisher and many subscribers: when the first, the middle and the last has each message.
    FanOut(FanOutOptions),
    /// All of these at once at a moderate rate, for hours.
    Soak(SoakOptions),
    /// Connections that do nothing, for their memory.
    Idle(IdleOptions),
}

impl Scenario {
    /// Runs it; an error says why it could not be run at all.
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

    /// Where its broker is, and where its results go.
    fn broker(&self) -> &BrokerOptions {
        match self {
            Scenario::Rpc(options) => &options.broker,
            Scenario::Queue(options) => &options.broker,
            Scenario::Pubsub(options) => &options.broker,
            Scenario::FanOut(options) => &options.broker,
            Scenario::Soak(options) => &options.broker,
            Scenario::Idle(options) => &options.broker,
        }
    }
}

/// Runs the scenario, prints or writes the report, and returns the exit code of the command.
pub fn run(args: &BenchArgs) -> Result<u8> {
    interrupt::listen()?;
    let report = args.scenario.measure()?;
    publish(&report, args.scenario.broker())?;
    Ok(report.exit_code())
}

fn publish(report: &Report, options: &BrokerOptions) -> Result<()> {
    let mut json = serde_json::to_string_pretty(report)?;
    json.push('\n');
    let text = match options.json.as_deref() {
        Some("-") => json,
        Some(file) => {
            fs::write(file, json)
                .with_context(|| format!("`{file}` cannot be written; name another with `--json`"))?;
            report.to_string()
        }
        None => report.to_string(),
    };
    std::io::stdout().write_all(text.as_bytes()).context("standard output is closed")
}
