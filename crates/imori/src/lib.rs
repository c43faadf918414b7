//! The command line: the only place that exits the process. The program calls [`run`] and nothing else.

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

/// The exit code of a command that failed.
const FAILED: u8 = 1;
/// The exit code for a wrong command line or configuration; clap uses the same.
const MISUSED: u8 = 2;
/// The exit code after the broker's disk failed: `EX_IOERR` of `sysexits.h`.
const DISK_FAILED: u8 = 74;
/// The exit code if nothing arrived in the given time.
const TIMED_OUT: u8 = 3;

/// Runs the command that the process was started with, and returns the exit code of the process.
pub fn run() -> ExitCode {
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

/// What the tests of this crate reach beside [`run`].
#[doc(hidden)]
pub mod for_tests {
    pub use crate::admin_client::admin::{Admin, segment};
    pub use crate::admin_client::context::{ContextAddress, Contexts, with_password, without_password};
    pub use crate::admin_client::destination::{Destination, Named, destination};
    pub use crate::admin_client::listens::{Listens, is_this_machine};
    pub use crate::administer::diagnosis::Evidence;
    pub use crate::administer::stream::{ago, body, limits_text, moment, size, span};
    pub use crate::administer::user::permission;
    pub use crate::archive_files::{NewBackup, open as open_backup};
    pub use crate::client::address::Address;
    pub use crate::client::amqp_message::{properties as amqp_properties, received as amqp_received};
    pub use crate::client::amqp10_message::{
        DELIVERY_ID, Node, message as amqp10_message, received as amqp10_received,
    };
    pub use crate::client::conversation::{Header, Received};
    pub use crate::client::error::ClientError;
    pub use crate::client::nats::{header_block, inbox, subject as nats_subject};
    pub use crate::command::argument::{
        ArgumentError, duration as duration_argument, header as header_argument,
    };
    pub use crate::command::respond::{add_one, output_of};
    pub use crate::command::{Cli, GROUPS};
    pub use crate::config::load;
    pub use crate::config::loading::Loaded;
    pub use crate::config::nearest::{distance, nearest_key, nearest_section};
    pub use crate::config::problem::Problems;
    pub use crate::config::text::{sample, show};
    pub use crate::figures::{bytes, count, counted, duration as shown_duration, rate};
    pub use crate::log::OneLine;
    pub use crate::log_writer::{LINES_MAX, LogFile, LogWriter, Output as LogOutput};
    pub use crate::nats_server::definitions::{Converted, definitions};
    pub use crate::nats_server::read::{Sources as NatsSources, read_from};
    pub use crate::nats_server::scalar::scalar;
    pub use crate::nats_server::value::{Item, Value as NatsValue};
    pub use crate::notify::{State as ServiceState, send as notify};
    pub use crate::watchdog::{is_alive, period as watchdog_period};
}
