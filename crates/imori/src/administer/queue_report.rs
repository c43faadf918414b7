//! What a person reads of one queue.

use std::time::Duration;

use serde_json::Value;

use super::diagnosis::Evidence;
use crate::admin_client::{Admin, print_aligned, print_table, segment, text};
use crate::figures::{bytes, count, duration, rate};
use crate::output::print_line;

/// Pages of consumers that are read; more say no more about the queue.
const CONSUMER_PAGES_MAX: usize = 4;

/// The columns of its consumers.
const CONSUMER_COLUMNS: [(&str, &str); 6] = [
    ("CONSUMER", "id"),
    ("CONNECTION", "connection"),
    ("USER", "user"),
    ("SETTLES", "settles"),
    ("PREFETCH", "prefetch"),
    ("CREDIT", "credit"),
];

/// Asks for all that is said of a queue.
pub(super) fn evidence(admin: &Admin, vhost: &str, name: &str, what: &str) -> anyhow::Result<Evidence> {
    let queue = admin.get(&format!("/v1/queues/{}/{}", segment(vhost), segment(name)), what)?;
    let of_queue = format!("/v1/consumers?vhost={}&queue={}", segment(vhost), segment(name));
    let consumers = admin.all(&of_queue, "list of consumers", CONSUMER_PAGES_MAX)?;
    let overview = admin.get("/v1/overview", "overview")?;
    Ok(Evidence { queue, consumers: consumers.as_array().cloned().unwrap_or_default(), overview })
}

impl Evidence {
    /// Prints the queue's figures, consumers and settings, then what it does and why.
    pub(super) fn print(&self, what: &str) -> anyhow::Result<()> {
        print_line(&format!("{what}: {}", self.kind()))?;
        print_line("")?;
        print_aligned(&self.figures())?;
        if !self.consumers.is_empty() {
            print_line("")?;
            print_table(&Value::Array(self.consumers.clone()), &CONSUMER_COLUMNS)?;
        }
        print_line("")?;
        print_table(
            &self.queue["in_effect"],
            &[("SETTING", "key"), ("VALUE", "value"), ("SOURCE", "source")],
        )?;
        print_line("")?;
        print_line(&self.diagnosis())
    }

    /// What kind of queue it is, in a few words.
    fn kind(&self) -> String {
        let queue = &self.queue;
        let kind = queue["arguments"]["x-queue-type"].as_str().unwrap_or("classic");
        let mut words = vec![if queue["durable"] == true { "durable" } else { "transient" }, kind];
        words.extend((queue["auto_delete"] == true).then_some("deleted with its last consumer"));
        let mut told = words.join(", ");
        for (field, word) in
            [("owner", "exclusive to"), ("policy", "policy"), ("operator_policy", "operator policy")]
        {
            if !queue[field].is_null() {
                told.push_str(&format!(", {word} {}", text(&queue[field])));
            }
        }
        told
    }

    fn figures(&self) -> Vec<(&'static str, String)> {
        let queue = &self.queue;
        let number = |field: &str| queue[field].as_u64().unwrap_or_default();
        let flow = |kind: &str| {
            let of = &queue["rates"][kind];
            let total = count(of["total"].as_u64().unwrap_or_default());
            format!(
                "{}, {total} since the broker started",
                rate(of["per_second"].as_f64().unwrap_or_default())
            )
        };
        let oldest = queue["oldest_ms"].as_u64().map(|age| duration(Duration::from_millis(age)));
        let mut figures = vec![
            ("ready", format!("{}, {}", count(number("ready")), bytes(number("ready_bytes")))),
            ("oldest", oldest.unwrap_or_else(|| String::from("-"))),
            ("unsettled", count(number("unsettled"))),
            ("delayed", count(number("delayed"))),
            ("in", flow("published")),
            ("out", flow("delivered")),
            ("acknowledged", flow("acknowledged")),
            ("redelivered", flow("redelivered")),
            ("consumers", count(number("consumers"))),
        ];
        let arguments = queue["arguments"].as_object().into_iter().flatten();
        figures.extend(arguments.map(|(name, value)| ("argument", format!("{name}={}", text(value)))));
        figures
    }
}
