//! `imori pub`: sends messages.

use clap::Args;

use super::argument::{Broker, body, header};
use crate::client::{Header, Message};

/// Send a message, and wait until the broker has accepted it.
#[derive(Debug, Args)]
pub(crate) struct Pub {
    #[command(flatten)]
    broker: Broker,
    /// The destination: `/queue/NAME`, `/topic/NAME`, `/exchange/NAME/KEY` in STOMP and AMQP, a subject in NATS.
    destination: String,
    /// The body; `-` reads it from the standard input.
    #[arg(default_value = "")]
    body: String,
    /// A header of the message. Can be given several times.
    #[arg(long, value_name = "NAME:VALUE", value_parser = header)]
    header: Vec<Header>,
    /// Number of times to send the message.
    #[arg(long, value_name = "N", default_value_t = 1)]
    count: u64,
}

impl Pub {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let body = body(&self.body)?;
        let mut client = self.broker.connect()?;
        let message = Message { destination: &self.destination, headers: &self.header, body: &body };
        for number in 1..=self.count {
            match number == self.count {
                true => client.publish_confirmed(&message)?,
                false => client.publish(&message)?,
            }
        }
        client.disconnect()?;
        Ok(())
    }
}
