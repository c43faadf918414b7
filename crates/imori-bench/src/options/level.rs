//! The level of safety required of messages, and the arguments of the queues that store them.

use std::str::FromStr;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

/// How safe a message is before the broker confirms it; each level includes those before it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The broker has the message in memory.
    #[default]
    Memory,
    /// The kernel has the message, which survives the end of the broker process.
    Os,
    /// The message is on disk and survives a power cut.
    Disk,
}

impl Level {
    /// All levels, lowest first.
    pub(crate) const ALL: [Level; 3] = [Level::Memory, Level::Os, Level::Disk];

    /// The level's word on the command line, on the wire and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Level::Memory => "memory",
            Level::Os => "os",
            Level::Disk => "disk",
        }
    }

    /// Whether messages must survive the broker's own memory, and so need durable queues.
    pub fn is_durable(self) -> bool {
        self > Level::Memory
    }
}

/// An argument of a queue declaration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueueArgument {
    /// The name, such as `x-queue-type`.
    pub name: String,
    /// The value, such as `quorum`.
    pub value: String,
}

impl FromStr for QueueArgument {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<QueueArgument> {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let is_plain = |word: &str| {
            !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
        };
        ensure!(
            is_plain(name) && is_plain(value),
            "`{text}` is no argument of a queue; write it as `x-queue-type=quorum`"
        );
        Ok(QueueArgument { name: name.to_owned(), value: value.to_owned() })
    }
}

/// The safety and the arguments of queues.
#[derive(Debug, Default, Clone, Args)]
pub struct KeepOptions {
    /// How safe messages are to be: `os` and `disk` send persistent messages to durable queues. With `--confirm`, the
    /// level that the broker reports with a confirm is checked against it, if it reports one.
    #[arg(long, value_enum, default_value_t)]
    pub level: Level,
    /// An argument of the declared queues, such as `x-queue-type=quorum`; repeatable.
    #[arg(long, value_name = "NAME=VALUE")]
    pub queue_argument: Vec<QueueArgument>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_queues_are_read_and_cannot_add_headers() {
        for (text, expected) in [
            ("x-queue-type=quorum", Some(("x-queue-type", "quorum"))),
            ("x-max-length=10", Some(("x-max-length", "10"))),
            ("x-queue-type", None),
            ("=quorum", None),
            ("a=b\nreceipt:1", None),
            ("a:b=c", None),
        ] {
            let read = text.parse::<QueueArgument>().ok();
            let read = read.as_ref().map(|it| (it.name.as_str(), it.value.as_str()));
            assert_eq!(read, expected, "{text}");
        }
    }

    #[test]
    fn each_level_includes_those_before_it() {
        assert!(Level::ALL.is_sorted());
        assert_eq!(Level::ALL.map(Level::is_durable), [false, true, true]);
        assert_eq!(Level::ALL.map(Level::name), ["memory", "os", "disk"]);
    }
}
