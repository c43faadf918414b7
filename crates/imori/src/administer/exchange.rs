//! `imori exchange` and `imori binding`: the routes of a broker.

use clap::{Args, Subcommand};

use super::admin::segment;
use super::listing::Asked;

/// Show exchanges.
#[derive(Debug, Args)]
pub(crate) struct Exchange {
    #[command(subcommand)]
    command: ExchangeCommand,
}

#[derive(Debug, Subcommand)]
enum ExchangeCommand {
    /// List exchanges; the default one has an empty name.
    Ls(Listed),
}

/// Show bindings.
#[derive(Debug, Args)]
pub(crate) struct Binding {
    #[command(subcommand)]
    command: BindingCommand,
}

#[derive(Debug, Subcommand)]
enum BindingCommand {
    /// List bindings of queues and exchanges. Live subscriptions are none.
    Ls(Listed),
}

/// A list of one vhost or of all.
#[derive(Debug, Args)]
struct Listed {
    #[command(flatten)]
    asked: Asked,
    /// Those of this vhost; of all without it.
    #[arg(long, value_name = "NAME")]
    vhost: Option<String>,
}

impl Listed {
    fn print(&self, path: &str, columns: &[(&str, &str)]) -> anyhow::Result<()> {
        let vhost = self.vhost.as_deref();
        let place = vhost.map(|vhost| format!("/{}", segment(vhost))).unwrap_or_default();
        let what = format!("vhost `{}`", vhost.unwrap_or_default());
        let rows = self.asked.admin()?.get(&format!("{path}{place}"), &what)?;
        self.asked.print_rows(&rows, columns)
    }
}

impl Exchange {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let ExchangeCommand::Ls(listed) = self.command;
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
}

impl Binding {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let BindingCommand::Ls(listed) = self.command;
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
}
