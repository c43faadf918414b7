//! `imori automate pack`.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::api::AutomationOptions;
use crate::admin_client::segment;

/// Install, register, show and remove packs.
#[derive(Debug, Args)]
pub(super) struct Pack {
    #[command(subcommand)]
    command: PackCommand,
}

#[derive(Debug, Subcommand)]
enum PackCommand {
    /// List the packs.
    List {
        #[command(flatten)]
        asked: AutomationOptions,
    },
    /// Show a pack.
    Get {
        #[command(flatten)]
        asked: AutomationOptions,
        /// The name of the pack.
        name: String,
    },
    /// Install packs, each by its name in the index, its address or its folder, and wait for the end.
    Install(Packs),
    /// Remove packs, and wait for the end.
    Uninstall(Packs),
    /// Read the folders of packs again; without names, of all packs.
    Register {
        #[command(flatten)]
        asked: AutomationOptions,
        /// The names of the packs.
        names: Vec<String>,
    },
}

#[derive(Debug, Args)]
struct Packs {
    #[command(flatten)]
    asked: AutomationOptions,
    /// The packs.
    #[arg(required = true)]
    names: Vec<String>,
}

impl Packs {
    fn start(self, verb: &str) -> anyhow::Result<()> {
        let path = format!("/api/v1/packs/{verb}");
        let started: Value = self.asked.admin()?.post(&path, "pack", &json!({"packs": self.names}))?;
        self.asked.finish(started["execution_id"].as_str().unwrap_or_default())
    }
}

impl Pack {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self.command {
            PackCommand::List { asked } => asked.print_list(
                "packs?limit=-1",
                &[("REF", "ref"), ("VERSION", "version"), ("DESCRIPTION", "description")],
            ),
            PackCommand::Get { asked, name } => {
                let path = format!("/api/v1/packs/{}", segment(&name));
                asked.print(&asked.admin()?.get(&path, &format!("pack `{name}`"))?)
            }
            PackCommand::Install(packs) => packs.start("install"),
            PackCommand::Uninstall(packs) => packs.start("uninstall"),
            PackCommand::Register { asked, names } => {
                let body = json!({"packs": names});
                asked.print(&asked.admin()?.post("/api/v1/packs/register", "pack", &body)?)
            }
        }
    }
}
