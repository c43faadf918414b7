//! `imori session` and `imori consumer`: the sessions of connections and the consumers of queues.

use clap::{Args, Subcommand};

use crate::admin_client::{AdminOptions, segment};
use crate::output::print_line;

/// Enough pages for all sessions or consumers of any broker.
const PAGES_MAX: usize = 10_000;

/// Show sessions: the channels of AMQP clients.
#[derive(Debug, Args)]
pub(crate) struct Session {
    #[command(subcommand)]
    command: SessionCommand,
}

#[derive(Debug, Subcommand)]
enum SessionCommand {
    /// List sessions with their unsettled deliveries.
    Ls {
        #[command(flatten)]
        asked: AdminOptions,
    },
}

impl Session {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let SessionCommand::Ls { asked } = self.command;
        let rows = asked.admin()?.all("/v1/sessions", "list of sessions", PAGES_MAX)?;
        let columns = [
            ("CONNECTION", "connection"),
            ("NUMBER", "number"),
            ("USER", "user"),
            ("VHOST", "vhost"),
            ("CONSUMERS", "consumers"),
            ("UNSETTLED", "unsettled"),
            ("DELIVERED", "delivered"),
        ];
        asked.print_rows(&rows, &columns)
    }
}

/// Show and end consumers of queues.
#[derive(Debug, Args)]
pub(crate) struct Consumer {
    #[command(subcommand)]
    command: ConsumerCommand,
}

#[derive(Debug, Subcommand)]
enum ConsumerCommand {
    /// List consumers.
    Ls {
        #[command(flatten)]
        asked: AdminOptions,
        /// Consumers of queues whose names contain this text.
        queue: Option<String>,
    },
    /// End a consumer; its client is told, or loses its connection if its protocol has no such message.
    Close {
        #[command(flatten)]
        asked: AdminOptions,
        /// The connection, as the list shows it.
        connection: String,
        /// The id of the consumer, as the list shows it.
        id: String,
        /// The reason, for the log.
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,
    },
}

impl Consumer {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            ConsumerCommand::Ls { asked, queue } => {
                let part = queue.map(|queue| format!("?name={}", segment(&queue))).unwrap_or_default();
                let path = format!("/v1/consumers{part}");
                let rows = asked.admin()?.all(&path, "list of consumers", PAGES_MAX)?;
                let columns = [
                    ("CONNECTION", "connection"),
                    ("ID", "id"),
                    ("USER", "user"),
                    ("VHOST", "vhost"),
                    ("QUEUE", "queue"),
                    ("SESSION", "session"),
                    ("SETTLES", "settles"),
                    ("PREFETCH", "prefetch"),
                    ("CREDIT", "credit"),
                ];
                asked.print_rows(&rows, &columns)
            }
            ConsumerCommand::Close { asked, connection, id, reason } => {
                let what = format!("consumer `{id}` of connection `{connection}`");
                let reason = segment(&reason);
                let path = format!("/v1/consumers/{}/{}?reason={reason}", segment(&connection), segment(&id));
                asked.admin()?.delete(&path, &what, None)?;
                print_line(&format!("{what} is ended"))
            }
        }
    }
}
