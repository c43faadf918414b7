//! `imori call`: sends a request and prints its reply.

use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use imori_core::name::Printable;

use super::argument::{Broker, body, duration, header};
use crate::client::{ClientError, Header, Message};
use crate::output::print;

/// Send a request and print the body of its reply.
///
/// A reply with an `error` header, as `imori respond` sends it, is printed as an error.
#[derive(Debug, Args)]
pub(crate) struct Call {
    #[command(flatten)]
    broker: Broker,
    /// The destination: `/queue/NAME`, `/topic/NAME`, `/exchange/NAME/KEY` in STOMP and AMQP, a subject in NATS.
    destination: String,
    /// The body; `-` reads it from the standard input.
    #[arg(default_value = "")]
    body: String,
    /// Time to wait for the reply, such as `5s` or `250ms`. The request also expires in its queue after this time,
    /// unless a header `expiration` says otherwise.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    timeout: Duration,
    /// A header of the request. Can be given several times.
    #[arg(long, value_name = "NAME:VALUE", value_parser = header)]
    header: Vec<Header>,
}

impl Call {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let body = body(&self.body)?;
        let mut client = self.broker.connect()?;
        let request = Message { destination: &self.destination, headers: &self.header, body: &body };
        client.request(&request, self.timeout)?;
        let deadline = Instant::now() + self.timeout;
        let reply = client.receive(Some(deadline)).map_err(|error| match error {
            ClientError::TimedOut(_) => ClientError::TimedOut("no reply in time; is anyone subscribed?"),
            other => other,
        })?;
        client.disconnect()?;
        if let Some(error) = reply.header("error") {
            bail!("the responder answers: {}", Printable(error));
        }
        print(&[reply.body.as_slice(), b"\n"].concat())
    }
}
