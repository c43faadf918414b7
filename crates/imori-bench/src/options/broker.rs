//! Where the broker is, which processes to account to it, and where the results go.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::amount::duration;
use crate::options::outputs::Outputs;
use crate::trust::Trust;
use crate::url::Url;

/// A STOMP broker's way of naming what is sent to and subscribed to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    /// Prefixes: `/queue/name`, `/topic/name`.
    #[default]
    Rabbitmq,
    /// Bare addresses, with the kind in a separate header: `destination-type:ANYCAST`.
    Artemis,
}

/// Where the broker is, whom to account, and where the results go.
#[derive(Debug, Clone, Args)]
pub struct BrokerOptions {
    /// The broker: `stomp://user:password@host:port/vhost`, `nats://user:password@host:port` or
    /// `amqp://user:password@host:port/vhost`, or `amqp10://` likewise for AMQP 1.0; with TLS `stomps://`, `tls://`,
    /// `amqps://` and `amqp10s://`.
    #[arg(long, default_value = "stomp://127.0.0.1:61613")]
    pub url: Url,
    /// The trust of connections with TLS.
    #[command(flatten)]
    pub trust: Trust,
    /// The broker's syntax for names of queues and topics in STOMP.
    #[arg(long, value_enum, default_value_t)]
    pub destination_style: Style,
    /// A process of the broker on this machine; its descendants are counted too. Repeatable; by default the process
    /// that listens at the port of a local URL.
    #[arg(long)]
    pub pid: Vec<u32>,
    /// Where the results go.
    #[command(flatten)]
    pub outputs: Outputs,
    /// Folder on the broker's file system, in which the disk canary writes and syncs 4 KiB ten times a second; by
    /// default the broker's folder if it is found, otherwise the folder for temporary files.
    #[arg(long, value_name = "FOLDER")]
    pub disk_canary: Option<PathBuf>,
    /// A TCP echo service on the broker's host, for the network canary; by default an echo service of the tool, or the
    /// time that the host takes to answer.
    #[arg(long, value_name = "ADDRESS")]
    pub echo: Option<SocketAddr>,
    /// Show progress on standard error even if it is not a terminal.
    #[arg(long)]
    pub progress: bool,
    /// Reopen a connection when it breaks, instead of ending the run; messages that may have been in flight on it count
    /// as unknown.
    #[arg(long)]
    pub reconnect: bool,
    /// Load threads: 1 drives all connections, 2 gives each side a thread.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    pub threads: u8,
}

/// Connections that do nothing, for what they cost.
#[derive(Debug, Clone, Args)]
pub struct IdleOptions {
    /// Broker, accounting and output.
    #[command(flatten)]
    pub broker: BrokerOptions,
    /// Connections to open.
    #[arg(long, default_value_t = 10_000)]
    pub connections: u32,
    /// Time to hold the connections before the memory is read.
    #[arg(long, value_parser = duration, default_value = "5s")]
    pub hold: Duration,
}

#[cfg(test)]
impl BrokerOptions {
    /// The defaults with this URL.
    pub(crate) fn at(url: &str) -> BrokerOptions {
        #[derive(clap::Parser)]
        struct Command {
            #[command(flatten)]
            broker: BrokerOptions,
        }
        <Command as clap::Parser>::parse_from(["bench", "--url", url]).broker
    }
}
