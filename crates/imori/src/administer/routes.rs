//! `imori exchange` and `imori binding`: the routing of a broker.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::admin_client::{AdminOptions, Listed, segment};
use crate::arguments::{argument, object};
use crate::output::print_line;

/// Declare, show and delete exchanges.
#[derive(Debug, Args)]
pub(crate) struct Exchange {
    #[command(subcommand)]
    command: ExchangeCommand,
}

#[derive(Debug, Subcommand)]
enum ExchangeCommand {
    /// List exchanges; the default one has an empty name.
    Ls(Listed),
    /// Show one exchange with its arguments.
    Show(Named),
    /// Declare an exchange; an existing one must have the same settings.
    Declare {
        #[command(flatten)]
        exchange: Named,
        /// Arguments, such as `alternate-exchange=unrouted`.
        #[arg(value_name = "KEY=VALUE", value_parser = argument)]
        arguments: Vec<(String, Value)>,
        /// `direct`, `fanout`, `topic`, `headers` or `x-delayed-message`.
        #[arg(long = "type", value_name = "TYPE", default_value = "direct")]
        kind: String,
        /// The exchange does not survive a restart of the broker.
        #[arg(long)]
        transient: bool,
        /// The exchange is deleted with its last binding.
        #[arg(long)]
        auto_delete: bool,
        /// Clients cannot publish to it.
        #[arg(long)]
        internal: bool,
    },
    /// Delete an exchange with its bindings.
    Delete {
        #[command(flatten)]
        exchange: Named,
        /// Only if nothing is bound to the exchange.
        #[arg(long)]
        if_unused: bool,
    },
}

/// One exchange.
#[derive(Debug, Args)]
struct Named {
    #[command(flatten)]
    asked: AdminOptions,
    /// The vhost of the exchange.
    #[arg(long, value_name = "NAME", default_value = "/")]
    vhost: String,
    /// The name of the exchange.
    name: String,
}

impl Named {
    fn path(&self) -> String {
        format!("/v1/exchanges/{}/{}", segment(&self.vhost), segment(&self.name))
    }

    fn what(&self) -> String {
        format!("exchange `{}` in vhost `{}`", self.name, self.vhost)
    }
}

/// Add, show and delete bindings.
#[derive(Debug, Args)]
pub(crate) struct Binding {
    #[command(subcommand)]
    command: BindingCommand,
}

#[derive(Debug, Subcommand)]
enum BindingCommand {
    /// List bindings of queues and exchanges. Live subscriptions are not bindings.
    Ls(Listed),
    /// Bind a queue to an exchange, or an exchange to another.
    Add(Ends),
    /// Delete a binding; a missing one is not an error.
    Delete(Ends),
}

/// The two ends of a binding and the messages that take it.
#[derive(Debug, Args)]
struct Ends {
    #[command(flatten)]
    asked: AdminOptions,
    /// The vhost of source and destination.
    #[arg(long, value_name = "NAME", default_value = "/")]
    vhost: String,
    /// The exchange that messages come from.
    source: String,
    /// The queue or exchange that receives the messages.
    destination: String,
    /// Arguments, such as `x-match=any` and headers of an exchange of type `headers`.
    #[arg(value_name = "KEY=VALUE", value_parser = argument)]
    arguments: Vec<(String, Value)>,
    /// The routing key, or its pattern.
    #[arg(long, value_name = "KEY", default_value = "")]
    routing_key: String,
    /// The destination is an exchange and not a queue.
    #[arg(long)]
    to_exchange: bool,
}

impl Ends {
    /// Posts the binding to a path below the vhost's bindings and prints the outcome.
    fn post(self, below: &str, became: &str) -> anyhow::Result<()> {
        let kind = if self.to_exchange { "exchange" } else { "queue" };
        let what = format!(
            "binding of {kind} `{}` to exchange `{}` in vhost `{}`",
            self.destination, self.source, self.vhost
        );
        let body = json!({
            "source": self.source,
            "destination": self.destination,
            "destination_type": kind,
            "routing_key": self.routing_key,
            "arguments": object(self.arguments)?,
        });
        self.asked.admin()?.post(&format!("/v1/bindings/{}{below}", segment(&self.vhost)), &what, &body)?;
        print_line(&format!("{what} is {became}"))
    }
}

impl Exchange {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            ExchangeCommand::Ls(listed) => {
                let columns = [
                    ("VHOST", "vhost"),
                    ("NAME", "name"),
                    ("TYPE", "type"),
                    ("DURABLE", "durable"),
                    ("INTERNAL", "internal"),
                    ("ARGUMENTS", "arguments"),
                ];
                listed.print("/api/exchanges", &columns)
            }
            ExchangeCommand::Show(exchange) => {
                let shown = exchange.asked.admin()?.get(&exchange.path(), &exchange.what())?;
                exchange.asked.print_one(&shown)
            }
            ExchangeCommand::Declare { exchange, arguments, kind, transient, auto_delete, internal } => {
                let body = json!({
                    "type": kind,
                    "arguments": object(arguments)?,
                    "auto_delete": auto_delete,
                    "durable": !transient,
                    "internal": internal,
                });
                exchange.asked.admin()?.put(&exchange.path(), &exchange.what(), &body)?;
                print_line(&format!("{} is declared", exchange.what()))
            }
            ExchangeCommand::Delete { exchange, if_unused } => {
                let path = format!("{}?if_unused={if_unused}", exchange.path());
                exchange.asked.admin()?.delete(&path, &exchange.what(), None)?;
                print_line(&format!("{} is deleted", exchange.what()))
            }
        }
    }
}

impl Binding {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            BindingCommand::Ls(listed) => {
                let columns = [
                    ("VHOST", "vhost"),
                    ("SOURCE", "source"),
                    ("ROUTING KEY", "routing_key"),
                    ("TO", "destination_type"),
                    ("NAME", "destination"),
                    ("ARGUMENTS", "arguments"),
                ];
                listed.print("/api/bindings", &columns)
            }
            BindingCommand::Add(ends) => ends.post("", "added"),
            BindingCommand::Delete(ends) => ends.post("/unbind", "deleted"),
        }
    }
}
