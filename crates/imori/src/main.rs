//! The command line: the only place that exits the process.

mod command;
mod config;
mod log;
mod notify;
mod output;

use std::process::ExitCode;

use anyhow::Error;
use clap::Parser as _;
use imori_server::config::ExposedListener;

use command::Cli;
use config::Problems;
use output::OutputClosed;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// It could not be done.
const FAILED: u8 = 1;
/// The command line or the configuration is wrong; clap exits with the same code.
const MISUSED: u8 = 2;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        // `imori config show | head -1` has what it wanted.
        Err(error) if error.is::<OutputClosed>() => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&format!("{error:#}"));
            ExitCode::from(exit_code(&error))
        }
    }
}

fn exit_code(error: &Error) -> u8 {
    match error.is::<Problems>() || error.is::<ExposedListener>() {
        true => MISUSED,
        false => FAILED,
    }
}
