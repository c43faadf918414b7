//! A STOMP client. It offers no heart-beats.

use std::time::{Duration, Instant};

use imori_bench::Url;
use imori_client::stomp::{Reader, push_connect, version};
use imori_core::name::Printable;
use imori_stomp::codec::command::Command;
use imori_stomp::codec::encode::FrameWriter;
use imori_stomp::codec::frame::Frame;
use imori_stomp::codec::version::Version;
use imori_stomp::limits::Limits;

use super::conversation::{Ack, Client, Header, Message, Received, Subscription, expiration};
use super::error::ClientError;
use super::session::{Protocol, Session};

/// The receipt id of the last message: receipts of one destination arrive in order, so this one
/// confirms all.
const LAST: &[u8] = b"last";

/// The name of our inbox; the broker maps it to an address that only this connection can read.
const REPLY_TO: &[u8] = b"/temp-queue/imori-call";

/// A logged-in STOMP connection.
pub(super) struct Stomp {
    session: Session<Frames>,
    version: Version,
}

/// The broker's answers so far.
struct Frames {
    reader: Reader,
    version: Option<Version>,
    /// The id of the last receipt.
    receipt: Option<Vec<u8>>,
}

impl Protocol for Frames {
    fn take(
        &mut self,
        input: &[u8],
        _out: &mut Vec<u8>,
    ) -> Result<Option<(Option<Received>, usize)>, ClientError> {
        let taken = self.reader.take(input).map_err(|error| ClientError::Decode("STOMP", error))?;
        let Some((frame, used)) = taken else { return Ok(None) };
        let mut message = None;
        match frame {
            None => {}
            Some(frame) => match (frame.command, received(&frame)) {
                (Command::Message, received) => message = Some(received),
                (Command::Error, error) => return Err(ClientError::Refused(error_text(&error))),
                (Command::Receipt, receipt) => {
                    self.receipt = receipt.header("receipt-id").map(<[u8]>::to_vec);
                }
                (Command::Connected, _) => {
                    let known = || ClientError::Version(format!("STOMP {}", Version::SUPPORTED));
                    let version = version(&frame).ok_or_else(known)?;
                    self.version = Some(version);
                    self.reader.connected(version);
                }
                (command, _) => return Err(ClientError::Unexpected(command.as_str())),
            },
        }
        Ok(Some((message, used)))
    }
}

impl Stomp {
    pub(super) fn connect(url: &Url) -> Result<Stomp, ClientError> {
        let frames = Frames { reader: Reader::new(Limits::default()), version: None, receipt: None };
        let mut session = Session::connect(url, frames)?;
        session.write(|out| push_connect(out, Version::SUPPORTED, &url.vhost, url.user()))?;
        let version = session.wait(|frames| frames.version)?;
        Ok(Stomp { session, version })
    }

    fn send(
        &mut self,
        command: Command,
        body: &[u8],
        headers: impl FnOnce(&mut FrameWriter<'_>),
    ) -> Result<(), ClientError> {
        let version = self.version;
        self.session.write(|out| {
            let mut frame = FrameWriter::new(out, command, version);
            headers(&mut frame);
            match command {
                Command::Send => frame.body(body),
                _ => frame.end(),
            }
        })
    }

    /// Waits for the receipt with this id: the broker has taken responsibility for the frame.
    fn receipt(&mut self, id: &[u8]) -> Result<(), ClientError> {
        self.session.wait(|frames| frames.receipt.take().filter(|receipt| receipt == id)).map(drop)
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
        self.session.receive(deadline)
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
