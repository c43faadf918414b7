//! `imori automate rule`.

use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::api::{AutomationOptions, json_object, read_file};
use crate::admin_client::{print_table, segment};
use crate::output::print_line;

/// Register, try, show, switch and delete rules.
#[derive(Debug, Args)]
pub(super) struct Rule {
    #[command(subcommand)]
    command: RuleCommand,
}

#[derive(Debug, Subcommand)]
enum RuleCommand {
    /// List the rules.
    List {
        #[command(flatten)]
        asked: AutomationOptions,
        /// Only those of this pack.
        #[arg(long, value_name = "NAME")]
        pack: Option<String>,
    },
    /// Show a rule.
    Get(Named),
    /// Register a rule.
    Create {
        #[command(flatten)]
        asked: AutomationOptions,
        /// A file of YAML or JSON with the rule.
        file: PathBuf,
    },
    /// Show what a rule would make of an event; nothing runs.
    ///
    /// Without an event, the rule is tried on the newest stored events of its trigger. Exit codes: 0 the rule matches, or
    /// matches one of the stored events; 1 it does not.
    Test(Test),
    /// Let a rule be evaluated; this also ends its suspension.
    Enable(Named),
    /// Let a rule no longer be evaluated.
    Disable(Named),
    /// Delete a rule.
    Delete(Named),
}

#[derive(Debug, Args)]
struct Test {
    #[command(flatten)]
    asked: AutomationOptions,
    /// A file with the rule, or the reference of a stored one.
    rule: String,
    /// The payload of an event, as a JSON object.
    #[arg(long, value_name = "JSON", value_parser = json_object, conflicts_with = "event")]
    payload: Option<Value>,
    /// The id of a stored event.
    #[arg(long, value_name = "ID")]
    event: Option<String>,
    /// Only stored events after this time, such as `2026-01-31T12:00:00Z`.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["event", "payload"])]
    since: Option<String>,
    /// Only stored events before this time.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["event", "payload"])]
    until: Option<String>,
    /// At most this many stored events.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
}

/// One rule.
#[derive(Debug, Args)]
struct Named {
    #[command(flatten)]
    asked: AutomationOptions,
    /// The reference of the rule, such as `default.orders`.
    #[arg(value_name = "REF")]
    name: String,
}

impl Named {
    fn path(&self) -> String {
        format!("/api/v1/rules/{}", segment(&self.name))
    }

    fn what(&self) -> String {
        format!("rule `{}`", self.name)
    }

    fn switch(self, is_enabled: bool) -> anyhow::Result<()> {
        let admin = self.asked.admin()?;
        let mut rule = admin.get(&self.path(), &self.what())?;
        rule["enabled"] = Value::Bool(is_enabled);
        let rule = admin.put(&self.path(), &self.what(), &rule)?;
        let state = if is_enabled { "enabled" } else { "disabled" };
        self.asked.tell(&rule, &format!("{} is {state}", self.what()))
    }
}

impl Rule {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self.command {
            RuleCommand::List { asked, pack } => {
                let pack = pack.map(|pack| format!("&pack={}", segment(&pack))).unwrap_or_default();
                let mut rows = asked.admin()?.get(&format!("/api/v1/rules?limit=-1{pack}"), "list")?;
                if asked.is_json() {
                    return asked.print(&rows);
                }
                for row in rows.as_array_mut().into_iter().flatten() {
                    row["trigger"] = row["trigger"]["type"].take();
                    row["action"] = row["action"]["ref"].take();
                    row["suspended"] = row["suspended"]["until"].take();
                }
                let columns = [
                    ("REF", "ref"),
                    ("ENABLED", "enabled"),
                    ("TRIGGER", "trigger"),
                    ("ACTION", "action"),
                    ("SUSPENDED UNTIL", "suspended"),
                ];
                print_table(&rows, &columns)
            }
            RuleCommand::Get(named) => {
                let found = named.asked.admin()?.get(&named.path(), &named.what())?;
                named.asked.print(&found)
            }
            RuleCommand::Create { asked, file } => {
                let rule = read_file(&file)?;
                let made = asked.admin()?.post("/api/v1/rules", "rule", &rule)?;
                let name = made["ref"].as_str().unwrap_or_default();
                asked.tell(&made, &format!("rule `{name}` is registered"))
            }
            RuleCommand::Test(test) => test.run(),
            RuleCommand::Enable(named) => named.switch(true),
            RuleCommand::Disable(named) => named.switch(false),
            RuleCommand::Delete(named) => {
                named.asked.admin()?.delete(&named.path(), &named.what(), None)?;
                named.asked.tell(&json!({"ref": named.name}), &format!("{} is deleted", named.what()))
            }
        }
    }
}

impl Test {
    fn run(self) -> anyhow::Result<()> {
        let file = PathBuf::from(&self.rule);
        let mut body = match file.is_file() {
            true => json!({"rule": read_file(&file)?}),
            false => json!({"ref": self.rule}),
        };
        let is_replay = self.payload.is_none() && self.event.is_none();
        let given = [
            ("payload", self.payload),
            ("trigger_instance", self.event.map(Value::from)),
            ("since", self.since.map(Value::from)),
            ("until", self.until.map(Value::from)),
            ("limit", is_replay.then(|| Value::from(self.limit))),
        ];
        given
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)))
            .for_each(|(key, value)| body[key] = value);
        let what = format!("rule `{}`", self.rule);
        let tried = self.asked.admin()?.post("/api/v1/imori/rules/test", &what, &body)?;
        if self.asked.is_json() {
            self.asked.print(&tried)?;
        } else if is_replay {
            let columns = [
                ("EVENT", "trigger_instance"),
                ("TIME", "occurrence_time"),
                ("MATCH", "match"),
                ("ERROR", "error"),
            ];
            print_table(&tried["events"], &columns)?;
            print_line(&format!("{} of {} events match", tried["matched"], tried["tested"]))?;
        } else {
            print_explanation(&tried)?;
        }
        let is_match = tried["match"] == true || tried["matched"].as_u64().is_some_and(|matched| matched > 0);
        if !is_match {
            bail!("{what} does not match");
        }
        Ok(())
    }
}

fn print_explanation(tried: &Value) -> anyhow::Result<()> {
    let columns = [
        ("CRITERION", "key"),
        ("OPERATOR", "operator"),
        ("PATTERN", "pattern"),
        ("VALUE", "value"),
        ("MATCH", "match"),
        ("ERROR", "error"),
    ];
    print_table(&tried["criteria"], &columns)?;
    for set in tried["any_of"].as_array().into_iter().flatten() {
        print_line("\nany of:")?;
        print_table(&set["criteria"], &columns)?;
    }
    print_line("")?;
    print_table(&tried["actions"], &[("ACTION", "ref"), ("PARAMETERS", "parameters"), ("ERROR", "error")])
}
