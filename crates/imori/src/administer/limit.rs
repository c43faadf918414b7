//! `imori vhost limit` and `imori user limit`: quotas of a vhost or a user.

use clap::Args;
use serde_json::{Map, Value, json};

use crate::admin_client::{AdminOptions, segment};
use crate::output::print_line;

/// The options that `imori vhost limit` and `imori user limit` share.
#[derive(Debug, Args)]
pub(super) struct Limited {
    #[command(flatten)]
    asked: AdminOptions,
    /// Connections at the same time, of all protocols; `-1` is no limit, `0` refuses every connection.
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    max_connections: Option<i64>,
    /// Messages that may be published a second, on all connections together; `-1` is no limit. Faster publishers wait.
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    max_publish_rate: Option<i64>,
    /// Bytes of messages that may be published a second, on all connections together; `-1` is no limit. Faster
    /// publishers wait.
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    max_publish_byte_rate: Option<i64>,
    /// The name of the vhost or user.
    name: String,
}

impl Limited {
    /// Sets the limits given on the command line, those in `others` included; shows all limits if
    /// none is given.
    pub(super) fn run(self, kind: &str, others: &[(&str, Option<i64>)]) -> anyhow::Result<()> {
        let what = format!("{kind} `{}`", self.name);
        let name = segment(&self.name);
        let both = [
            ("max-connections", self.max_connections),
            ("max-publish-rate", self.max_publish_rate),
            ("max-publish-byte-rate", self.max_publish_byte_rate),
        ];
        let given = both.iter().chain(others).filter_map(|(name, max)| Some((*name, (*max)?)));
        let given: Vec<(&str, i64)> = given.collect();
        let admin = self.asked.admin()?;
        for (limit, max) in &given {
            admin.put(&format!("/api/{kind}-limits/{name}/{limit}"), &what, &json!({"value": max}))?;
            print_line(&format!("{limit} of {what} is {max}"))?;
        }
        if !given.is_empty() {
            return Ok(());
        }
        let limits = admin.get(&format!("/v1/{kind}s/{name}/limits"), &what)?;
        let rows: Value = limits.as_object().into_iter().flatten().map(row).collect();
        self.asked.print_rows(&rows, &[("LIMIT", "limit"), ("MAX", "max"), ("USED", "used")])
    }
}

fn row((limit, state): (&String, &Value)) -> Value {
    let mut row = Map::from_iter([(String::from("limit"), json!(limit))]);
    row.extend(state.as_object().cloned().unwrap_or_default());
    Value::Object(row)
}
