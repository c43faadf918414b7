//! The subcommands of `imori gateway`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use imori_gateway::Routes;

use super::import::ImportNginx;
use super::run::RunGateway;
use crate::output::print_line;

/// Check, show and serve the routes of the HTTP gateway.
#[derive(Debug, Args)]
pub(crate) struct GatewayCommand {
    #[command(subcommand)]
    action: GatewayAction,
}

#[derive(Debug, Subcommand)]
enum GatewayAction {
    /// Check a routes file and the scripts that it names. Prints every fault with its file and line.
    Check(RoutesFile),
    /// List the routes of a file: methods, path, action, and the user who acts.
    Routes(RoutesFile),
    Run(RunGateway),
    ImportNginx(ImportNginx),
}

/// A routes file.
#[derive(Debug, Args)]
struct RoutesFile {
    /// The routes file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl GatewayCommand {
    /// Runs the command and returns the exit code; `serve` runs a broker with the routes of a file.
    pub(crate) fn run(self, serve: impl FnOnce(RunGateway) -> anyhow::Result<()>) -> anyhow::Result<u8> {
        match self.action {
            GatewayAction::Run(run) => serve(run)?,
            GatewayAction::ImportNginx(import) => return import.run(),
            GatewayAction::Check(RoutesFile { file }) => {
                let routes = Routes::read(&file)?;
                print_line(&format!("{}: {} routes", file.display(), routes.lines().len()))?;
            }
            GatewayAction::Routes(RoutesFile { file }) => {
                for line in Routes::read(&file)?.lines() {
                    print_line(&line)?;
                }
            }
        }
        Ok(0)
    }
}
