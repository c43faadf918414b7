//! `imori automate fsck`: looks for what is wrong in the automation's store.

use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use clap::Args;
use imori_engine::{ServerAddress, check_store};
use serde_json::{Value, json};

use crate::output::print_line;

/// Look for executions that can never end and for damage in the automation's store, whether the broker runs or not.
///
/// Reads the store's file, or the PostgreSQL database that `--store` names, and changes nothing. Exit codes: 0 nothing is
/// wrong, 1 something is, or the store cannot be read.
#[derive(Debug, Args)]
pub(super) struct Fsck {
    /// The data folder of the broker.
    #[arg(long, value_name = "DIR", env = "IMORI__BROKER__DATA_DIR", default_value = ".data")]
    data_dir: PathBuf,
    /// The store, if it is not in the data folder: `postgres://user:password@host/database`. The environment variable
    /// keeps the password out of the list of processes.
    #[arg(long, value_name = "ADDRESS", env = "IMORI__AUTOMATION__STORE", hide_env_values = true)]
    store: Option<String>,
    /// The CA of the store's server, in PEM, instead of those of the system.
    #[arg(long, value_name = "FILE", env = "IMORI__AUTOMATION__STORE_CA")]
    store_ca: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Fsck {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let folder = self.data_dir.join("automation");
        let address = self.store.filter(|address| !address.is_empty());
        let ca = self.store_ca.as_deref().filter(|path| !path.is_empty()).map(Path::new);
        let server = address.map(|address| ServerAddress::parse(&address, ca)).transpose();
        let server = server.map_err(|error| anyhow!("`--store`: {error}"))?;
        let found = check_store(&folder, server.as_ref()).map_err(anyhow::Error::msg)?;
        let place = server.map_or_else(|| format!("`{}`", folder.display()), |_| String::from("the store"));
        if self.json {
            let rows: Vec<Value> = found
                .iter()
                .map(|finding| json!({"object": finding.object, "problem": finding.problem}))
                .collect();
            print_line(&serde_json::to_string_pretty(&rows)?)?;
        } else {
            found
                .iter()
                .try_for_each(|finding| print_line(&format!("{}: {}", finding.object, finding.problem)))?;
        }
        match found.len() {
            0 if self.json => Ok(()),
            0 => print_line("nothing is wrong"),
            1 => bail!("1 problem is in {place}"),
            number => bail!("{number} problems are in {place}"),
        }
    }
}
