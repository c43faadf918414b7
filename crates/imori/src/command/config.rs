//! `imori config`: look at a configuration without starting the broker.

use std::env;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use imori_server::small_disk;

use crate::config::{load, sample, show};
use crate::output::{print, print_line};

/// Check a configuration file, show the values in force, or print a sample.
#[derive(Debug, Args)]
pub(crate) struct Config {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Say what is wrong with a configuration file, by line and column; all that `imori serve` would refuse of it, with
    /// the same exit code, 2. Also tells whether the disk of this machine is too small for it.
    Check {
        /// The configuration file.
        file: PathBuf,
        /// Allow listeners beyond loopback without TLS, as `imori serve --insecure-dev` does.
        #[arg(long)]
        insecure_dev: bool,
    },
    /// Print the values in force: the defaults, the file, and over them the environment.
    Show {
        /// The configuration file; without one, the defaults.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Print a sample file instead: every key with its documentation and default.
        #[arg(long, conflicts_with = "config")]
        sample: bool,
    },
}

impl Config {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self.action {
            Action::Check { file, insecure_dev } => {
                let mut loaded = load(Some(&file), std::iter::empty())?;
                loaded.config.insecure_dev = insecure_dev;
                loaded.check()?;
                print_line(&format!("{}: ok", file.display()))?;
                // It may be meant for another machine, so that it is no mistake.
                match small_disk(&loaded.config) {
                    Ok(Some(small)) => print_line(&format!("{}: on this machine {small}", file.display())),
                    Ok(None) | Err(_) => Ok(()),
                }
            }
            Action::Show { sample: true, .. } => print(sample().as_bytes()),
            Action::Show { config, .. } => {
                let loaded = load(config.as_deref(), env::vars_os())?;
                print(show(&loaded.config).as_bytes())
            }
        }
    }
}
