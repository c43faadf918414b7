//! `imori queue peek`, `take`, `move`, `retry` and `publish`: work on the messages of a queue.

use anyhow::bail;
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use crate::admin_client::{AdminOptions, segment, text};
use crate::output::print_line;

/// Selects the queue for a command on its messages.
#[derive(Debug, Args)]
struct Of {
    #[command(flatten)]
    asked: AdminOptions,
    /// The vhost of the queue.
    #[arg(long, value_name = "NAME", default_value = "/")]
    vhost: String,
    /// The name of the queue.
    name: String,
}

impl Of {
    fn path(&self, deed: &str) -> String {
        format!("/v1/queues/{}/{}/{deed}", segment(&self.vhost), segment(&self.name))
    }

    fn what(&self) -> String {
        format!("queue `{}` in vhost `{}`", self.name, self.vhost)
    }

    /// Prints messages as JSON, or for people as a line of properties with the payload below.
    fn print(&self, answer: &Value) -> anyhow::Result<()> {
        if self.asked.is_json() {
            return print_line(&serde_json::to_string_pretty(answer)?);
        }
        for message in answer["messages"].as_array().into_iter().flatten() {
            let field = |name: &str| text(&message[name]);
            let again = if message["redelivered"] == true { ", redelivered" } else { "" };
            let died = message["deaths"].as_array().into_iter().flatten();
            let died = died.map(|death| format!(", {} in {}", text(&death["reason"]), text(&death["queue"])));
            let (exchange, key, bytes) = (field("exchange"), field("routing_key"), field("payload_bytes"));
            let died = died.collect::<String>();
            print_line(&format!(
                "#{} exchange `{exchange}` routing key `{key}` {bytes} bytes{again}{died}",
                field("position")
            ))?;
            print_line(&format!("  {}", field("payload")))?;
        }
        Ok(())
    }
}

/// Read ready messages, in memory or on disk, without changing anything.
#[derive(Debug, Args)]
pub(super) struct Peek {
    #[command(flatten)]
    of: Of,
    /// How many messages.
    #[arg(long, value_name = "N", default_value_t = 10)]
    count: usize,
    /// Number of messages to skip.
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: usize,
}

impl Peek {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let path = format!("{}?offset={}&count={}", self.of.path("messages"), self.offset, self.count);
        self.of.print(&self.of.asked.admin()?.get(&path, &self.of.what())?)
    }
}

/// The outcome of messages that are taken.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Outcome {
    /// The messages are settled and leave the queue.
    Accept,
    /// The messages are dead-lettered, as the queue's settings say.
    Reject,
    /// The messages return to their positions in the queue.
    Release,
}

/// Take messages out of a queue.
#[derive(Debug, Args)]
pub(super) struct Take {
    #[command(flatten)]
    of: Of,
    /// How many messages.
    #[arg(long, value_name = "N", default_value_t = 1)]
    count: usize,
    /// The outcome of all messages.
    #[arg(long, value_name = "OUTCOME", default_value = "accept")]
    outcome: Outcome,
}

impl Take {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let outcome = match self.outcome {
            Outcome::Accept => "accept",
            Outcome::Reject => "reject",
            Outcome::Release => "release",
        };
        let body = json!({"count": self.count, "outcome": outcome});
        self.of.print(&self.of.asked.admin()?.post(&self.of.path("take"), &self.of.what(), &body)?)
    }
}

/// Selects the messages to move, or only counts them.
#[derive(Debug, Args)]
struct Moving {
    /// Maximum number of messages, from the first on; without it, all that are ready now.
    #[arg(long, value_name = "N")]
    count: Option<usize>,
    /// Only report what would happen.
    #[arg(long)]
    dry_run: bool,
}

impl Moving {
    fn run(&self, of: &Of, deed: &str, mut body: Map<String, Value>) -> anyhow::Result<()> {
        body.insert(String::from("count"), json!(self.count));
        body.insert(String::from("dry_run"), json!(self.dry_run));
        let answer = of.asked.admin()?.post(&of.path(deed), &of.what(), &Value::Object(body))?;
        if of.asked.is_json() {
            return print_line(&serde_json::to_string_pretty(&answer)?);
        }
        let verb = if self.dry_run { "would move" } else { "moved" };
        print_line(&format!("{} {verb}, {} wait in {}", answer["moved"], answer["left"], of.what()))?;
        for target in answer["targets"].as_array().into_iter().flatten() {
            let (exchange, key) = (text(&target["exchange"]), text(&target["routing_key"]));
            print_line(&format!("  {} to exchange `{exchange}` with `{key}`", target["messages"]))?;
        }
        if answer["skipped"].as_u64().is_some_and(|skipped| skipped > 0) {
            print_line(&format!("  {} stay, as they never died in a queue", answer["skipped"]))?;
        }
        match answer["stopped"].as_str() {
            Some(reason) => bail!("the rest stays where it is: {reason}"),
            None => Ok(()),
        }
    }
}

/// Move ready messages to another queue or an exchange, in order; none is lost, even if the broker or a client ends
/// meanwhile.
#[derive(Debug, Args)]
pub(super) struct Move {
    #[command(flatten)]
    of: Of,
    /// The queue to move to.
    #[arg(long, value_name = "QUEUE", conflicts_with_all = ["to_exchange", "routing_key"], required_unless_present = "to_exchange")]
    to: Option<String>,
    /// The exchange to move to.
    #[arg(long, value_name = "EXCHANGE")]
    to_exchange: Option<String>,
    /// The routing key of the moved messages; without it each message keeps its own.
    #[arg(long, value_name = "KEY", requires = "to_exchange")]
    routing_key: Option<String>,
    #[command(flatten)]
    moving: Moving,
}

impl Move {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let exchange = self.to_exchange.clone().unwrap_or_default();
        let key = self.to.as_ref().or(self.routing_key.as_ref());
        let body = [("exchange", json!(exchange)), ("routing_key", json!(key))];
        self.moving.run(
            &self.of,
            "move",
            body.map(|(name, value)| (name.to_owned(), value)).into_iter().collect(),
        )
    }
}

/// Move dead letters back to the queues in which they died.
#[derive(Debug, Args)]
pub(super) struct Retry {
    #[command(flatten)]
    of: Of,
    #[command(flatten)]
    moving: Moving,
}

impl Retry {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        self.moving.run(&self.of, "retry", Map::new())
    }
}

/// Publish a message to a queue; `imori pub` does the same as a client.
#[derive(Debug, Args)]
pub(super) struct Publish {
    #[command(flatten)]
    of: Of,
    /// The body.
    body: String,
    /// The message survives a restart of the broker, in a durable queue.
    #[arg(long)]
    persistent: bool,
}

impl Publish {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let mode = if self.persistent { 2 } else { 1 };
        let body = json!({"payload": self.body, "properties": {"delivery_mode": mode}});
        self.of.asked.admin()?.post(&self.of.path("publish"), &self.of.what(), &body)?;
        print_line(&format!("published to {}", self.of.what()))
    }
}
