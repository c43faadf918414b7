//! `imori version`: what this binary was built from.

use clap::Args;
use serde_json::json;

use crate::output::print_line;

/// The commit and its date, which `make` passes on; a plain `cargo build` has none.
const COMMIT: Option<&str> = option_env!("IMORI_COMMIT");
const COMMIT_DATE: Option<&str> = option_env!("IMORI_COMMIT_DATE");

/// The C library that the binary is linked with.
const LIBRARY: &str = if cfg!(target_env = "musl") { "musl" } else { "gnu" };

/// Print the version, the commit that it was built from, and the kind of machine that it is for.
#[derive(Debug, Args)]
pub(crate) struct Version {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Version {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let version = env!("CARGO_PKG_VERSION");
        let target = format!("{}-unknown-{}-{LIBRARY}", std::env::consts::ARCH, std::env::consts::OS);
        if self.json {
            let all = json!({"version": version, "commit": COMMIT, "date": COMMIT_DATE, "target": target});
            return print_line(&serde_json::to_string_pretty(&all)?);
        }
        print_line(&format!("imori {version}"))?;
        print_line(&match (COMMIT, COMMIT_DATE) {
            (Some(commit), Some(date)) => format!("commit {commit} of {date}"),
            _ => String::from("commit unknown: built by cargo alone, not by make"),
        })?;
        print_line(&format!("target {target}"))
    }
}
