//! `imori vhost limit` and `imori user limit`: how much a vhost or a user may have.

use clap::Args;
use serde_json::json;

use super::admin::segment;
use super::listing::Asked;
use crate::output::print_line;

/// The limits of a vhost or a user, of which some are to be changed.
#[derive(Debug, Args)]
pub(super) struct Limited {
    #[command(flatten)]
    asked: Asked,
    /// Connections at the same time, of all protocols; `-1` is no limit, `0` lets nobody in.
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    max_connections: Option<i64>,
    /// The name of the vhost or user.
    name: String,
}

impl Limited {
    /// Sets those that are given of `max-connections` and another limit, or shows all where none is.
    pub(super) fn run(self, kind: &str, (other, max): (&str, Option<i64>)) -> anyhow::Result<()> {
        let what = format!("{kind} `{}`", self.name);
        let path = format!("/api/{kind}-limits/{}", segment(&self.name));
        let given = [("max-connections", self.max_connections), (other, max)];
        let given: Vec<_> = given.into_iter().filter_map(|(name, max)| Some((name, max?))).collect();
        let admin = self.asked.admin()?;
        for (name, max) in &given {
            admin.put(&format!("{path}/{name}"), &what, &json!({"value": max}))?;
            print_line(&format!("{name} of {what} is {max}"))?;
        }
        if !given.is_empty() {
            return Ok(());
        }
        let rows = admin.get(&path, &what)?;
        self.asked.print_rows(&rows, &[("NAME", kind), ("LIMITS", "value")])
    }
}
