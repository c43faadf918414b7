//! Prints the broker's JSON as tables for people, or unchanged for programs.

use clap::Args;
use imori_core::name::Printable;
use serde_json::{Map, Value};

use super::admin::{Admin, segment};
use super::broker_options::BrokerOptions;
use super::listens::Listens;
use crate::output::print_line;

/// Selects the broker to ask and the format of its answer.
#[derive(Debug, Args)]
pub(crate) struct AdminOptions {
    /// The admin listener of the broker: `http://user:password@host:port`, or `https://…` with TLS. Without user and
    /// password you act as the operator of a broker on this machine, which requires permission to read its data folder.
    ///
    /// Other users of this host can read command lines, so put a password into the variable. Without an address the
    /// context or the data folder that is named gives it, then the current context, then the folder `.data`, then
    /// `http://127.0.0.1:15672`. An option counts before a variable.
    #[arg(long, value_name = "URL", env = "IMORI_ADMIN", hide_env_values = true)]
    admin: Option<String>,
    #[command(flatten)]
    broker: BrokerOptions,
    /// Print JSON, as the broker gives it.
    #[arg(long)]
    json: bool,
}

impl AdminOptions {
    pub(crate) fn admin(&self) -> anyhow::Result<Admin> {
        Admin::at(
            Listens::Admin,
            self.broker.find(Listens::Admin, self.admin.as_deref())?,
            &self.broker.trust,
        )
    }

    /// Whether the user wants JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Prints rows as a table of (title, field) columns, or as JSON.
    pub(crate) fn print_rows(&self, rows: &Value, columns: &[(&str, &str)]) -> anyhow::Result<()> {
        if self.json {
            return print_line(&serde_json::to_string_pretty(rows)?);
        }
        print_table(rows, columns)
    }

    /// Prints the fields of an object, one per line.
    pub(crate) fn print_one(&self, one: &Value) -> anyhow::Result<()> {
        let fields = one.as_object().into_iter().flatten();
        self.print_fields(fields.map(|(name, value)| (name.as_str(), value.clone())).collect())
    }

    /// Prints fields in this order, one per line.
    pub(crate) fn print_fields(&self, fields: Vec<(&str, Value)>) -> anyhow::Result<()> {
        if self.json {
            let one: Map<String, Value> =
                fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            return print_line(&serde_json::to_string_pretty(&one)?);
        }
        fields.iter().try_for_each(|(name, value)| print_line(&format!("{name}: {}", text(value))))
    }
}

/// The options of a command that lists objects of one vhost or of all.
#[derive(Debug, Args)]
pub(crate) struct Listed {
    #[command(flatten)]
    asked: AdminOptions,
    /// Only objects of this vhost; without it, of all vhosts.
    #[arg(long, value_name = "NAME")]
    vhost: Option<String>,
}

impl Listed {
    /// Prints the list at a path of `/api` with these columns.
    pub(crate) fn print(&self, path: &str, columns: &[(&str, &str)]) -> anyhow::Result<()> {
        let vhost = self.vhost.as_deref();
        let place = vhost.map(|vhost| format!("/{}", segment(vhost))).unwrap_or_default();
        let what = format!("vhost `{}`", vhost.unwrap_or_default());
        let rows = self.asked.admin()?.get(&format!("{path}{place}"), &what)?;
        self.asked.print_rows(&rows, columns)
    }
}

/// Prints names and values, the values below one another.
pub(crate) fn print_aligned(lines: &[(&str, String)]) -> anyhow::Result<()> {
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    lines.iter().try_for_each(|(name, value)| print_line(&format!("{name:width$}  {value}")))
}

/// Prints rows as a table of (title, field) columns.
pub(crate) fn print_table(rows: &Value, columns: &[(&str, &str)]) -> anyhow::Result<()> {
    let titles = columns.iter().map(|(title, _)| (*title).to_owned()).collect::<Vec<String>>();
    let cells = |row: &Value| columns.iter().map(|(_, field)| text(&row[*field])).collect::<Vec<String>>();
    let rows = rows.as_array().map_or(&[][..], Vec::as_slice).iter().map(cells);
    let lines: Vec<Vec<String>> = std::iter::once(titles).chain(rows).collect();
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns.len()).filter_map(width).collect();
    for line in &lines {
        let padded = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        print_line(padded.collect::<Vec<String>>().join("  ").trim_end())?;
    }
    Ok(())
}

/// The value on one line, safe for a terminal.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => Printable(text.as_bytes()).to_string(),
        other => other.to_string(),
    }
}
