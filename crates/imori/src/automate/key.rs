//! `imori automate kv`: the datastore.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::api::AutomationOptions;
use crate::admin_client::segment;
use crate::output::print_line;

/// Show, set and delete keys of the datastore.
#[derive(Debug, Args)]
pub(super) struct Kv {
    #[command(subcommand)]
    command: KvCommand,
}

#[derive(Debug, Subcommand)]
enum KvCommand {
    /// List the keys; secret values are masked.
    List {
        #[command(flatten)]
        asked: AutomationOptions,
        /// Only keys that begin with this text.
        #[arg(long, value_name = "TEXT")]
        prefix: Option<String>,
    },
    /// Print the value of a key.
    Get {
        #[command(flatten)]
        asked: AutomationOptions,
        /// Print a secret value as it is.
        #[arg(long)]
        decrypt: bool,
        /// The name of the key.
        name: String,
    },
    /// Set a key.
    Set {
        #[command(flatten)]
        asked: AutomationOptions,
        /// Keep the value encrypted.
        #[arg(long)]
        secret: bool,
        /// Delete the key after this many seconds.
        #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
        ttl: Option<u32>,
        /// The name of the key.
        name: String,
        /// The value.
        value: String,
    },
    /// Delete a key.
    Delete {
        #[command(flatten)]
        asked: AutomationOptions,
        /// The name of the key.
        name: String,
    },
}

fn path(name: &str) -> String {
    format!("/api/v1/keys/{}", segment(name))
}

impl Kv {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self.command {
            KvCommand::List { asked, prefix } => {
                let prefix = prefix.map(|prefix| format!("&prefix={}", segment(&prefix))).unwrap_or_default();
                let columns = [
                    ("NAME", "name"),
                    ("VALUE", "value"),
                    ("SECRET", "secret"),
                    ("EXPIRES", "expire_timestamp"),
                ];
                asked.print_list(&format!("keys?limit=-1{prefix}"), &columns)
            }
            KvCommand::Get { asked, decrypt, name } => {
                let found = asked
                    .admin()?
                    .get(&format!("{}?decrypt={decrypt}", path(&name)), &format!("key `{name}`"))?;
                match found["value"].as_str() {
                    Some(value) => asked.tell(&found, value),
                    None => asked.print(&found),
                }
            }
            KvCommand::Set { asked, secret, ttl, name, value } => {
                let mut body = json!({"name": name, "value": value, "secret": secret});
                if let Some(ttl) = ttl {
                    body["ttl"] = Value::from(ttl);
                }
                let set = asked.admin()?.put(&path(&name), &format!("key `{name}`"), &body)?;
                asked.tell(&set, &format!("key `{name}` is set"))
            }
            KvCommand::Delete { asked, name } => {
                asked.admin()?.delete(&path(&name), &format!("key `{name}`"), None)?;
                print_line(&format!("key `{name}` is deleted"))
            }
        }
    }
}
