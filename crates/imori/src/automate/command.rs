//! `imori automate`: actions, executions, rules, triggers, packs and keys.

use clap::{Args, Subcommand};

use super::check::Fsck;
use super::execution::{Exec, Run};
use super::key::Kv;
use super::login::Login;
use super::new::New;
use super::pack::Pack;
use super::rule::Rule;
use super::store::Store;
use super::trigger::Trigger;
use super::workflow::Workflow;

/// Run actions, and administer the automation of a broker.
#[derive(Debug, Args)]
pub(crate) struct Automate {
    #[command(subcommand)]
    command: AutomateCommand,
}

#[derive(Debug, Subcommand)]
enum AutomateCommand {
    Login(Login),
    Run(Run),
    Exec(Exec),
    Rule(Rule),
    Trigger(Trigger),
    Pack(Pack),
    Kv(Kv),
    New(New),
    Workflow(Workflow),
    Fsck(Fsck),
    Store(Store),
}

impl Automate {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            AutomateCommand::Login(login) => login.run(),
            AutomateCommand::Run(run) => run.run(),
            AutomateCommand::Exec(exec) => exec.run(),
            AutomateCommand::Rule(rule) => rule.run(),
            AutomateCommand::Trigger(trigger) => trigger.run(),
            AutomateCommand::Pack(pack) => pack.run(),
            AutomateCommand::Kv(kv) => kv.run(),
            AutomateCommand::New(new) => new.run(),
            AutomateCommand::Workflow(workflow) => workflow.run(),
            AutomateCommand::Fsck(fsck) => fsck.run(),
            AutomateCommand::Store(store) => store.run(),
        }
    }
}
