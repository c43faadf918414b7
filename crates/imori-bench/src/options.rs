//! What can be asked for on the command line, each option with its meaning and default.

use std::str::FromStr;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::amount::{Amount, count, duration};
use crate::limits::{CALLS_MAX, PUBLISHERS_MAX, REQUESTERS_MAX};
use crate::stamp::STAMP_BYTES;
use crate::url::Url;

/// A STOMP broker's way of naming what is sent to and subscribed to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    /// Prefixes: `/queue/name`, `/topic/name`.
    #[default]
    Rabbitmq,
    /// Bare addresses, the kind in a header of its own: `destination-type:ANYCAST`.
    Artemis,
}

/// Where the broker is, whom to account, and where the results go.
#[derive(Debug, Clone, Args)]
pub struct BrokerOptions {
    /// The broker: `stomp://user:password@host:port/vhost` or `nats://user:password@host:port`.
    #[arg(long, default_value = "stomp://127.0.0.1:61613")]
    pub url: Url,
    /// How this broker wants queues and topics named, with STOMP.
    #[arg(long, value_enum, default_value_t)]
    pub destination_style: Style,
    /// A process of the broker on this machine; its descendants are counted too. Repeatable.
    #[arg(long)]
    pub pid: Vec<u32>,
    /// File for the result as JSON, `-` for standard output instead of the text.
    #[arg(long, value_name = "FILE")]
    pub json: Option<String>,
    /// Show progress on standard error even if it is not a terminal.
    #[arg(long)]
    pub progress: bool,
    /// Load threads: 1 drives all connections, 2 gives each side a thread.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    pub threads: u8,
}

/// Calls in flight for each requester.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Depth {
    /// So many; 1 is lock-step.
    InFlight(u32),
    /// All: everything is sent before the first reply is read.
    All,
}

impl FromStr for Depth {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Depth> {
        match text.parse() {
            Ok(depth) if depth > 0 => Ok(Depth::InFlight(depth)),
            _ if text == "all" => Ok(Depth::All),
            _ => bail!("`{text}` is no depth; use 1 for lock-step, a number, or `all`"),
        }
    }
}

/// Where replies go.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplyKind {
    /// An inbox of the connection: `/temp-queue/…` in STOMP, `_INBOX.…` in NATS.
    #[default]
    TempQueue,
    /// A named queue for each requester, which it subscribes to; not in NATS.
    Named,
}

/// Requests and replies over one service queue.
#[derive(Debug, Clone, Args)]
pub struct RpcOptions {
    /// Broker, accounting and output.
    #[command(flatten)]
    pub broker: BrokerOptions,
    /// Connections that ask.
    #[arg(long, default_value_t = 1)]
    pub requesters: u32,
    /// Connections that answer.
    #[arg(long, default_value_t = 1)]
    pub responders: u32,
    /// Calls to measure, all requesters together.
    #[arg(long, value_parser = count, default_value = "100k", conflicts_with = "time")]
    pub requests: u64,
    /// Measure for so long instead.
    #[arg(long, value_parser = duration)]
    pub time: Option<Duration>,
    /// Before it: calls or time that do not count. A tenth of the calls, or 2 s, unless said.
    #[arg(long)]
    pub warmup: Option<Amount>,
    /// Bytes of each request and reply.
    #[arg(long, default_value_t = 128)]
    pub size: usize,
    /// Calls in flight for each requester: 1 is lock-step, `all` sends everything and then reads.
    #[arg(long, default_value = "1")]
    pub depth: Depth,
    /// Where replies go.
    #[arg(long, value_enum, default_value_t)]
    pub reply: ReplyKind,
    /// Name of the service: a queue in STOMP, taken as it stands with a leading slash; in NATS a
    /// subject that the responders share as a queue group.
    #[arg(long, default_value = "imori-bench-rpc")]
    pub destination: String,
    /// Give each requester a thread of its own, and the responders another: requests come one by
    /// one then, and not as one read of many replies brings them about.
    #[arg(long, conflicts_with = "threads")]
    pub independent: bool,
    /// Give up a call after this time; with depth `all` no single call is given up.
    #[arg(long, value_parser = duration, default_value = "5s")]
    pub timeout: Duration,
}

impl RpcOptions {
    /// Refuses what cannot be run as asked.
    pub(crate) fn check(&self) -> Result<()> {
        ensure!(
            self.requesters >= 1 && self.responders >= 1,
            "an RPC needs a requester and a responder; ask for 1 or more"
        );
        ensure!(
            self.requesters <= REQUESTERS_MAX,
            "`{}` requesters are too many; use at most {REQUESTERS_MAX}",
            self.requesters
        );
        ensure!(
            self.depth != Depth::All || self.time.is_none(),
            "depth `all` needs a number of requests; use `--requests`"
        );
        ensure!(
            !matches!((self.depth, self.warmup), (Depth::All, Some(Amount::Time(_)))),
            "depth `all` needs a number of requests; use `--warmup 10k`"
        );
        let total = match self.time {
            Some(_) => CALLS_MAX,
            None => self.requests,
        };
        ensure!(
            total / u64::from(self.requesters) <= CALLS_MAX,
            "`{total}` requests are too many; use at most {CALLS_MAX} for each requester"
        );
        let digits = total.saturating_mul(2).max(1).ilog10() as usize + 1;
        ensure!(
            self.size >= digits,
            "a body of `{}` bytes does not hold the numbers of this run; use `--size {digits}` or more",
            self.size
        );
        Ok(())
    }

    /// How long the warm-up is.
    pub(crate) fn warmup(&self) -> Amount {
        self.warmup.unwrap_or(default_warmup(self.measured()))
    }

    /// How long is measured.
    pub(crate) fn measured(&self) -> Amount {
        self.time.map_or(Amount::Count(self.requests), Amount::Time)
    }
}

/// How a consumer acknowledges.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AckMode {
    /// The broker takes delivery for done.
    #[default]
    Auto,
    /// One ACK for all that one read brought.
    Client,
    /// An ACK for each.
    ClientIndividual,
}

/// What one-way scenarios have in common.
#[derive(Debug, Clone, Args)]
pub struct FlowOptions {
    /// Messages to measure, all publishers together.
    #[arg(long, value_parser = count, default_value = "200k", conflicts_with = "time")]
    pub messages: u64,
    /// Measure for so long instead.
    #[arg(long, value_parser = duration)]
    pub time: Option<Duration>,
    /// Before it: messages or time that do not count. A tenth of the messages, or 2 s, unless said.
    #[arg(long)]
    pub warmup: Option<Amount>,
    /// Consumer acknowledgement.
    #[arg(long, value_enum, default_value_t)]
    pub ack: AckMode,
    /// Deliveries that may be unacknowledged, `prefetch-count` in STOMP.
    #[arg(long)]
    pub prefetch: Option<u32>,
    /// Messages that may be on their way, all publishers together.
    #[arg(long, value_parser = count, default_value = "10k")]
    pub window: u64,
    /// Name of the queues or topics; a number is appended to it.
    #[arg(long, default_value = "imori-bench")]
    pub destination: String,
}

impl FlowOptions {
    fn check(&self, publishers: u32, size: usize) -> Result<()> {
        ensure!(
            (1..=PUBLISHERS_MAX).contains(&publishers),
            "`{publishers}` publishers cannot be run; use 1 to {PUBLISHERS_MAX}"
        );
        ensure!(
            size >= STAMP_BYTES,
            "a body of `{size}` bytes does not hold the stamp; use `--size {STAMP_BYTES}` or more"
        );
        ensure!(
            self.window >= u64::from(publishers),
            "a window of `{}` stops a publisher for good; use at least {publishers}",
            self.window
        );
        ensure!(
            self.messages / u64::from(publishers) < CALLS_MAX,
            "`{}` messages are too many; use at most {CALLS_MAX} for each publisher",
            self.messages
        );
        Ok(())
    }

    /// How long the warm-up is.
    pub(crate) fn warmup(&self) -> Amount {
        self.warmup.unwrap_or(default_warmup(self.measured()))
    }

    /// How long is measured.
    pub(crate) fn measured(&self) -> Amount {
        self.time.map_or(Amount::Count(self.messages), Amount::Time)
    }
}

/// What a queue is put through.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueuePhase {
    /// Publish and consume at the same time.
    #[default]
    Steady,
    /// Publish everything, look at the memory, then consume everything.
    FillDrain,
}

/// Publishers, queues, consumers with acknowledgement.
#[derive(Debug, Clone, Args)]
pub struct QueueOptions {
    /// Broker, accounting and output.
    #[command(flatten)]
    pub broker: BrokerOptions,
    /// Messages and acknowledgement.
    #[command(flatten)]
    pub flow: FlowOptions,
    /// Connections that publish; each sends to one queue.
    #[arg(long, default_value_t = 1)]
    pub publishers: u32,
    /// Connections that consume; each reads one queue.
    #[arg(long, default_value_t = 1)]
    pub consumers: u32,
    /// Queues.
    #[arg(long, default_value_t = 1)]
    pub queues: u32,
    /// Bytes of each body.
    #[arg(long, default_value_t = 1024)]
    pub size: usize,
    /// What the queue is put through.
    #[arg(long, value_enum, default_value_t)]
    pub phase: QueuePhase,
}

impl QueueOptions {
    /// Refuses what cannot be run as asked.
    pub(crate) fn check(&self) -> Result<()> {
        self.flow.check(self.publishers, self.size)?;
        ensure!(self.queues >= 1, "a queue scenario needs a queue; ask for 1 or more");
        ensure!(
            self.publishers >= self.queues && self.consumers >= self.queues,
            "`{}` queues need as many publishers and consumers; raise `--publishers` and `--consumers`",
            self.queues
        );
        if self.phase == QueuePhase::FillDrain {
            ensure!(
                self.flow.time.is_none(),
                "phase `fill-drain` needs a number of messages; use `--messages`"
            );
            ensure!(
                self.broker.threads == 1,
                "phase `fill-drain` has one side at work at a time; use `--threads 1`"
            );
        }
        Ok(())
    }
}

/// Publishers, subjects, subscribers to each subject, nothing stored.
#[derive(Debug, Clone, Args)]
pub struct PubsubOptions {
    /// Broker, accounting and output.
    #[command(flatten)]
    pub broker: BrokerOptions,
    /// Messages and acknowledgement.
    #[command(flatten)]
    pub flow: FlowOptions,
    /// Connections that publish.
    #[arg(long, default_value_t = 1)]
    pub publishers: u32,
    /// Subjects, which the publishers take in turns; each has one of its own unless said.
    #[arg(long)]
    pub subjects: Option<u32>,
    /// Subscribers of each subject, each on a connection of its own.
    #[arg(long, visible_alias = "consumers", default_value_t = 1)]
    pub subscribers: u32,
    /// Bytes of each body.
    #[arg(long, default_value_t = 16)]
    pub size: usize,
}

impl PubsubOptions {
    /// Refuses what cannot be run as asked.
    pub(crate) fn check(&self) -> Result<()> {
        ensure!(self.subscribers >= 1, "a subject needs a subscriber; ask for 1 or more");
        ensure!(
            (1..=self.publishers).contains(&self.subjects()),
            "`{}` subjects cannot be filled by {} publishers; use 1 to {}",
            self.subjects(),
            self.publishers,
            self.publishers
        );
        self.flow.check(self.publishers, self.size)
    }

    /// How many subjects there are.
    pub(crate) fn subjects(&self) -> u32 {
        self.subjects.unwrap_or(self.publishers)
    }
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
    /// How long to hold them before the memory is read.
    #[arg(long, value_parser = duration, default_value = "5s")]
    pub hold: Duration,
}

fn default_warmup(measured: Amount) -> Amount {
    match measured {
        Amount::Count(count) => Amount::Count(count / 10),
        Amount::Time(_) => Amount::Time(Duration::from_secs(2)),
    }
}
