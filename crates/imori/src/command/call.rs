//! `imori call`: a request and its reply.

use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use imori_core::name::Printable;
use imori_stomp::command::Command;

use super::argument::{Broker, Header, body, duration};
use crate::client::ClientError;
use crate::output::print;

/// The name of our inbox; the broker makes of it an address that only this connection reads.
const REPLY_TO: &[u8] = b"/temp-queue/imori-call";

/// Send a request and print the body of its reply.
///
/// A reply with an `error` header, as `imori respond` sends it, is printed as an error.
#[derive(Debug, Args)]
pub(crate) struct Call {
    #[command(flatten)]
    broker: Broker,
    /// Where to: `/queue/NAME`, `/topic/NAME`, `/exchange/NAME/KEY`.
    destination: String,
    /// The body; `-` reads it from the standard input.
    #[arg(default_value = "")]
    body: String,
    /// How long to wait for the reply, such as `5s` or `250ms`.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    timeout: Duration,
    /// A header of the request. Can be given several times.
    #[arg(long, value_name = "NAME:VALUE")]
    header: Vec<Header>,
}

impl Call {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let body = body(&self.body)?;
        let mut client = self.broker.connect()?;
        client.send(Command::Send, &body, |frame| {
            frame.header("destination", self.destination.as_bytes());
            frame.header("reply-to", REPLY_TO);
            self.header.iter().for_each(|header| header.write(frame));
        })?;
        let deadline = Instant::now() + self.timeout;
        let reply = loop {
            let received = client.receive(Some(deadline)).map_err(|error| match error {
                ClientError::TimedOut(_) => ClientError::TimedOut("no reply in time; is anyone subscribed?"),
                other => other,
            })?;
            if received.command == Command::Message {
                break received;
            }
        };
        client.disconnect()?;
        if let Some(error) = reply.header("error") {
            bail!("the responder answers: {}", Printable(error));
        }
        print(&[reply.body.as_slice(), b"\n"].concat())
    }
}
