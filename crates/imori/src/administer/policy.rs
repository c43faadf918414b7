//! `imori policy`: settings of queues and exchanges by their names.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::admin_client::{AdminOptions, segment};
use crate::arguments::{argument, object};
use crate::output::print_line;

/// Set, show and delete policies: settings of queues and exchanges by their names.
#[derive(Debug, Args)]
pub(crate) struct Policy {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// List policies by rising priority.
    Ls {
        #[command(flatten)]
        asked: AdminOptions,
        /// List operator policies.
        #[arg(long)]
        operator: bool,
        /// The policies of this vhost; without it, of all vhosts.
        #[arg(long, value_name = "NAME")]
        vhost: Option<String>,
    },
    /// Show one policy.
    Show(Named),
    /// Set a policy, which applies at once to all matching queues and exchanges.
    #[command(aliases = ["add", "create"])]
    Set {
        #[command(flatten)]
        policy: Named,
        /// A regular expression that is searched for in names: `^orders` matches names that begin with `orders`.
        #[arg(allow_hyphen_values = true)]
        pattern: String,
        /// Settings, such as `max-length=1000` or `overflow=reject-publish`.
        #[arg(required = true, value_name = "KEY=VALUE", value_parser = argument)]
        settings: Vec<(String, Value)>,
        /// The objects that the policy applies to: `all`, `queues`, `classic_queues`, `quorum_queues`, `streams` or
        /// `exchanges`.
        #[arg(long, value_name = "KIND", default_value = "all")]
        apply_to: String,
        /// If several policies match, the one with the highest priority applies.
        #[arg(long, value_name = "NUMBER", default_value_t = 0, allow_negative_numbers = true)]
        priority: i64,
    },
    /// Delete a policy; the next matching policy applies in its place.
    Delete(Named),
}

/// One policy.
#[derive(Debug, Args)]
struct Named {
    #[command(flatten)]
    asked: AdminOptions,
    /// An operator policy, which limits what policies may set.
    #[arg(long)]
    operator: bool,
    /// The vhost of the policy.
    #[arg(long, value_name = "NAME", default_value = "/")]
    vhost: String,
    /// The name of the policy.
    name: String,
}

impl Named {
    fn path(&self) -> String {
        format!("{}/{}/{}", place(self.operator), segment(&self.vhost), segment(&self.name))
    }

    fn what(&self) -> String {
        let kind = if self.operator { "operator policy" } else { "policy" };
        format!("{kind} `{}` in vhost `{}`", self.name, self.vhost)
    }
}

impl Policy {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            PolicyCommand::Ls { asked, operator, vhost } => {
                let vhost = vhost.as_deref();
                let below = vhost.map(|vhost| format!("/{}", segment(vhost))).unwrap_or_default();
                let what = format!("vhost `{}`", vhost.unwrap_or_default());
                let rows = asked.admin()?.get(&format!("{}{below}", place(operator)), &what)?;
                let columns = [
                    ("VHOST", "vhost"),
                    ("NAME", "name"),
                    ("PATTERN", "pattern"),
                    ("APPLY TO", "apply-to"),
                    ("PRIORITY", "priority"),
                    ("DEFINITION", "definition"),
                ];
                asked.print_rows(&rows, &columns)
            }
            PolicyCommand::Show(policy) => {
                let shown = policy.asked.admin()?.get(&policy.path(), &policy.what())?;
                policy.asked.print_one(&shown)
            }
            PolicyCommand::Set { policy, pattern, settings, apply_to, priority } => {
                let body = json!({
                    "pattern": pattern,
                    "definition": object(settings)?,
                    "apply-to": apply_to,
                    "priority": priority,
                });
                let answer = policy.asked.admin()?.put(&policy.path(), &policy.what(), &body)?;
                let keys = answer["without_effect"].as_array().map_or(&[][..], Vec::as_slice);
                for key in keys.iter().filter_map(Value::as_str) {
                    print_line(&format!("without effect: {key}"))?;
                }
                print_line(&format!("{} is set", policy.what()))
            }
            PolicyCommand::Delete(policy) => {
                policy.asked.admin()?.delete(&policy.path(), &policy.what(), None)?;
                print_line(&format!("{} is deleted", policy.what()))
            }
        }
    }
}

fn place(is_operator: bool) -> &'static str {
    if is_operator { "/api/operator-policies" } else { "/api/policies" }
}
