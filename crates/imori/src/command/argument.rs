//! Arguments shared by several commands.

use std::env;
use std::error::Error;
use std::fmt;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::admin_client::{BrokerOptions, Listens};
use crate::client::{Client, Header, connect};
use crate::config::{Problems, load};
use crate::output::print_problem;
use imori_bench::Url;

/// Selects the broker to connect to.
#[derive(Debug, Args)]
pub(super) struct Broker {
    /// The broker: `stomp://user:password@host:port/vhost`, `nats://user:password@host:port` or
    /// `amqp://user:password@host:port/vhost`, or `amqp10://` likewise for AMQP 1.0; with TLS `stomps://`, `tls://`,
    /// `amqps://` and `amqp10s://`.
    ///
    /// Other users of this host can read command lines, so put a password that matters into the variable. Without an
    /// address the context or the data folder that is named gives it, then the current context, then the folder `.data`,
    /// then `stomp://127.0.0.1:61613`. An option counts before a variable.
    #[arg(long, value_name = "URL", env = "IMORI_URL", hide_env_values = true, value_parser = address)]
    url: Option<String>,
    #[command(flatten)]
    broker: BrokerOptions,
}

impl Broker {
    pub(super) fn connect(&self) -> anyhow::Result<Box<dyn Client>> {
        self.broker.trust.put_in_force();
        let found = self.broker.find(Listens::Messages, self.url.as_deref())?;
        if let Some(sentence) = found.passed_over {
            print_problem(&sentence);
        }
        Ok(connect(&found.address.parse()?)?)
    }
}

/// The address of a broker, as it was given.
fn address(text: &str) -> Result<String, String> {
    text.parse::<Url>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Selects the store to read.
#[derive(Debug, Args)]
pub(super) struct DataFolder {
    /// The data folder of the broker; without it, the configuration's folder.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The configuration file; without one, the defaults and the environment.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl DataFolder {
    pub(super) fn path(&self) -> Result<PathBuf, Problems> {
        match &self.data_dir {
            Some(path) => Ok(path.clone()),
            None => load(self.config.as_deref(), env::vars_os()).map(|loaded| loaded.config.broker.data_dir),
        }
    }
}

/// Parses a header such as `priority:4`.
pub fn header(text: &str) -> Result<Header, ArgumentError> {
    match text.split_once(':') {
        Some((name, value)) if !name.is_empty() => {
            Ok(Header { name: String::from(name), value: String::from(value) })
        }
        _ => Err(ArgumentError::Header),
    }
}

/// Parses a time such as `5s`, `250ms` or `2m`.
pub fn duration(text: &str) -> Result<Duration, ArgumentError> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let number: u32 = digits.parse().map_err(|_| ArgumentError::Duration)?;
    match unit {
        "ms" => Ok(Duration::from_millis(number.into())),
        "s" => Ok(Duration::from_secs(number.into())),
        "m" => Ok(Duration::from_secs(number.into()) * 60),
        _ => Err(ArgumentError::Duration),
    }
}

/// The body given by the argument; `-` reads it from standard input.
pub(super) fn body(argument: &str) -> io::Result<Vec<u8>> {
    match argument {
        "-" => {
            let mut body = Vec::new();
            io::stdin().read_to_end(&mut body)?;
            Ok(body)
        }
        text => Ok(text.as_bytes().to_vec()),
    }
}

/// The reason for refusing an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentError {
    /// A header has no name.
    Header,
    /// A duration has no unit or is too long.
    Duration,
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ArgumentError::Header => "expected a name, a colon and a value, such as `priority:4`",
            ArgumentError::Duration => "expected a number and a unit, such as `5s`, `250ms` or `2m`",
        })
    }
}

impl Error for ArgumentError {}
