//! `imori config`: checks, shows and compares configurations, and reloads that of a running broker.

use std::env;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use imori_server::config::Section;
use imori_server::small_disk;

use crate::admin_client::AdminOptions;
use crate::administer::{reload, running};
use crate::config::{load, sample, show};
use crate::output::{OutputClosed, print, print_error, print_line};

/// The exit code if two configurations differ, as with `diff`.
const DIFFERENT: u8 = 1;

/// The exit code if they cannot be compared.
const CANNOT_COMPARE: u8 = 2;

/// Check a configuration file, show the values in force, compare them, or reload them.
#[derive(Debug, Args)]
pub(crate) struct Config {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Report every error in a configuration file that `imori serve` would refuse, by line and column, with the same
    /// exit code, 2. Also reports if the disk of this machine is too small for it.
    Check {
        /// The configuration file.
        file: PathBuf,
        /// Allow listeners beyond loopback without TLS, as `imori serve --insecure-dev` does.
        #[arg(long)]
        insecure_dev: bool,
    },
    /// Print the values in force: the defaults, overridden by the file and then by the environment.
    Show {
        /// The configuration file; without one, the defaults.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Print a sample file instead: every key with its documentation and default.
        #[arg(long, conflicts_with = "config")]
        sample: bool,
    },
    /// Have a running broker read its configuration again, as SIGHUP does. Prints the keys that were applied and those
    /// that wait for a restart; an invalid configuration changes nothing, and its errors are printed by file and line.
    Reload {
        #[command(flatten)]
        asked: AdminOptions,
    },
    /// Print the differences between a running broker and a file, or between two files.
    ///
    /// A line has the key, its first value and its second value. Environment variables are ignored; without a file the
    /// running broker is compared with the defaults.
    ///
    /// Exit codes: 0 no difference, 1 a difference, 2 the configurations cannot be compared.
    Diff {
        #[command(flatten)]
        asked: AdminOptions,
        /// The file to compare with the running broker, or the first of two files.
        file: Option<PathBuf>,
        /// The second of two files.
        second: Option<PathBuf>,
    },
}

impl Config {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        let done = match self.action {
            Action::Diff { asked, file, second } => {
                return match diff(&asked, file.as_deref(), second.as_deref()) {
                    Err(error) if !error.is::<OutputClosed>() => {
                        print_error(&format!("{error:#}"));
                        Ok(CANNOT_COMPARE)
                    }
                    outcome => outcome,
                };
            }
            Action::Reload { asked } => reload(&asked),
            Action::Check { file, insecure_dev } => {
                let mut loaded = load(Some(&file), std::iter::empty())?;
                loaded.config.insecure_dev = insecure_dev;
                loaded.check()?;
                print_line(&format!("{}: ok", file.display()))?;
                // Not an error: the configuration may be meant for another machine.
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
        };
        done.map(|()| 0)
    }
}

/// Prints the differences between two configurations and returns the exit code.
fn diff(asked: &AdminOptions, file: Option<&Path>, second: Option<&Path>) -> anyhow::Result<u8> {
    let (before, after) = match second {
        Some(second) => (keys_of(file)?, keys_of(Some(second))?),
        None => (running(asked)?, keys_of(file)?),
    };
    let mut code = 0;
    for (key, to) in &after {
        let from = before.iter().find(|(known, _)| known == key).map_or("", |(_, value)| value);
        if from != to {
            print_line(&format!("{key}: {from} -> {to}"))?;
            code = DIFFERENT;
        }
    }
    Ok(code)
}

/// Every key of a file, or of the defaults, with its value as TOML.
fn keys_of(file: Option<&Path>) -> anyhow::Result<Vec<(String, String)>> {
    let config = load(file, std::iter::empty())?.config;
    let of_section = |section: Section| {
        let keys = section.keys.into_iter();
        keys.map(move |key| (format!("{}.{}", section.name, key.name), key.value))
    };
    Ok(config.sections().into_iter().flat_map(of_section).collect())
}
