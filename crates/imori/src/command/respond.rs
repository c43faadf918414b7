//! `imori respond`: answers requests.

use std::io::{self, Write as _};
use std::process::{Command as Process, Stdio};
use std::thread;

use clap::Args;

use super::argument::Broker;
use crate::client::{Ack, Subscription};

/// Answer each request, until interrupted.
///
/// The reply goes to the reply address of the request and carries its `correlation-id`, if it has one. An unanswerable
/// request gets an empty reply with an `error` header. Responders of one queue, or in NATS of one subject, share the
/// requests.
#[derive(Debug, Args)]
pub(crate) struct Respond {
    #[command(flatten)]
    broker: Broker,
    /// The source of requests: `/queue/NAME`, `/topic/PATTERN`, `/exchange/NAME/KEY` in STOMP and AMQP, a subject in
    /// NATS.
    destination: String,
    #[command(flatten)]
    answer: Answer,
    /// Stop after this many requests.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

/// The reply to each request.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Answer {
    /// Replies with the standard output of this shell command, which reads the request from its standard
    /// input.
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,
    /// The request.
    #[arg(long)]
    echo: bool,
    /// The request, which is a decimal number, plus one.
    #[arg(long)]
    add_one: bool,
}

impl Respond {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let mut client = self.broker.connect()?;
        client.subscribe(&Subscription {
            source: &self.destination,
            is_shared: true,
            ack: Ack::Auto,
            headers: &[],
        })?;
        let mut left = self.count;
        while left != Some(0) {
            let request = client.receive(None)?;
            if request.reply_to.is_some() {
                client.reply(&request, &self.answer.to(&request.body))?;
            }
            left = left.map(|left| left - 1);
        }
        client.disconnect()?;
        Ok(())
    }
}

impl Answer {
    /// The reply to this request, or the error to reply with.
    fn to(&self, request: &[u8]) -> Result<Vec<u8>, String> {
        match &self.command {
            Some(command) => output_of(command, request),
            None if self.add_one => add_one(request),
            None => Ok(request.to_vec()),
        }
    }
}

/// The decimal number of a request, plus one.
///
/// # Errors
/// The request is no such number, or the sum is too large.
pub fn add_one(request: &[u8]) -> Result<Vec<u8>, String> {
    let number: Option<i64> = str::from_utf8(request.trim_ascii()).ok().and_then(|text| text.parse().ok());
    match number.and_then(|number| number.checked_add(1)) {
        Some(sum) => Ok(sum.to_string().into_bytes()),
        None => Err(String::from("the request is not a decimal number of 64 bits")),
    }
}

/// The output of a shell command that reads the request as its input.
///
/// # Errors
/// The command cannot be run or fails, as a sentence.
pub fn output_of(command: &str, request: &[u8]) -> Result<Vec<u8>, String> {
    let run = || -> io::Result<_> {
        let mut process =
            Process::new("sh").args(["-c", command]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdin = process.stdin.take();
        thread::scope(|scope| {
            // Written on another thread, so that a command that answers while it reads cannot
            // block. A command may leave input unread.
            scope.spawn(|| stdin.map(|mut stdin| stdin.write_all(request)));
            process.wait_with_output()
        })
    };
    match run() {
        Ok(output) if output.status.success() => Ok(output.stdout),
        Ok(output) => Err(format!("the command ended with {}", output.status)),
        Err(error) => Err(format!("the command cannot be run: {error}")),
    }
}
