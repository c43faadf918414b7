//! This program, run again: for each turn, so that the client starts with fresh memory, and as a guard.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

/// The program, and its arguments before the current subcommand.
#[derive(Debug, Clone)]
pub(crate) struct Ourselves {
    program: PathBuf,
    before: Vec<String>,
}

impl Ourselves {
    /// Finds the program; `words` are the names that the current subcommand may have.
    pub(crate) fn found(words: &[&str]) -> Result<Ourselves> {
        let program = env::current_exe().context("this program cannot be found; mount `/proc`")?;
        let before = env::args().skip(1).take_while(|word| !words.contains(&word.as_str())).collect();
        Ok(Ourselves { program, before })
    }

    /// A command that runs another of our subcommands.
    pub(crate) fn command(&self, name: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.before).arg(name);
        command
    }

    /// The same command as words, with `before` in front.
    pub(crate) fn words(&self, before: Vec<String>, name: &str) -> Vec<String> {
        let program = self.program.to_string_lossy().into_owned();
        let own = std::iter::once(program).chain(self.before.iter().cloned());
        before.into_iter().chain(own).chain([name.to_owned()]).collect()
    }
}
