//! `imori automate trigger`.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::api::{AutomationOptions, json_object};
use crate::admin_client::segment;

/// Show trigger types, and send events.
#[derive(Debug, Args)]
pub(super) struct Trigger {
    #[command(subcommand)]
    command: TriggerCommand,
}

#[derive(Debug, Subcommand)]
enum TriggerCommand {
    /// List the trigger types.
    List {
        #[command(flatten)]
        asked: AutomationOptions,
    },
    /// Show a trigger type.
    Get {
        #[command(flatten)]
        asked: AutomationOptions,
        /// The reference of the trigger type.
        #[arg(value_name = "REF")]
        name: String,
    },
    /// Send an event of a trigger to the rules.
    Emit {
        #[command(flatten)]
        asked: AutomationOptions,
        /// The reference of the trigger.
        #[arg(value_name = "REF")]
        name: String,
        /// The payload, as a JSON object.
        #[arg(value_name = "JSON", value_parser = json_object, default_value = "{}")]
        payload: Value,
    },
}

impl Trigger {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self.command {
            TriggerCommand::List { asked } => {
                asked.print_list("triggertypes?limit=-1", &[("REF", "ref"), ("DESCRIPTION", "description")])
            }
            TriggerCommand::Get { asked, name } => {
                let path = format!("/api/v1/triggertypes/{}", segment(&name));
                asked.print(&asked.admin()?.get(&path, &format!("trigger type `{name}`"))?)
            }
            TriggerCommand::Emit { asked, name, payload } => {
                let body = json!({"trigger": name, "payload": payload});
                let what = format!("trigger `{name}`");
                let sent = asked.admin()?.post("/api/v1/webhooks/st2", &what, &body)?;
                asked.tell(&sent, &format!("an event of {what} is stored"))
            }
        }
    }
}
