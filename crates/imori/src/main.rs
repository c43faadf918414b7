//! The command line: the only place that exits the process.

mod command;
mod automate;
mod administer;
mod admin_client;
mod reload;
mod gateway;
mod config;
mod nats_server;
mod client;
mod log;
mod log_writer;
mod watchdog;
mod notify;
mod arguments;
mod archive_files;
mod figures;
mod output;

use std::process::ExitCode;

use anyhow::Error;
use imori_server::ServeError;

use client::ClientError;
use command::Cli;
use config::Problems;
use output::OutputClosed;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The exit code of a command that failed.
const FAILED: u8 = 1;
/// The exit code for a wrong command line or configuration; clap uses the same.
const MISUSED: u8 = 2;
/// The exit code after the broker's disk failed: `EX_IOERR` of `sysexits.h`.
const DISK_FAILED: u8 = 74;
/// The exit code if nothing arrived in the given time.
const TIMED_OUT: u8 = 3;

fn main() -> ExitCode {
    let outcome = Cli::from_command_line().run();
    log::flush();
    match outcome {
        Ok(code) => ExitCode::from(code),
        // In `imori sub … | head -1` the reader has all it wanted.
        Err(error) if error.is::<OutputClosed>() => ExitCode::SUCCESS,
        Err(error) => {
            output::print_error(&format!("{error:#}"));
            ExitCode::from(exit_code(&error))
        }
    }
}

fn exit_code(error: &Error) -> u8 {
    if error.is::<Problems>() || error.is::<imori_gateway::Problems>() {
        return MISUSED;
    }
    if let Some(ServeError::Disk(_)) = error.downcast_ref() {
        return DISK_FAILED;
    }
    match error.downcast_ref() {
        Some(ClientError::TimedOut(_)) => TIMED_OUT,
        _ => FAILED,
    }
}
