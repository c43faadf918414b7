//! `imori automate store`: the automation's store.

use clap::{Args, Subcommand};
use serde_json::json;

use super::api::AutomationOptions;

/// Take over the automation's store.
#[derive(Debug, Args)]
pub(super) struct Store {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Go on with the store as it is, although it is not the one that the broker used last.
    ///
    /// A broker whose automation finds its store missing, empty, older or another broker's uses none of it and says so.
    /// Restore what is missing and restart the broker; or, after a change of `automation.store`, a restore of one half, or
    /// a loss that you accept, adopt the store, and the automation starts with it. Needs an administrator's password:
    /// tokens are in the store.
    Adopt {
        #[command(flatten)]
        asked: AutomationOptions,
    },
}

impl Store {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let StoreCommand::Adopt { asked } = self.command;
        let adopted =
            asked.admin()?.post("/api/v1/imori/store/adopt", "the automation's store", &json!({}))?;
        asked.tell(&adopted, "the store is adopted; the automation starts with it")
    }
}
