//! `imori vhost`: the namespaces of a broker.

use clap::{Args, Subcommand};
use serde_json::json;

use super::limit::Limited;
use crate::admin_client::{AdminOptions, segment};
use crate::output::print_line;

/// Make, show and delete vhosts.
#[derive(Debug, Args)]
pub(crate) struct Vhost {
    #[command(subcommand)]
    command: VhostCommand,
}

#[derive(Debug, Subcommand)]
enum VhostCommand {
    /// List vhosts and their ready messages.
    Ls(AdminOptions),
    /// Make a vhost, or change its description.
    #[command(aliases = ["add", "create"])]
    Set {
        #[command(flatten)]
        asked: AdminOptions,
        /// A description for people.
        #[arg(long, value_name = "TEXT", default_value = "")]
        description: String,
        /// The name of the vhost.
        name: String,
    },
    /// Set or show the limits of a vhost.
    Limit {
        #[command(flatten)]
        limited: Limited,
        /// Queues; `-1` is no limit.
        #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
        max_queues: Option<i64>,
        /// Bytes of the bodies of all messages in its queues; `-1` is no limit. A publish to a queue is refused while
        /// its vhost is at the limit.
        #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
        max_bytes: Option<i64>,
    },
    /// Delete a vhost with its connections, queues, exchanges and permissions.
    Delete {
        #[command(flatten)]
        asked: AdminOptions,
        /// The name of the vhost.
        name: String,
    },
}

impl Vhost {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let path = |name: &str| format!("/api/vhosts/{}", segment(name));
        match self.command {
            VhostCommand::Ls(asked) => {
                let rows = asked.admin()?.get("/api/vhosts", "list of vhosts")?;
                let columns = [
                    ("NAME", "name"),
                    ("READY", "messages_ready"),
                    ("UNSETTLED", "messages_unacknowledged"),
                    ("DESCRIPTION", "description"),
                ];
                asked.print_rows(&rows, &columns)
            }
            VhostCommand::Set { asked, description, name } => {
                let what = format!("vhost `{name}`");
                asked.admin()?.put(&path(&name), &what, &json!({"description": description}))?;
                print_line(&format!("{what} is set"))
            }
            VhostCommand::Limit { limited, max_queues, max_bytes } => {
                limited.run("vhost", &[("max-queues", max_queues), ("max-bytes", max_bytes)])
            }
            VhostCommand::Delete { asked, name } => {
                let what = format!("vhost `{name}`");
                asked.admin()?.delete(&path(&name), &what, None)?;
                print_line(&format!("{what} is deleted"))
            }
        }
    }
}
