//! `imori connection`: the clients of a broker.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::admin::segment;
use super::listing::Asked;
use crate::output::print_line;

/// Show and close connections of clients.
#[derive(Debug, Args)]
pub(crate) struct Connection {
    #[command(subcommand)]
    command: ConnectionCommand,
}

#[derive(Debug, Subcommand)]
enum ConnectionCommand {
    /// List the clients of all protocols.
    Ls {
        #[command(flatten)]
        asked: Asked,
    },
    /// Show one connection.
    Show(Named),
    /// List the links of a connection of AMQP 1.0: their credit and unsettled deliveries.
    Links(Named),
    /// Close a connection; its client is told why.
    Close {
        #[command(flatten)]
        connection: Named,
        /// The reason to send to the client.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

/// One connection.
#[derive(Debug, Args)]
struct Named {
    #[command(flatten)]
    asked: Asked,
    /// The name of the connection as the list shows it: `127.0.0.1:51000 -> 127.0.0.1:5672`.
    name: String,
}

impl Named {
    fn path(&self) -> String {
        format!("/api/connections/{}", segment(&self.name))
    }

    fn what(&self) -> String {
        format!("connection `{}`", self.name)
    }
}

/// The links of all sessions, each with the channel of its session.
fn links_of(sessions: &Value) -> Value {
    let mut rows = Vec::new();
    for session in sessions.as_array().into_iter().flatten() {
        for mut link in session["links"].as_array().cloned().unwrap_or_default() {
            link["channel"] = session["channel"].clone();
            rows.push(link);
        }
    }
    Value::Array(rows)
}

impl Connection {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            ConnectionCommand::Ls { asked } => {
                let rows = asked.admin()?.get("/api/connections", "list of connections")?;
                let columns = [
                    ("NAME", "name"),
                    ("PROTOCOL", "protocol"),
                    ("USER", "user"),
                    ("VHOST", "vhost"),
                    ("CHANNELS", "channels"),
                    ("STATE", "state"),
                    ("CLIENT", "user_provided_name"),
                ];
                asked.print_rows(&rows, &columns)
            }
            ConnectionCommand::Show(connection) => {
                let shown = connection.asked.admin()?.get(&connection.path(), &connection.what())?;
                connection.asked.print_one(&shown)
            }
            ConnectionCommand::Links(connection) => {
                let path = format!("/v1/connections/{}/sessions", segment(&connection.name));
                let sessions = connection.asked.admin()?.get(&path, &connection.what())?;
                let columns = [
                    ("CHANNEL", "channel"),
                    ("HANDLE", "handle"),
                    ("NAME", "name"),
                    ("DIRECTION", "direction"),
                    ("ADDRESS", "address"),
                    ("SETTLE", "snd_settle_mode"),
                    ("CREDIT", "credit"),
                    ("DELIVERIES", "delivery_count"),
                    ("UNSETTLED", "unsettled"),
                ];
                connection.asked.print_rows(&links_of(&sessions), &columns)
            }
            ConnectionCommand::Close { connection, reason } => {
                let (path, what) = (connection.path(), connection.what());
                connection.asked.admin()?.delete(&path, &what, reason.as_deref())?;
                print_line(&format!("{what} is closed"))
            }
        }
    }
}
