//! A STOMP client. It offers no heart-beats.

use std::time::{Duration, Instant};

use imori_core::name::Printable;
use imori_stomp::codec::command::Command;
use imori_stomp::codec::decode::{Decoder, Step};
use imori_stomp::codec::encode::FrameWriter;
use imori_stomp::codec::frame::{Frame, HeaderTable};
use imori_stomp::codec::version::Version;
use imori_stomp::limits::Limits;

use super::conversation::{Ack, Client, Header, Message, Received, Subscription, expiration};
use super::error::ClientError;
use super::transport::{PATIENCE, Transport};
use imori_bench::Url;

/// The receipt id of the last message: receipts of one destination arrive in order, so this one
/// confirms all.
const LAST: &[u8] = b"last";

/// The name of our inbox; the broker maps it to an address that only this connection can read.
const REPLY_TO: &[u8] = b"/temp-queue/imori-call";

/// A logged-in STOMP connection.
pub(super) struct Stomp {
    transport: Transport,
    version: Version,
    decoder: Decoder,
    table: HeaderTable,
}

impl Stomp {
    pub(super) fn connect(url: &Url) -> Result<Stomp, ClientError> {
        let mut decoder = Decoder::new(Limits::default());
        decoder.connected(Version::V12);
        let mut client = Stomp {
            transport: Transport::connect(url)?,
            version: Version::V12,
            decoder,
            table: HeaderTable::default(),
        };
        client.log_in(url)?;
        Ok(client)
    }

    fn log_in(&mut self, url: &Url) -> Result<(), ClientError> {
        self.send(Command::Connect, b"", |frame| {
            frame.header("accept-version", Version::SUPPORTED.as_bytes());
            frame.header("host", url.vhost.as_bytes());
            if let Some((login, passcode)) = &url.login {
                frame.header("login", login.as_bytes());
                frame.header("passcode", passcode.as_bytes());
            }
        })?;
        let (command, connected) = self.next(Some(Instant::now() + PATIENCE))?;
        if command != Command::Connected {
            return Err(ClientError::Unexpected(command.as_str()));
        }
        self.version = match connected.header("version") {
            None => Version::V10,
            Some(version) => Version::negotiate(Some(version))
                .map_err(|_| ClientError::Version(format!("STOMP {}", Version::SUPPORTED)))?,
        };
        self.decoder.connected(self.version);
        Ok(())
    }

    fn send(
        &mut self,
        command: Command,
        body: &[u8],
        headers: impl FnOnce(&mut FrameWriter<'_>),
    ) -> Result<(), ClientError> {
        let version = self.version;
        self.transport.write(|out| {
            let mut frame = FrameWriter::new(out, command, version);
            headers(&mut frame);
            match command {
                Command::Send => frame.body(body),
                _ => frame.end(),
            }
        })
    }

    /// Waits for the next frame. An ERROR frame is an error.
    fn next(&mut self, deadline: Option<Instant>) -> Result<(Command, Received), ClientError> {
        self.transport.flush()?;
        loop {
            if let Some((command, received)) = self.take()? {
                return match command {
                    Command::Error => Err(ClientError::Refused(error_text(&received))),
                    _ => Ok((command, received)),
                };
            }
            self.transport.read(deadline)?;
        }
    }

    /// Waits for the receipt with this id: the broker has taken responsibility for the frame.
    fn receipt(&mut self, id: &[u8]) -> Result<(), ClientError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (command, received) = self.next(Some(deadline))?;
            if command == Command::Receipt && received.header("receipt-id") == Some(id) {
                return Ok(());
            }
        }
    }

    /// The next frame of the input; `None` until all of it has arrived.
    fn take(&mut self) -> Result<Option<(Command, Received)>, ClientError> {
        loop {
            let step = self.decoder.decode(self.transport.input(), &mut self.table);
            match step.map_err(|error| ClientError::Decode("STOMP", error.into()))? {
                Step::Incomplete { .. } => return Ok(None),
                Step::Noise { consumed } => self.transport.consume(consumed),
                Step::Frame { frame, consumed } => {
                    let taken = (frame.command, received(&frame));
                    self.transport.consume(consumed);
                    return Ok(Some(taken));
                }
            }
        }
    }
}

impl Client for Stomp {
    fn publish(&mut self, message: &Message<'_>) -> Result<(), ClientError> {
        self.send(Command::Send, message.body, |frame| {
            frame.header("destination", message.destination.as_bytes());
            write_headers(frame, message.headers);
        })
    }

    fn publish_confirmed(&mut self, message: &Message<'_>) -> Result<(), ClientError> {
        self.send(Command::Send, message.body, |frame| {
            frame.header("destination", message.destination.as_bytes());
            write_headers(frame, message.headers);
            frame.header("receipt", LAST);
        })?;
        self.receipt(LAST)
    }

    /// Ignores `is_shared`: subscribers share a message exactly if the destination is a queue.
    fn subscribe(&mut self, subscription: &Subscription<'_>) -> Result<(), ClientError> {
        self.send(Command::Subscribe, b"", |frame| {
            frame.header("id", b"0");
            frame.header("destination", subscription.source.as_bytes());
            frame.header("ack", ack_name(subscription.ack));
            write_headers(frame, subscription.headers);
        })
    }

    fn request(&mut self, message: &Message<'_>, patience: Duration) -> Result<(), ClientError> {
        self.send(Command::Send, message.body, |frame| {
            frame.header("destination", message.destination.as_bytes());
            frame.header("reply-to", REPLY_TO);
            write_headers(frame, message.headers);
            write_headers(frame, expiration(message.headers, patience).as_slice());
        })
    }

    fn reply(&mut self, request: &Received, answer: &Result<Vec<u8>, String>) -> Result<(), ClientError> {
        let Some(reply_to) = &request.reply_to else { return Ok(()) };
        self.send(Command::Send, answer.as_deref().unwrap_or_default(), |frame| {
            frame.header("destination", reply_to);
            if let Some(id) = request.header("correlation-id") {
                frame.header("correlation-id", id);
            }
            if let Err(error) = answer {
                frame.header("error", error.as_bytes());
            }
        })
    }

    /// STOMP 1.2, ACK: `id` is the `ack` header; before that, `message-id` and the subscription.
    fn accept(&mut self, message: &Received) -> Result<(), ClientError> {
        self.send(Command::Ack, b"", |frame| match (message.header("ack"), message.header("message-id")) {
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

    fn receive(&mut self, deadline: Option<Instant>) -> Result<Received, ClientError> {
        loop {
            if let (Command::Message, message) = self.next(deadline)? {
                return Ok(message);
            }
        }
    }

    fn disconnect(mut self: Box<Self>) -> Result<(), ClientError> {
        self.send(Command::Disconnect, b"", |frame| {
            frame.header("receipt", b"bye");
        })?;
        self.receipt(b"bye")
    }
}

fn write_headers(frame: &mut FrameWriter<'_>, headers: &[Header]) {
    for header in headers {
        frame.user_header(header.name.as_bytes(), header.value.as_bytes());
    }
}

/// The value of the `ack` header.
fn ack_name(ack: Ack) -> &'static [u8] {
    match ack {
        Ack::Auto => b"auto",
        Ack::Client => b"client",
        Ack::ClientIndividual => b"client-individual",
    }
}

fn received(frame: &Frame<'_>) -> Received {
    let headers =
        frame.headers.iter().map(|header| (header.name().into_owned(), header.value().into_owned()));
    let mut received = Received { headers: headers.collect(), reply_to: None, body: frame.body.to_vec() };
    received.reply_to = received.header("reply-to").map(<[u8]>::to_vec);
    received
}

/// The message header and the body of an ERROR frame, on one line.
fn error_text(error: &Received) -> String {
    let message = Printable(error.header("message").unwrap_or(b"ERROR")).to_string();
    match error.body.trim_ascii() {
        b"" => message,
        body => format!("{message}: {}", Printable(body)),
    }
}
