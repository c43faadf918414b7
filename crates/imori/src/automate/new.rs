//! `imori automate new`: the folder of a new pack.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};

use crate::output::print_line;

/// Bytes of a pack's name.
const NAME_BYTES_MAX: usize = 64;

/// Make the folder of a new pack.
#[derive(Debug, Args)]
pub(super) struct New {
    #[command(subcommand)]
    command: NewCommand,
}

#[derive(Debug, Subcommand)]
enum NewCommand {
    /// Make a folder with an action, a rule for it, and a test.
    ///
    /// `imori automate pack install ./NAME` installs it.
    Pack {
        /// The name of the pack: lower-case letters, digits and `_`, with a letter first.
        name: String,
        /// Make it in this folder.
        #[arg(long, value_name = "DIR", default_value = ".")]
        dir: PathBuf,
    },
}

impl New {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let NewCommand::Pack { name, dir } = self.command;
        let is_name = name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
            && name.bytes().next().is_some_and(|first| first.is_ascii_lowercase())
            && name.len() <= NAME_BYTES_MAX;
        if !is_name {
            bail!(
                "`{name}` is no name of a pack; use up to {NAME_BYTES_MAX} lower-case letters, digits and `_`, with a \
                 letter first"
            );
        }
        let folder = dir.join(&name);
        let shown = folder.display();
        if folder.exists() {
            bail!("`{shown}` exists already; choose another name or `--dir`");
        }
        for (path, text) in FILES {
            let path = folder.join(path);
            let told = || format!("`{}` cannot be written", path.display());
            fs::create_dir_all(path.parent().unwrap_or(&folder)).with_context(told)?;
            fs::write(&path, text.replace("PACK", &name)).with_context(told)?;
        }
        print_line(&format!("pack `{name}` is in `{shown}`"))
    }
}

const FILES: [(&str, &str); 6] = [
    (
        "pack.yaml",
        "---
ref: PACK
name: PACK
description: The pack PACK.
version: 0.1.0
author: PACK
email: PACK@example.com
python_versions:
  - \"3\"
",
    ),
    (
        "actions/greet.yaml",
        "---
name: greet
description: Greets someone.
runner_type: python-script
entry_point: greet.py
enabled: true
parameters:
  name:
    type: string
    description: The name of the one to greet.
    required: true
",
    ),
    (
        "actions/greet.py",
        "from st2common.runners.base_action import Action


class Greet(Action):
    def run(self, name):
        return {\"greeting\": \"Hello, \" + name}
",
    ),
    (
        "rules/greet_visitors.yaml",
        "---
name: greet_visitors
pack: PACK
description: Greets each visitor that the webhook PACK announces.
enabled: true
trigger:
  type: core.st2.webhook
  parameters:
    url: PACK
criteria:
  trigger.body.visitor:
    type: exists
action:
  ref: PACK.greet
  parameters:
    name: \"{{ trigger.body.visitor }}\"
",
    ),
    (
        "tests/test_greet.py",
        "from greet import Greet
from st2tests.base import BaseActionTestCase


class GreetTest(BaseActionTestCase):
    action_cls = Greet

    def test_it_greets(self):
        result = self.get_action_instance().run(name=\"Ann\")
        self.assertEqual(result, {\"greeting\": \"Hello, Ann\"})
",
    ),
    ("requirements.txt", ""),
];
