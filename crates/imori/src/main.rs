//! The command line: the only place that exits the process.

mod command;
mod administer;
mod reload;
mod config;
mod nats_server;
mod client;
mod log;
mod log_writer;
mod notify;
mod output;

use std::process::ExitCode;

use anyhow::Error;
use clap::Parser as _;
use imori_server::ServeError;

use client::ClientError;
use command::Cli;
use config::Problems;
use output::OutputClosed;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The exit code of a command that could not be carried out.
const FAILED: u8 = 1;
/// The command line or the configuration is wrong; clap exits with the same code.
const MISUSED: u8 = 2;
/// The disk failed while the broker ran: `EX_IOERR` of `sysexits.h`.
const DISK_FAILED: u8 = 74;
/// Nothing came within the time given.
const TIMED_OUT: u8 = 3;

fn main() -> ExitCode {
    let outcome = Cli::parse().run();
    log::flush();
    match outcome {
        Ok(code) => ExitCode::from(code),
        // `imori sub … | head -1` has what it wanted.
        Err(error) if error.is::<OutputClosed>() => ExitCode::SUCCESS,
        Err(error) => {
            output::print_error(&format!("{error:#}"));
            ExitCode::from(exit_code(&error))
        }
    }
}

fn exit_code(error: &Error) -> u8 {
    if error.is::<Problems>() {
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
