//! This program, run again: for a turn, so that the client's memory is fresh, and for guards.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

/// The command that was given to this program, up to the word that names the comparison.
#[derive(Debug, Clone)]
pub(crate) struct Ourselves {
    program: PathBuf,
    before: Vec<String>,
}

impl Ourselves {
    /// Ourselves, given the words of which one names what is under way.
    pub(crate) fn found(words: &[&str]) -> Result<Ourselves> {
        let program = env::current_exe().context("this program cannot be found; mount `/proc`")?;
        let before = env::args().skip(1).take_while(|word| !words.contains(&word.as_str())).collect();
        Ok(Ourselves { program, before })
    }

    /// A command for another of our subcommands.
    pub(crate) fn command(&self, name: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.before).arg(name);
        command
    }

    /// The command as words, after these.
    pub(crate) fn words(&self, before: Vec<String>, name: &str) -> Vec<String> {
        let program = self.program.to_string_lossy().into_owned();
        let own = std::iter::once(program).chain(self.before.iter().cloned());
        before.into_iter().chain(own).chain([name.to_owned()]).collect()
    }
}
