//! `imori status`: an overview of a broker.

use std::time::Duration;

use crate::admin_client::AdminOptions;
use clap::Args;
use serde_json::Value;

/// Show a broker at a glance: version, memory, disk, alarms, and totals of all objects.
#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    asked: AdminOptions,
}

impl Status {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let admin = self.asked.admin()?;
        let overview = admin.get("/api/overview", "overview")?;
        let nodes = admin.get("/api/nodes", "node")?;
        let node = &nodes[0];
        let totals = &overview["object_totals"];
        let listeners = overview["listeners"].as_array().map_or(&[][..], Vec::as_slice).iter();
        let listeners = listeners.map(listener).collect::<Vec<String>>().join(", ");
        self.asked.print_fields(vec![
            ("version", overview["product_version"].clone()),
            ("uptime", uptime(&node["uptime"]).into()),
            ("memory", memory(&node["mem_used"], &node["mem_limit"], &node["mem_alarm"]).into()),
            ("disk", disk(&node["disk_free"], &node["disk_free_alarm"]).into()),
            ("automation", node["automation"].clone()),
            ("connections", totals["connections"].clone()),
            ("channels", totals["channels"].clone()),
            ("queues", totals["queues"].clone()),
            ("consumers", totals["consumers"].clone()),
            ("messages_ready", overview["queue_totals"]["messages_ready"].clone()),
            ("messages_unsettled", overview["queue_totals"]["messages_unacknowledged"].clone()),
            ("listeners", listeners.into()),
        ])
    }
}

fn uptime(milliseconds: &Value) -> String {
    let seconds = Duration::from_millis(milliseconds.as_u64().unwrap_or_default()).as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    format!("{days} d {hours} h {minutes} min")
}

fn memory(used: &Value, limit: &Value, is_alarmed: &Value) -> String {
    let alarm = if is_alarmed == true { "; publishers wait" } else { "" };
    format!("{} of {} MiB before publishers wait{alarm}", mebibytes(used), mebibytes(limit))
}

fn disk(free: &Value, is_alarmed: &Value) -> String {
    let alarm = if is_alarmed == true { "; publishers of persistent messages wait" } else { "" };
    format!("{} MiB free{alarm}", mebibytes(free))
}

fn mebibytes(bytes: &Value) -> u64 {
    bytes.as_u64().unwrap_or_default() >> 20
}

fn listener(listener: &Value) -> String {
    let text = |field: &str| listener[field].as_str().unwrap_or_default().to_owned();
    format!("{} {}:{}", text("protocol"), text("ip_address"), listener["port"])
}
