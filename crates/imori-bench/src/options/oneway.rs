//! The options of scenarios in which messages go one way: `queue`, `pubsub` and `fan-out`.

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::amount::{Amount, count, duration, size};
use crate::limits::{CALLS_MAX, COMPARISONS_MAX, EXPIRATION_MAX, PUBLISHERS_MAX};
use crate::options::broker::BrokerOptions;
use crate::options::level::KeepOptions;
use crate::options::load::LoadOptions;
use crate::stamp::STAMP_BYTES;

/// Default number of messages of a closed loop.
const MESSAGES: u64 = 200_000;

/// How a consumer acknowledges.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AckMode {
    /// The broker counts a message as settled when it is delivered.
    #[default]
    Auto,
    /// One ACK for all deliveries of one read.
    Client,
    /// An ACK for each delivery.
    ClientIndividual,
}

/// The order in which a consumer acknowledges.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AckOrder {
    /// In the order of the deliveries.
    #[default]
    Arrival,
    /// A random unacknowledged delivery; half of `--prefetch`, or 4, are held back.
    Random,
}

/// The options that one-way scenarios share.
#[derive(Debug, Clone, Args)]
pub struct FlowOptions {
    /// The load's timing and duration.
    #[command(flatten)]
    pub load: LoadOptions,
    /// Messages to measure, all publishers together; by default 200k in a closed loop.
    #[arg(long, value_parser = count, conflicts_with = "time")]
    pub messages: Option<u64>,
    /// Consumer acknowledgement; by default `auto`, and `client-individual` with `--level os` or `disk`.
    #[arg(long, value_enum)]
    pub ack: Option<AckMode>,
    /// Deliveries that may be unacknowledged, `prefetch-count` in STOMP.
    #[arg(long)]
    pub prefetch: Option<u32>,
    /// In a closed loop, messages that may be in flight, all publishers together.
    #[arg(long, value_parser = count, default_value = "10k")]
    pub window: u64,
    /// Ask the broker to confirm each message, and allow each publisher this many unconfirmed messages.
    #[arg(long, value_name = "WINDOW", value_parser = clap::value_parser!(u32).range(1..))]
    pub confirm: Option<u32>,
    /// Name of the queues or topics; a number is appended to it.
    #[arg(long, default_value = "imori-bench")]
    pub destination: String,
    /// Give messages this many numeric properties, and consumers a selector that compares all of them; every message
    /// matches.
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=COMPARISONS_MAX))]
    pub comparisons: u8,
}

impl FlowOptions {
    fn check(&self, publishers: u32, size: usize) -> Result<()> {
        self.load.check_is_said()?;
        self.load.check()?;
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
            self.messages() / u64::from(publishers) < CALLS_MAX,
            "`{}` messages are too many; use at most {CALLS_MAX} for each publisher",
            self.messages()
        );
        Ok(())
    }

    /// How consumers acknowledge.
    pub(crate) fn ack(&self) -> AckMode {
        self.ack.unwrap_or_default()
    }

    /// Number of messages to measure; unused if the run is bounded by time.
    pub(crate) fn messages(&self) -> u64 {
        self.messages.unwrap_or(MESSAGES)
    }

    /// Length of the warm-up.
    pub(crate) fn warmup(&self) -> Amount {
        self.load.warmup(self.measured())
    }

    /// Length of the measurement.
    pub(crate) fn measured(&self) -> Amount {
        self.load.measured(self.messages, MESSAGES)
    }

    /// Describes the load: open or closed loop.
    pub(crate) fn mode(&self) -> String {
        self.load.open_mode().unwrap_or_else(|| format!("CLOSED window {}", self.window))
    }

    /// Maximum number of messages in flight.
    pub(crate) fn in_flight_max(&self) -> u64 {
        match self.load.open_rate() {
            Some(_) => self.load.max_in_flight,
            None => self.window,
        }
    }
}

/// The phases of a queue.
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
    /// Bytes of each body: `1024`, `1KiB` or `1KB`, which is 1000.
    #[arg(long, value_parser = size, default_value = "1024")]
    pub size: usize,
    /// The phases of the queue.
    #[arg(long, value_enum, default_value_t)]
    pub phase: QueuePhase,
    /// The safety and the arguments of the queues.
    #[command(flatten)]
    pub keep: KeepOptions,
    /// The order of acknowledgements, with `--ack client-individual`.
    #[arg(long, value_enum, default_value_t)]
    pub ack_order: AckOrder,
    /// Give messages this many priorities in turns, and declare queues with these priorities; order is then checked
    /// within each.
    #[arg(long, value_parser = clap::value_parser!(u8).range(2..=10))]
    pub priorities: Option<u8>,
    /// The time to live of each message; a missing message that is older counts as expired.
    #[arg(long, value_parser = duration)]
    pub expiration: Option<Duration>,
}

impl QueueOptions {
    /// The flow options with the level's default acknowledgement: durable messages are acknowledged one by one.
    pub(crate) fn acknowledged(&self) -> FlowOptions {
        let usual = self.keep.level.is_durable().then_some(AckMode::ClientIndividual);
        FlowOptions { ack: self.flow.ack.or(usual), ..self.flow.clone() }
    }

    /// Refuses combinations of options that cannot run together.
    pub fn check(&self) -> Result<()> {
        self.flow.check(self.publishers, self.size)?;
        ensure!(self.queues >= 1, "a queue scenario needs a queue; ask for 1 or more");
        ensure!(
            self.publishers >= self.queues && self.consumers >= self.queues,
            "`{}` queues need as many publishers and consumers; raise `--publishers` and `--consumers`",
            self.queues
        );
        if self.phase == QueuePhase::FillDrain {
            ensure!(
                self.flow.load.closed && self.flow.load.time.is_none(),
                "phase `fill-drain` goes as fast as it can and needs a number of messages; use `--closed --messages 1M`"
            );
            ensure!(
                self.broker.threads == 1,
                "phase `fill-drain` has one side at work at a time; use `--threads 1`"
            );
        }
        ensure!(
            self.ack_order == AckOrder::Arrival || self.acknowledged().ack() == AckMode::ClientIndividual,
            "only single acknowledgements have an order; use `--ack client-individual`"
        );
        if let Some(expiration) = self.expiration {
            ensure!(
                !expiration.is_zero() && expiration <= EXPIRATION_MAX,
                "messages cannot live for `{}` ms; use `1ms` to `{}m`",
                expiration.as_millis(),
                EXPIRATION_MAX.as_secs() / 60
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
    /// Subjects, which the publishers use in turns; by default one for each publisher.
    #[arg(long)]
    pub subjects: Option<u32>,
    /// Subscribers of each subject, each on a connection of its own.
    #[arg(long, visible_alias = "consumers", default_value_t = 1)]
    pub subscribers: u32,
    /// Bytes of each body: `1024`, `1KiB` or `1KB`, which is 1000.
    #[arg(long, value_parser = size, default_value = "16")]
    pub size: usize,
}

impl PubsubOptions {
    /// Refuses combinations of options that cannot run together.
    pub fn check(&self) -> Result<()> {
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

    /// Number of subjects.
    pub(crate) fn subjects(&self) -> u32 {
        self.subjects.unwrap_or(self.publishers)
    }
}

/// One publisher, one subject, many subscribers: when the first, the median and the last of them has each message.
#[derive(Debug, Clone, Args)]
pub struct FanOutOptions {
    /// Broker, accounting and output.
    #[command(flatten)]
    pub broker: BrokerOptions,
    /// Messages and acknowledgement.
    #[command(flatten)]
    pub flow: FlowOptions,
    /// Subscribers, each on a connection of its own.
    #[arg(long, visible_alias = "consumers", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub subscribers: u32,
    /// Bytes of each body: `1024`, `1KiB` or `1KB`, which is 1000.
    #[arg(long, value_parser = size, default_value = "16")]
    pub size: usize,
}

impl FanOutOptions {
    /// The options of this run as a `pubsub` with one subject.
    pub(crate) fn as_pubsub(&self) -> PubsubOptions {
        PubsubOptions {
            broker: self.broker.clone(),
            flow: self.flow.clone(),
            publishers: 1,
            subjects: None,
            subscribers: self.subscribers,
            size: self.size,
        }
    }
}
