//! `imori bench`: picks the scenario, runs it, and says what it found.

use std::fs;
use std::io::Write;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};

use crate::options::{BrokerOptions, IdleOptions, PubsubOptions, QueueOptions, RpcOptions};
use crate::record::report::Report;
use crate::scenario;
use crate::versus::{self, ExperimentArgs, GuardArgs, PeersArgs, VersusArgs};

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
    #[command(visible_alias = "fan-out")]
    Pubsub(PubsubOptions),
    /// Connections that do nothing, for their memory.
    Idle(IdleOptions),
    /// The same scenario against several peers in turns, with medians and quotients.
    ///
    /// Peers are imori, nats-server, rabbitmq, artemis, relay, zeromq and grpc, each with its protocol
    /// if it speaks several: imori:nats; the path of another program imori; the URL of what runs
    /// already; and any other name with --peer-url. Options that are not listed here are the scenario's.
    Versus(VersusArgs),
    /// An experiment of RPCBench, for Imori and those it was compared with.
    Experiment(ExperimentArgs),
    /// What is on this machine to compare with; or one of them, run by hand.
    Peers(PeersArgs),
    /// What stands between a comparison and a broker.
    #[command(hide = true)]
    Guard(GuardArgs),
}

/// Runs the scenario, prints or writes the report, and returns the exit code of the command.
pub fn run(args: &BenchArgs) -> Result<u8> {
    let (report, options) = match &args.scenario {
        Scenario::Rpc(options) => (scenario::run_rpc(options)?, &options.broker),
        Scenario::Queue(options) => (scenario::run_queue(options)?, &options.broker),
        Scenario::Pubsub(options) => (scenario::run_pubsub(options)?, &options.broker),
        Scenario::Idle(options) => (scenario::run_idle(options)?, &options.broker),
        Scenario::Versus(args) => return versus::run_versus(args),
        Scenario::Experiment(args) => return versus::run_experiment(args),
        Scenario::Peers(args) => return versus::run_peers(args).map(|()| 0),
        Scenario::Guard(args) => return versus::run_guard(args).map(|()| 0),
    };
    publish(&report, options)?;
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
