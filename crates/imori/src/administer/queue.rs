//! `imori queue` and `imori why`: the queues of a broker.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::message::{Move, Peek, Publish, Retry, Take};
use super::queue_report::evidence;
use crate::admin_client::{AdminOptions, segment};
use crate::arguments::{argument, object};
use crate::output::print_line;

/// Declare, show, purge and delete queues, and read and move their messages.
#[derive(Debug, Args)]
pub(crate) struct Queue {
    #[command(subcommand)]
    command: QueueCommand,
}

#[derive(Debug, Subcommand)]
enum QueueCommand {
    /// List queues with their ready messages, unsettled deliveries and consumers.
    Ls {
        #[command(flatten)]
        asked: AdminOptions,
        /// The queues of this vhost; without it, of all vhosts.
        #[arg(long, value_name = "NAME")]
        vhost: Option<String>,
        /// Queues whose names contain this text.
        part: Option<String>,
    },
    /// Show one queue: its messages, rates, consumers with their credit, each setting in effect with its source, and why
    /// it grows or stands still.
    Show(Named),
    /// Declare a queue; an existing one must have the same settings.
    Declare {
        #[command(flatten)]
        queue: Named,
        /// Arguments, such as `x-max-length=1000` or `x-dead-letter-exchange=failed`.
        #[arg(value_name = "KEY=VALUE", value_parser = argument)]
        arguments: Vec<(String, Value)>,
        /// The queue does not survive a restart of the broker.
        #[arg(long)]
        transient: bool,
        /// The queue is deleted with its last consumer.
        #[arg(long)]
        auto_delete: bool,
    },
    /// Drop the ready messages of a queue; unsettled deliveries stay.
    Purge {
        #[command(flatten)]
        queue: Named,
        /// Only report how many messages would be dropped.
        #[arg(long)]
        dry_run: bool,
    },
    Peek(Peek),
    Take(Take),
    Move(Move),
    Retry(Retry),
    Publish(Publish),
    /// Delete a queue with its messages.
    Delete {
        #[command(flatten)]
        queue: Named,
        /// Only if the queue has no consumer.
        #[arg(long)]
        if_unused: bool,
        /// Only if the queue has no ready messages.
        #[arg(long)]
        if_empty: bool,
        /// Only report how many messages would be dropped.
        #[arg(long)]
        dry_run: bool,
    },
}

/// One queue.
#[derive(Debug, Args)]
struct Named {
    #[command(flatten)]
    asked: AdminOptions,
    /// The vhost of the queue.
    #[arg(long, value_name = "NAME", default_value = "/")]
    vhost: String,
    /// The name of the queue.
    name: String,
}

impl Named {
    fn path(&self) -> String {
        format!("/api/queues/{}/{}", segment(&self.vhost), segment(&self.name))
    }

    fn what(&self) -> String {
        format!("queue `{}` in vhost `{}`", self.name, self.vhost)
    }
}

/// Say in one paragraph why a queue grows or stands still.
#[derive(Debug, Args)]
pub(crate) struct Why {
    #[command(flatten)]
    queue: Named,
}

impl Why {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let Named { asked, vhost, name } = &self.queue;
        let evidence = evidence(&asked.admin()?, vhost, name, &self.queue.what())?;
        if asked.is_json() {
            return print_line(&serde_json::to_string_pretty(&json!({"why": evidence.diagnosis()}))?);
        }
        print_line(&evidence.diagnosis())
    }
}

impl Queue {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            QueueCommand::Ls { asked, vhost, part } => {
                let vhost = vhost.as_deref();
                let place = vhost.map(|vhost| format!("/{}", segment(vhost))).unwrap_or_default();
                let part = part.map(|part| format!("?name={}", segment(&part))).unwrap_or_default();
                let what = format!("vhost `{}`", vhost.unwrap_or_default());
                let rows = asked.admin()?.get(&format!("/api/queues{place}{part}"), &what)?;
                let columns = [
                    ("VHOST", "vhost"),
                    ("NAME", "name"),
                    ("READY", "messages_ready"),
                    ("UNSETTLED", "messages_unacknowledged"),
                    ("CONSUMERS", "consumers"),
                    ("DURABLE", "durable"),
                    ("TYPE", "type"),
                ];
                asked.print_rows(&rows, &columns)
            }
            QueueCommand::Show(queue) => {
                let admin = queue.asked.admin()?;
                if queue.asked.is_json() {
                    return queue.asked.print_one(&admin.get(&queue.path(), &queue.what())?);
                }
                evidence(&admin, &queue.vhost, &queue.name, &queue.what())?.print(&queue.what())
            }
            QueueCommand::Declare { queue, arguments, transient, auto_delete } => {
                let path = format!("/v1/queues/{}/{}", segment(&queue.vhost), segment(&queue.name));
                let body = json!({
                    "arguments": object(arguments)?,
                    "auto_delete": auto_delete,
                    "durable": !transient,
                });
                queue.asked.admin()?.put(&path, &queue.what(), &body)?;
                print_line(&format!("{} is declared", queue.what()))
            }
            QueueCommand::Peek(peek) => peek.run(),
            QueueCommand::Take(take) => take.run(),
            QueueCommand::Move(moved) => moved.run(),
            QueueCommand::Retry(retry) => retry.run(),
            QueueCommand::Publish(publish) => publish.run(),
            QueueCommand::Purge { queue, dry_run: true }
            | QueueCommand::Delete { queue, dry_run: true, .. } => {
                let shown = queue.asked.admin()?.get(&queue.path(), &queue.what())?;
                print_line(&format!("{} messages of {} would go", shown["messages_ready"], queue.what()))
            }
            QueueCommand::Purge { queue, dry_run: false } => {
                let path = format!("{}/contents", queue.path());
                queue.asked.admin()?.delete(&path, &queue.what(), None)?;
                print_line(&format!("{} is purged", queue.what()))
            }
            QueueCommand::Delete { queue, if_unused, if_empty, dry_run: false } => {
                let path = format!("{}?if-unused={if_unused}&if-empty={if_empty}", queue.path());
                queue.asked.admin()?.delete(&path, &queue.what(), None)?;
                print_line(&format!("{} is deleted", queue.what()))
            }
        }
    }
}
