//! `imori automate login`: a token for `st2`.

use clap::Args;
use serde_json::json;

use super::api::AutomationOptions;
use crate::output::print_line;

/// Make a token, and print the variables by which `st2` finds and uses it: `eval "$(imori automate login)"`.
///
/// Logs in as the user of `--api`, or without one as the operator of the broker's data folder. The token stands for that
/// user until its end.
#[derive(Debug, Args)]
pub(super) struct Login {
    #[command(flatten)]
    asked: AutomationOptions,
    /// Seconds for which the token is valid.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    ttl: Option<u32>,
}

impl Login {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let admin = self.asked.admin()?;
        let body = self.ttl.map_or_else(|| json!({}), |seconds| json!({"ttl": seconds}));
        let made = admin.post("/auth/v1/tokens", "token", &body)?;
        if self.asked.is_json() {
            return self.asked.print(&made);
        }
        let base = &admin.base;
        for (variable, path) in [("API", "/api/v1"), ("STREAM", "/stream/v1"), ("AUTH", "/auth/v1")] {
            print_line(&format!("export ST2_{variable}_URL='{base}{path}'"))?;
        }
        print_line(&format!("export ST2_AUTH_TOKEN='{}'", made["token"].as_str().unwrap_or_default()))
    }
}
