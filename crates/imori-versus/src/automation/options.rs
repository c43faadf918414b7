//! The options of `automation`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use clap::Args;
use imori_bench::amount::{count, duration};

/// Where StackStorm's API is: host and port of an address such as `http://127.0.0.1:9101`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiUrl {
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl FromStr for ApiUrl {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<ApiUrl> {
        let wrong = || anyhow!("`{text}` is no address of the API; write it as `http://127.0.0.1:9101`");
        let place = text.strip_prefix("http://").ok_or_else(wrong)?.trim_end_matches('/');
        let (host, port) = place.rsplit_once(':').ok_or_else(wrong)?;
        let is_plain = |char: char| char.is_ascii_alphanumeric() || "-._:[]".contains(char);
        ensure!(!host.is_empty() && host.chars().all(is_plain), wrong());
        let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
        Ok(ApiUrl { host: host.to_owned(), port })
    }
}

/// Measures the automation of a broker through its HTTP API, and the evaluation of rules in this process.
#[derive(Debug, Clone, Args)]
pub struct AutomationOptions {
    /// The API of a broker that runs on this machine, such as `http://127.0.0.1:9101`; without it, brokers are started
    /// on free ports with empty folders, and ended. The rules and the pack that the measurement makes are removed.
    #[arg(long, value_name = "URL")]
    pub url: Option<ApiUrl>,
    /// A token for the API, sent as `X-Auth-Token`.
    #[arg(long, requires = "url")]
    pub token: Option<String>,
    /// A process of the running broker; by default the one that listens at the port.
    #[arg(long, requires = "url")]
    pub pid: Vec<u32>,
    /// The program `imori` to start; by default this program, or the one in the same folder.
    #[arg(long, value_name = "PATH", conflicts_with = "url")]
    pub imori: Option<PathBuf>,
    /// Pin the started broker to these CPUs, as `taskset -c` takes them.
    #[arg(long, value_name = "CPUS", conflicts_with = "url")]
    pub cpus_broker: Option<String>,
    /// Measure only figures whose names begin with this; separate several by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// How often each figure is measured; the table has the median.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=99))]
    pub rounds: u32,
    /// Events or executions in a round of a throughput.
    #[arg(long, value_parser = count, default_value = "10k")]
    pub operations: u64,
    /// Connections that send them. The broker admits 16, of which the measurement needs 2 for itself.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub connections: u32,
    /// Events a second while the time from an event to its action is measured.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rate: u32,
    /// How long that is measured in a round.
    #[arg(long, value_parser = duration, default_value = "5s")]
    pub time: Duration,
    /// Executions, one after the other, in a round of a latency.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: u32,
    /// CPU time in which rules are evaluated in this process, in a round of each number of rules.
    #[arg(long, value_parser = duration, default_value = "300ms")]
    pub cpu_time: Duration,
    /// Time that a broker has before its memory is read.
    #[arg(long, value_parser = duration, default_value = "1s")]
    pub hold: Duration,
    /// File for the result as JSON, `-` for standard output instead of the table.
    #[arg(long, value_name = "FILE")]
    pub json: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_the_api_is_read() {
        for (text, expected) in [
            ("http://127.0.0.1:9101", Some(("127.0.0.1", 9101))),
            ("http://localhost:80/", Some(("localhost", 80))),
            ("http://[::1]:9101", Some(("[::1]", 9101))),
            ("https://127.0.0.1:9101", None),
            ("127.0.0.1:9101", None),
            ("http://127.0.0.1", None),
            ("http://:9101", None),
            ("http://a\r\nb:9101", None),
            ("http://127.0.0.1:0", None),
            ("http://127.0.0.1:9101/v1", None),
        ] {
            let read = text.parse::<ApiUrl>().ok();
            let read = read.as_ref().map(|url| (url.host.as_str(), url.port));
            assert_eq!(read, expected, "{text}");
        }
    }
}
