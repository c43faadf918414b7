//! The automation's API, and how its answers are printed.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use imori_automation::yaml;
use serde_json::Value;

use crate::admin_client::{Admin, BrokerOptions, Listens, print_table, segment, text};
use crate::output::print_line;

/// The statuses of an execution that has ended.
const ENDED: [&str; 5] = ["succeeded", "failed", "timeout", "abandoned", "canceled"];

/// Time between two looks at an execution that runs: the first, and the longest.
const LOOKS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// Selects the automation to ask and the format of its answer.
#[derive(Debug, Args)]
pub(super) struct AutomationOptions {
    /// The automation's listener: `http://user:password@host:port`, or `https://…` with TLS. Without user and password you
    /// act as the operator of a broker on this machine, which requires permission to read its data folder.
    ///
    /// Other users of this host can read command lines, so put a password into the variable. Without an address the
    /// context or the data folder that is named gives it, then the current context, then the folder `.data`, then
    /// `http://127.0.0.1:9101`. An option counts before a variable.
    #[arg(long, value_name = "URL", env = "IMORI_AUTOMATION", hide_env_values = true)]
    api: Option<String>,
    #[command(flatten)]
    broker: BrokerOptions,
    /// Print JSON, as the broker gives it.
    #[arg(long)]
    json: bool,
}

impl AutomationOptions {
    /// The listener.
    pub(super) fn admin(&self) -> anyhow::Result<Admin> {
        let found = self.broker.find(Listens::Automation, self.api.as_deref())?;
        Admin::at(Listens::Automation, found, &self.broker.trust)
    }

    /// Whether the user wants JSON.
    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// Prints the list at a path with these columns of (title, field).
    pub(super) fn print_list(&self, path: &str, columns: &[(&str, &str)]) -> anyhow::Result<()> {
        let rows = self.admin()?.get(&format!("/api/v1/{path}"), "list")?;
        match self.json {
            true => self.print(&rows),
            false => print_table(&rows, columns),
        }
    }

    /// Prints an object: as JSON, or its fields one per line.
    pub(super) fn print(&self, one: &Value) -> anyhow::Result<()> {
        let fields = one.as_object().filter(|_| !self.json);
        let Some(fields) = fields else { return print_line(&serde_json::to_string_pretty(one)?) };
        fields.iter().try_for_each(|(name, value)| print_line(&format!("{name}: {}", text(value))))
    }

    /// Prints a sentence, or the object as JSON.
    pub(super) fn tell(&self, one: &Value, sentence: &str) -> anyhow::Result<()> {
        if self.json { self.print(one) } else { print_line(sentence) }
    }

    /// Waits for the end of an execution, and returns it.
    pub(super) fn wait(&self, id: &str) -> anyhow::Result<Value> {
        let admin = self.admin()?;
        let path = format!("/api/v1/executions/{}", segment(id));
        let what = format!("execution `{id}`");
        let mut pause = LOOKS.0;
        loop {
            let found = admin.get(&format!("{path}?include_attributes=status"), &what)?;
            if found["status"].as_str().is_some_and(|status| ENDED.contains(&status)) {
                return admin.get(&path, &what);
            }
            sleep(pause);
            pause = (pause * 3 / 2).min(LOOKS.1);
        }
    }

    /// Waits for the end of an execution and prints its result; one that did not succeed is an error.
    pub(super) fn finish(&self, id: &str) -> anyhow::Result<()> {
        let ended = self.wait(id)?;
        match self.json {
            true => self.print(&ended)?,
            false => self.print(&ended["result"])?,
        }
        match ended["status"].as_str().unwrap_or_default() {
            "succeeded" => Ok(()),
            status => bail!("execution `{id}` ended with the status `{status}`"),
        }
    }
}

/// The object in a file of YAML or JSON.
pub(super) fn read_file(path: &Path) -> anyhow::Result<Value> {
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("`{shown}` cannot be read"))?;
    let value = yaml::load(&text).with_context(|| format!("`{shown}` is no YAML"))?;
    Ok(serde_json::from_str(&value.to_json())?)
}

/// Parses a JSON object on the command line.
pub(super) fn json_object(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        _ => Err(String::from("expected a JSON object, such as `{\"key\": 1}`")),
    }
}
