//! `imori sub`: print messages.

use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use imori_core::name::Printable;
use imori_stomp::command::Command;

use super::argument::{Broker, Header, duration};
use crate::client::{Client, ClientError, Received};
use crate::output::print;

/// Print the body of each message that comes, on a line of its own.
#[derive(Debug, Args)]
pub(crate) struct Sub {
    #[command(flatten)]
    broker: Broker,
    /// Where from: `/queue/NAME`, `/topic/PATTERN`, `/exchange/NAME/KEY`.
    destination: String,
    /// How messages are settled: `auto` when they are sent, the others after they are printed.
    #[arg(long, value_enum, value_name = "MODE", default_value = "auto")]
    ack: Ack,
    /// Stop after so many messages.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Give up when no message has come for so long, such as `5s`.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// Print the headers and an empty line before each body.
    #[arg(long)]
    headers: bool,
    /// A header of the SUBSCRIBE frame. Can be given several times.
    #[arg(long, value_name = "NAME:VALUE")]
    header: Vec<Header>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Ack {
    Auto,
    Client,
    ClientIndividual,
}

impl Ack {
    fn name(self) -> &'static str {
        match self {
            Ack::Auto => "auto",
            Ack::Client => "client",
            Ack::ClientIndividual => "client-individual",
        }
    }
}

impl Sub {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let mut client = self.broker.connect()?;
        client.send(Command::Subscribe, b"", |frame| {
            frame.header("id", b"0");
            frame.header("destination", self.destination.as_bytes());
            frame.header("ack", self.ack.name().as_bytes());
            self.header.iter().for_each(|header| header.write(frame));
        })?;
        let mut left = self.count;
        while left != Some(0) {
            let deadline = self.timeout.map(|timeout| Instant::now() + timeout);
            let message = client.receive(deadline)?;
            if message.command != Command::Message {
                continue;
            }
            self.print(&message)?;
            if self.ack != Ack::Auto {
                ack(&mut client, &message)?;
            }
            left = left.map(|left| left - 1);
        }
        client.disconnect()?;
        Ok(())
    }

    fn print(&self, message: &Received) -> anyhow::Result<()> {
        let mut text = Vec::new();
        if self.headers {
            for (name, value) in &message.headers {
                text.extend_from_slice(format!("{}:{}\n", Printable(name), Printable(value)).as_bytes());
            }
            text.push(b'\n');
        }
        text.extend_from_slice(&message.body);
        text.push(b'\n');
        print(&text)
    }
}

/// STOMP 1.2, ACK: `id` is the `ack` header; before that, `message-id` and the subscription.
fn ack(client: &mut Client, message: &Received) -> Result<(), ClientError> {
    client.send(Command::Ack, b"", |frame| match (message.header("ack"), message.header("message-id")) {
        (Some(id), _) => {
            frame.header("id", id);
        }
        (None, Some(id)) => {
            frame.header("message-id", id);
            frame.header("subscription", b"0");
        }
        (None, None) => {}
    })
}
