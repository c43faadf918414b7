//! `imori events`, `imori stalls` and `imori top`: live views of a broker.

use std::cmp::Reverse;
use std::io::{self, IsTerminal as _};
use std::thread::sleep;
use std::time::Duration;

use clap::Args;
use imori_core::name::Printable;
use serde_json::{Value, json};

use crate::admin_client::{Admin, AdminOptions, print_table, segment, text};
use crate::output::{print_error, print_line};

/// The delay before reconnecting to an event stream that the broker did not serve.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The escape sequence that clears a terminal and moves to its first line.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// Pages of queues and connections searched for the busiest.
const TOP_PAGES_MAX: usize = 20;

/// Follow events: connects and disconnects, refused logins, declarations, changes, stalls.
#[derive(Debug, Args)]
pub(crate) struct Events {
    #[command(flatten)]
    asked: AdminOptions,
    /// Kinds of events, separated by commas, each whole or up to its dot: `queue,login.refused`.
    #[arg(long, value_name = "KINDS", default_value = "")]
    kinds: String,
    /// Begin with the oldest events that the broker keeps.
    #[arg(long)]
    replay: bool,
    /// End after this many events.
    #[arg(long, value_name = "N")]
    count: Option<usize>,
}

impl Events {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let admin = self.asked.admin()?;
        let path = format!("/v1/events?kinds={}&replay={}", segment(&self.kinds), self.replay);
        let (mut last, mut left) = (None::<String>, self.count.unwrap_or(usize::MAX));
        let mut stream = Some(admin.stream(&path, None)?);
        while left > 0 {
            let Some(lines) = stream.take() else {
                match admin.stream(&path, last.as_deref()) {
                    Ok(lines) => stream = Some(lines),
                    Err(error) => {
                        print_error(&format!("{error:#}; asking again"));
                        sleep(AGAIN_AFTER);
                    }
                }
                continue;
            };
            // The broker ends a stream after a while; the next one continues after the last event.
            for line in lines.map_while(Result::ok) {
                match line.split_once(": ") {
                    Some(("id", id)) => last = Some(id.to_owned()),
                    Some(("data", data)) => {
                        self.print(data)?;
                        left -= 1;
                    }
                    _ => {}
                }
                if left == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    fn print(&self, data: &str) -> anyhow::Result<()> {
        if self.asked.is_json() {
            return print_line(data);
        }
        let event: Value = serde_json::from_str(data)?;
        if let Some(lost) = event["lost"].as_u64() {
            return print_line(&format!("{lost} events are lost"));
        }
        let fields = ["object", "user", "vhost", "from", "protocol", "detail"];
        let told = fields.iter().filter(|name| !event[**name].is_null());
        let told = told.map(|name| format!(" {name}={}", text(&event[*name])));
        print_line(&format!("{}{}", text(&event["kind"]), told.collect::<String>()))
    }
}

/// Show the last stalls of a broker with their causes, as far as known.
#[derive(Debug, Args)]
pub(crate) struct Stalls {
    #[command(flatten)]
    asked: AdminOptions,
}

impl Stalls {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut answer = self.asked.admin()?.get("/v1/stalls", "list of stalls")?;
        let columns = [
            ("BEGAN", "began"),
            ("WHAT", "what"),
            ("CELL", "cell"),
            ("LASTED_MS", "lasted_ms"),
            ("OVER", "over"),
            ("CAUSE", "text"),
        ];
        self.asked.print_rows(&answer["items"].take(), &columns)
    }
}

/// Show the busiest queues and connections, refreshed repeatedly.
#[derive(Debug, Args)]
pub(crate) struct Top {
    #[command(flatten)]
    asked: AdminOptions,
    /// Show queues and connections only once.
    #[arg(long)]
    once: bool,
    /// Seconds between two updates.
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// Number of queues and connections to show.
    #[arg(long, value_name = "N", default_value_t = 15)]
    rows: usize,
}

impl Top {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let admin = self.asked.admin()?;
        loop {
            let shown = self.look(&admin)?;
            if self.asked.is_json() {
                print_line(&shown.to_string())?;
            } else {
                if io::stdout().is_terminal() && !self.once {
                    print_line(CLEAR)?;
                }
                print(&shown)?;
            }
            if self.once {
                return Ok(());
            }
            sleep(Duration::from_secs(self.interval));
        }
    }

    fn look(&self, admin: &Admin) -> anyhow::Result<Value> {
        let overview = admin.get("/v1/overview", "overview")?;
        let queues = admin.all("/v1/queues", "list of queues", TOP_PAGES_MAX)?;
        let connections = admin.all("/v1/connections", "list of connections", TOP_PAGES_MAX)?;
        let rate = |row: &Value, name: &str| row["rates"][name]["per_second"].as_f64().unwrap_or_default();
        let row = |queue: &Value| {
            json!({
                "vhost": queue["vhost"],
                "name": queue["name"],
                "in": rate(queue, "published").round(),
                "out": rate(queue, "delivered").round(),
                "ready": queue["ready"],
                "unsettled": queue["unsettled"],
                "consumers": queue["consumers"],
            })
        };
        let mut queues: Vec<Value> = queues.as_array().into_iter().flatten().map(row).collect();
        let activity =
            |row: &Value| row["in"].as_f64().unwrap_or_default() + row["out"].as_f64().unwrap_or_default();
        queues.sort_by(|a, b| {
            let ready = |row: &Value| row["ready"].as_u64().unwrap_or_default();
            activity(b).total_cmp(&activity(a)).then_with(|| ready(b).cmp(&ready(a)))
        });
        queues.truncate(self.rows);
        let mut connections = connections.as_array().cloned().unwrap_or_default();
        let bytes = |row: &Value, name: &str| row[name].as_u64().unwrap_or_default();
        connections.sort_by_key(|row| Reverse(bytes(row, "received_bytes") + bytes(row, "sent_bytes")));
        connections.truncate(self.rows);
        Ok(json!({"overview": overview, "queues": queues, "connections": connections}))
    }
}

fn print(shown: &Value) -> anyhow::Result<()> {
    let overview = &shown["overview"];
    let count = |name: &str| text(&overview[name]);
    print_line(&format!(
        "{} {}: {} connections, {} queues, {} ready, {} unsettled",
        Printable(overview["product"].as_str().unwrap_or_default().as_bytes()),
        count("version"),
        count("connections"),
        count("queues"),
        count("ready"),
        count("unsettled")
    ))?;
    print_line("")?;
    let columns = [
        ("VHOST", "vhost"),
        ("QUEUE", "name"),
        ("IN/S", "in"),
        ("OUT/S", "out"),
        ("READY", "ready"),
        ("UNSETTLED", "unsettled"),
        ("CONSUMERS", "consumers"),
    ];
    print_table(&shown["queues"], &columns)?;
    print_line("")?;
    let columns = [
        ("CONNECTION", "name"),
        ("PROTOCOL", "protocol"),
        ("USER", "user"),
        ("RECEIVED", "received_bytes"),
        ("SENT", "sent_bytes"),
        ("UNSENT", "unsent_bytes"),
    ];
    print_table(&shown["connections"], &columns)
}
