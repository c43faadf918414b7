//! `imori connection`: the clients of a broker.

use std::time::{Duration, UNIX_EPOCH};

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::admin_client::{Admin, AdminOptions, print_aligned, print_table, segment, text};
use crate::figures::{bytes, count, duration};
use crate::output::print_line;

/// Pages of consumers that are read for one connection.
const CONSUMER_PAGES_MAX: usize = 4;

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
        asked: AdminOptions,
    },
    /// Show one connection: its client, what it has sent and received, and its consumers with their credit.
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
    asked: AdminOptions,
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

/// Prints a connection for a person.
fn show(admin: &Admin, named: &Named) -> anyhow::Result<()> {
    let name = segment(&named.name);
    let shown = admin.get(&format!("/v1/connections/{name}"), &named.what())?;
    let consumers =
        admin.all(&format!("/v1/consumers?connection={name}"), "list of consumers", CONSUMER_PAGES_MAX)?;
    let number = |field: &str| shown[field].as_u64().unwrap_or_default();
    let since = UNIX_EPOCH + Duration::from_millis(number("connected_at"));
    let open_for = since.elapsed().unwrap_or_default();
    let heartbeat = shown["heartbeat_s"].as_u64().map(|seconds| format!("every {seconds} s"));
    let unsent = match number("unsent_bytes") {
        0 => String::from("nothing"),
        unsent => format!("{}: the client reads more slowly than it is sent to", bytes(unsent)),
    };
    let waits_for = match shown["waits_for"].as_str() {
        None => String::from("nothing"),
        Some("reader") => String::from("a slow reader"),
        Some("alarm") => String::from("the end of an alarm of memory or disk"),
        Some("queue") => String::from("a queue to become shorter"),
        Some("rate") => String::from("the publish rate of its user or vhost"),
        Some(other) => other.to_owned(),
    };
    print_aligned(&[
        ("name", text(&shown["name"])),
        ("client", text(&shown["client_name"])),
        ("protocol", text(&shown["protocol"])),
        ("user", text(&shown["user"])),
        ("vhost", text(&shown["vhost"])),
        ("state", text(&shown["state"])),
        ("waits for", waits_for),
        ("open for", duration(open_for)),
        ("heart-beat", heartbeat.unwrap_or_else(|| String::from("-"))),
        ("sessions", count(number("sessions"))),
        ("received", bytes(number("received_bytes"))),
        ("sent", bytes(number("sent_bytes"))),
        ("waits to be sent", unsent),
    ])?;
    if consumers.as_array().is_none_or(Vec::is_empty) {
        return Ok(());
    }
    print_line("")?;
    let columns = [
        ("CONSUMER", "id"),
        ("QUEUE", "queue"),
        ("SESSION", "session"),
        ("SETTLES", "settles"),
        ("PREFETCH", "prefetch"),
        ("CREDIT", "credit"),
    ];
    print_table(&consumers, &columns)
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
                let admin = connection.asked.admin()?;
                if connection.asked.is_json() {
                    return connection.asked.print_one(&admin.get(&connection.path(), &connection.what())?);
                }
                show(&admin, &connection)
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
