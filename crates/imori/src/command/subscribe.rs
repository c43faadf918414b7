//! `imori sub`: prints messages.

use std::time::{Duration, Instant};

use clap::Args;
use imori_core::name::Printable;

use super::argument::{Broker, duration, header};
use crate::client::{Ack, ClientError, Header, Received, Subscription};
use crate::output::print;

/// Print the body of each message on its own line.
#[derive(Debug, Args)]
pub(crate) struct Sub {
    #[command(flatten)]
    broker: Broker,
    /// The source: `/queue/NAME`, `/topic/PATTERN`, `/exchange/NAME/KEY` in STOMP and AMQP, a subject in NATS.
    destination: String,
    /// How messages are settled: with `auto` when they are sent, with the other modes after they are printed. NATS has
    /// `auto` only.
    #[arg(long, value_enum, value_name = "MODE", default_value = "auto")]
    ack: Ack,
    /// Stop after this many messages.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Give up when no message has arrived for this time, such as `5s`.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// Print the headers and an empty line before each body; in NATS the subject and the reply
    /// address too, in AMQP the properties.
    #[arg(long)]
    headers: bool,
    /// A header of the SUBSCRIBE frame; in AMQP `prefetch-count`, or an argument of the queue or the consumer that
    /// begins with `x-`; NATS has none. Can be given several times.
    #[arg(long, value_name = "NAME:VALUE", value_parser = header)]
    header: Vec<Header>,
}

impl Sub {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let mut client = self.broker.connect()?;
        client.subscribe(&Subscription {
            source: &self.destination,
            is_shared: false,
            ack: self.ack,
            headers: &self.header,
        })?;
        let (mut left, mut is_first) = (self.count, true);
        while left != Some(0) {
            let deadline = self.timeout.map(|timeout| Instant::now() + timeout);
            let message = client.receive(deadline).map_err(|error| match error {
                ClientError::TimedOut(_) if is_first => ClientError::TimedOut(
                    "no message came in time; does anyone send there, and is the name the same?",
                ),
                ClientError::TimedOut(_) => ClientError::TimedOut("no further message came in time"),
                other => other,
            })?;
            is_first = false;
            self.print(&message)?;
            if self.ack != Ack::Auto {
                client.accept(&message)?;
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
