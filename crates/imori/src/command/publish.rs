//! `imori pub`: send messages.

use clap::Args;
use imori_stomp::command::Command;

use super::argument::{Broker, Header, body};

/// Asked for with the last message: the receipts of one destination come in order.
const RECEIPT: &[u8] = b"last";

/// Send a message, and wait until the broker has taken it.
#[derive(Debug, Args)]
pub(crate) struct Pub {
    #[command(flatten)]
    broker: Broker,
    /// Where to: `/queue/NAME`, `/topic/NAME`, `/exchange/NAME/KEY`.
    destination: String,
    /// The body; `-` reads it from the standard input.
    #[arg(default_value = "")]
    body: String,
    /// A header of the message. Can be given several times.
    #[arg(long, value_name = "NAME:VALUE")]
    header: Vec<Header>,
    /// How often to send it.
    #[arg(long, value_name = "N", default_value_t = 1)]
    count: u64,
}

impl Pub {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let body = body(&self.body)?;
        let mut client = self.broker.connect()?;
        for number in 1..=self.count {
            client.send(Command::Send, &body, |frame| {
                frame.header("destination", self.destination.as_bytes());
                self.header.iter().for_each(|header| header.write(frame));
                if number == self.count {
                    frame.header("receipt", RECEIPT);
                }
            })?;
        }
        if self.count > 0 {
            client.receipt(RECEIPT)?;
        }
        client.disconnect()?;
        Ok(())
    }
}
