//! Comparisons of several peers under the same load, in turns: one command, one report.

mod again;
mod experiment;
mod chart;
mod hand;
mod syncs;
mod counting;
mod compare;
mod arguments;
mod list;
mod series;
pub(crate) mod turns;
mod table;
mod summary;
pub(crate) mod text;
mod figures;
mod comparison;
#[cfg(test)]
mod sample;

use anyhow::Result;
use clap::Subcommand;
use imori_bench::interrupt;

use crate::peers;

pub use crate::peers::guard::GuardArgs;
pub use again::ReportArgs;
pub use arguments::VersusArgs;
pub use comparison::{Comparison, Failure, Job, LeftOut, PeerFacts, Settings, Turn};
pub use experiment::ExperimentArgs;
pub use hand::PeersArgs;
pub use syncs::SyncsArgs;

/// The commands that compare several brokers.
#[derive(Debug, Clone, Subcommand)]
pub enum Beside {
    /// Run one scenario, or a list of them, against several peers in turns, with medians and ratios.
    ///
    /// Peers are imori, nats-server, rabbitmq, rabbitmq-quorum, artemis, broker-j, activemq and relay, and for
    /// imori-brokerless zeromq and grpc, each with its protocol if it speaks several: imori:nats; the path of another
    /// program imori; the URL of a broker that runs already; and any other name with --peer-url. NAME=PEER shows the
    /// peer under another name: before=old/imori. Options that are not listed here are the scenario's.
    ///
    /// Lists are brokers, amqp, amqp10, builds and brokerless, or a file whose lines have a name, a protocol (stomp,
    /// nats, amqp, amqp10 or own), and a scenario with its options. With a list, an option given here replaces the same
    /// option of each line that has it.
    Versus(VersusArgs),
    /// Print saved results again, or write them as a page.
    Report(ReportArgs),
    /// Repeat a published experiment with Imori and the brokers that it compared.
    Experiment(ExperimentArgs),
    /// List the peers on this machine, or run one of them by hand.
    Peers(PeersArgs),
    /// Count how often each broker syncs to disk, under the same durable load.
    Syncs(SyncsArgs),
    /// Guards a broker: stops it when the comparison ends.
    #[command(hide = true)]
    Guard(GuardArgs),
}

impl Beside {
    /// Runs the command and returns its exit code.
    pub(crate) fn run(&self) -> Result<u8> {
        match self {
            Beside::Versus(args) => {
                interrupt::listen()?;
                compare::run(args)
            }
            Beside::Report(args) => again::run(args).map(|()| 0),
            Beside::Experiment(args) => {
                interrupt::listen()?;
                experiment::run(args)
            }
            Beside::Syncs(args) => {
                interrupt::listen()?;
                syncs::run(args)
            }
            Beside::Peers(args) => hand::run(args).map(|()| 0),
            Beside::Guard(args) => peers::guard::run(args).map(|()| 0),
        }
    }
}
