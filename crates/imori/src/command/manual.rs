//! `imori completions` and `imori man`, generated from the declaration of the commands.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Command, ValueEnum};
use clap_complete::{Shell, generate};

use crate::output::print;

/// A shell that completes commands.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Completed {
    Bash,
    Zsh,
    Fish,
}

/// Print a shell's completion script: `source <(imori completions bash)`.
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell.
    shell: Completed,
}

impl Completions {
    pub(super) fn run(&self, mut command: Command) -> anyhow::Result<()> {
        let shell = match self.shell {
            Completed::Bash => Shell::Bash,
            Completed::Zsh => Shell::Zsh,
            Completed::Fish => Shell::Fish,
        };
        let mut text = Vec::new();
        generate(shell, &mut command, "imori", &mut text);
        print(&text)
    }
}

/// Write a manual page of each command into a folder.
#[derive(Debug, Args)]
pub(super) struct Man {
    /// The folder, such as `/usr/local/share/man/man1`; it is created if missing.
    folder: PathBuf,
}

impl Man {
    pub(super) fn run(&self, command: Command) -> anyhow::Result<()> {
        let told = || format!("`{}` cannot be written", self.folder.display());
        fs::create_dir_all(&self.folder).with_context(told)?;
        clap_mangen::generate_to(command, &self.folder).with_context(told)
    }
}
