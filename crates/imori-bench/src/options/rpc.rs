//! The options of scenario `rpc`.

use std::str::FromStr;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::amount::{Amount, count, duration};
use crate::limits::{CALLS_MAX, REQUESTERS_MAX};
use crate::options::broker::BrokerOptions;
use crate::options::load::LoadOptions;

/// Default number of calls of a closed loop.
const REQUESTS: u64 = 100_000;

/// Default name of the service.
const SERVICE: &str = "imori-bench-rpc";

/// Calls in flight for each requester.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Depth {
    /// This many; 1 is lock-step.
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
    /// A named queue for each requester, which subscribes to it; not in NATS.
    Named,
}

/// Requests and replies over one service queue.
#[derive(Debug, Clone, Args)]
pub struct RpcOptions {
    /// Broker, accounting and output.
    #[command(flatten)]
    pub broker: BrokerOptions,
    /// Connections that send requests.
    #[arg(long, default_value_t = 1)]
    pub requesters: u32,
    /// Connections that answer; not opened for a peer without a broker, which answers itself.
    #[arg(long, default_value_t = 1)]
    pub responders: u32,
    /// How load is made and how long; without `--rate` it is a closed loop.
    #[command(flatten)]
    pub load: LoadOptions,
    /// Calls to measure, all requesters together; by default 100k in a closed loop.
    #[arg(long, value_parser = count, conflicts_with = "time")]
    pub requests: Option<u64>,
    /// Bytes of each request and reply.
    #[arg(long, default_value_t = 128)]
    pub size: usize,
    /// Calls in flight for each requester: 1 is lock-step, `all` sends everything and then reads. By default 1 in a
    /// closed loop, and with `--rate` all calls that are due.
    #[arg(long)]
    pub depth: Option<Depth>,
    /// Where replies go.
    #[arg(long, value_enum, default_value_t)]
    pub reply: ReplyKind,
    /// Name of the service: a queue in STOMP, used unchanged if it has a leading slash; in NATS a subject that the
    /// responders share as a queue group.
    #[arg(long, default_value = SERVICE)]
    pub destination: String,
    /// Give each requester its own thread, and the responders another: requests then arrive one by one, and not in
    /// groups after one read of many replies.
    #[arg(long, conflicts_with = "threads")]
    pub independent: bool,
    /// Time-out of a call; with depth `all` no single call times out.
    #[arg(long, value_parser = duration, default_value = "5s")]
    pub timeout: Duration,
}

impl RpcOptions {
    /// Refuses combinations of options that cannot be run.
    pub fn check(&self) -> Result<()> {
        self.load.check()?;
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
            self.depth() != Depth::All || (self.load.time.is_none() && self.load.rate.is_none()),
            "depth `all` needs a number of requests and no rate; use `--requests`"
        );
        ensure!(
            !matches!((self.depth(), self.load.warmup), (Depth::All, Some(Amount::Time(_)))),
            "depth `all` needs a number of requests; use `--warmup 10k`"
        );
        let total = match self.measured() {
            Amount::Time(_) => CALLS_MAX,
            Amount::Count(count) => count,
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

    /// Calls in flight for each requester.
    pub(crate) fn depth(&self) -> Depth {
        let usual = match self.load.open_rate() {
            Some(_) => u32::try_from(self.load.max_in_flight).unwrap_or(u32::MAX),
            None => 1,
        };
        self.depth.unwrap_or(Depth::InFlight(usual))
    }

    /// The service, unless it is the default one.
    pub(crate) fn named_service(&self) -> Option<&str> {
        Some(self.destination.as_str()).filter(|name| *name != SERVICE)
    }

    /// Length of the warm-up.
    pub(crate) fn warmup(&self) -> Amount {
        self.load.warmup(self.measured())
    }

    /// Length of the measurement.
    pub(crate) fn measured(&self) -> Amount {
        self.load.measured(self.requests, REQUESTS)
    }
}
