//! A STOMP client.

use imori_client::stomp::{self, Reader, push_connect};
use imori_stomp::codec::command::Command;
use imori_stomp::codec::encode::FrameWriter;
use imori_stomp::codec::frame::Frame;
use imori_stomp::codec::version::Version;
use imori_stomp::limits::Limits;

use super::outgoing::{Destination, message_name, shared_name};
use super::protocol::{
    Abilities, CancelDelayed, ClientEvent, ClientProtocol, Confirmed, Delivered, Disconnect, HeaderUse,
    NumberHeader, Publish, Settle, Subscribe, Transact, Unsubscribe,
};
use crate::model::{Mode, Outcome};

/// A client of one version.
pub(crate) struct StompClient {
    version: Version,
    reader: Reader,
}

impl StompClient {
    pub(crate) fn new(version: Version) -> StompClient {
        StompClient { version, reader: Reader::new(Limits::default()) }
    }

    /// Writes a frame without a body.
    fn frame(&self, out: &mut Vec<u8>, command: Command, write: impl FnOnce(&mut FrameWriter<'_>)) {
        let mut frame = FrameWriter::new(out, command, self.version);
        write(&mut frame);
        frame.end();
    }
}

impl ClientProtocol for StompClient {
    fn abilities(&self) -> Abilities {
        Abilities {
            reads_queues: true,
            reads_topics: true,
            declares: true,
            delays: true,
            persists: true,
            transacts: true,
            has_named_confirms: true,
            confirms_all: true,
            confirms_settles: true,
            headers: HeaderUse::Always,
            ..Abilities::default()
        }
    }

    fn connect(&mut self, out: &mut Vec<u8>, is_intruder: bool) {
        let user = is_intruder.then_some(("guest", "wrong"));
        push_connect(out, self.version.as_str(), "/", user);
    }

    fn subscribe(&mut self, out: &mut Vec<u8>, subscribe: &Subscribe<'_>) {
        let ack = match subscribe.mode {
            Mode::Auto => "auto",
            Mode::Client => "client",
            Mode::Individual => "client-individual",
        };
        self.frame(out, Command::Subscribe, |frame| {
            frame.header("id", subscribe.id.as_bytes());
            frame.header("destination", destination(subscribe.place).as_bytes());
            frame.header("ack", ack.as_bytes());
            frame.header("receipt", subscribe.confirm.as_bytes());
            if subscribe.mode != Mode::Auto {
                frame.header_u64("prefetch-count", subscribe.prefetch as u64);
            }
            if let Some(priority) = subscribe.priority {
                frame.header_u64("x-priority", priority);
            }
            for (name, value) in subscribe.arguments {
                frame.header(name, value.as_bytes());
            }
        });
    }

    fn unsubscribe(&mut self, out: &mut Vec<u8>, unsubscribe: &Unsubscribe<'_>) {
        self.frame(out, Command::Unsubscribe, |frame| {
            frame.header("id", unsubscribe.id.as_bytes());
            frame.header("receipt", unsubscribe.confirm.as_bytes());
        });
    }

    fn publish(&mut self, out: &mut Vec<u8>, publish: &Publish<'_>) -> Option<usize> {
        let outgoing = publish.outgoing;
        let mut frame = FrameWriter::new(out, Command::Send, self.version);
        frame.header("destination", destination(&outgoing.place).as_bytes());
        for (name, value) in outgoing.arguments {
            frame.header(name, value.as_bytes());
        }
        let reply_to = outgoing.reply_to.map(|inbox| format!("/temp-queue/in{inbox}"));
        optional(&mut frame, "receipt", publish.confirm);
        optional(&mut frame, "transaction", publish.transaction);
        optional(&mut frame, "reply-to", reply_to.as_deref());
        if outgoing.is_persistent {
            frame.header("persistent", b"true");
        }
        frame.header("n", publish.message.to_string().as_bytes());
        if outgoing.delay_ms.is_some() {
            frame.header("amqp-message-id", message_name(publish.message).as_bytes());
        } else if let Some(first) = outgoing.once {
            frame.header("amqp-message-id", shared_name(first).as_bytes());
        }
        let priority = outgoing.priority.map(u64::from);
        for (name, number) in
            [("priority", priority), ("expiration", outgoing.expiration_ms), ("x-delay", outgoing.delay_ms)]
        {
            if let Some(number) = number {
                frame.header_u64(name, number);
            }
        }
        frame.body(publish.body);
        None
    }

    fn cancel(&mut self, out: &mut Vec<u8>, cancel: &CancelDelayed<'_>) {
        let mut frame = FrameWriter::new(out, Command::Send, self.version);
        frame.header("destination", destination(cancel.place).as_bytes());
        frame.header("x-cancel", cancel.name.as_bytes());
        optional(&mut frame, "receipt", cancel.confirm);
        frame.body(b"");
    }

    fn settle(&mut self, out: &mut Vec<u8>, settle: &Settle<'_>) {
        let id = if self.version == Version::V12 { "id" } else { "message-id" };
        let command = if settle.outcome == Outcome::Accept { Command::Ack } else { Command::Nack };
        self.frame(out, command, |frame| {
            frame.header(id, settle.ack.as_bytes());
            if settle.outcome == Outcome::Reject {
                frame.header("requeue", b"false");
            }
            optional(frame, "receipt", settle.confirm);
            optional(frame, "transaction", settle.transaction);
        });
    }

    fn transact(&mut self, out: &mut Vec<u8>, step: Transact, name: &str, confirm: Option<&str>) {
        let command = match step {
            Transact::Begin => Command::Begin,
            Transact::Commit => Command::Commit,
            Transact::Abort => Command::Abort,
        };
        self.frame(out, command, |frame| {
            frame.header("transaction", name.as_bytes());
            optional(frame, "receipt", confirm);
        });
    }

    fn disconnect(&mut self, out: &mut Vec<u8>, disconnect: &Disconnect<'_>) {
        self.frame(out, Command::Disconnect, |frame| {
            frame.header("receipt", disconnect.confirm.as_bytes());
        });
    }

    fn read(&mut self, input: &[u8]) -> Result<Option<(usize, ClientEvent)>, String> {
        let taken = self.reader.take(input).map_err(|error| format!("no frame: {error}"))?;
        let Some((frame, len)) = taken else { return Ok(None) };
        let Some(frame) = frame else { return Ok(Some((len, ClientEvent::Nothing))) };
        let is_connected = frame.command == Command::Connected;
        let event = event(self.version, &frame)?;
        if is_connected {
            self.reader.connected(self.version);
        }
        Ok(Some((len, event)))
    }
}

fn event(version: Version, frame: &Frame<'_>) -> Result<ClientEvent, String> {
    let header = |name| header(frame, name);
    match frame.command {
        Command::Connected => match stomp::version(frame) {
            Some(chosen) if chosen == version => Ok(ClientEvent::Nothing),
            other => Err(format!("the version is {other:?}")),
        },
        Command::Receipt => Ok(ClientEvent::Confirmed(Confirmed {
            name: Some(header("receipt-id").unwrap_or_default()),
            level: header("imori-level"),
            count: header("imori-cancelled").and_then(|count| count.parse().ok()),
        })),
        Command::Message => Ok(ClientEvent::Delivered(delivered(version, frame))),
        Command::Error => Ok(ClientEvent::Refused {
            message: header("message").unwrap_or_default(),
            text: frame.body.to_vec(),
        }),
        other => Err(format!("{other} is not for clients")),
    }
}

fn delivered(version: Version, frame: &Frame<'_>) -> Delivered {
    let header = |name| header(frame, name);
    let id = header("message-id").unwrap_or_default();
    let number = id.rsplit(['-', '.']).next().and_then(|digits| digits.parse().ok()).unwrap_or(0);
    Delivered {
        subscription: header("subscription").unwrap_or_default(),
        number: Some(number),
        ack: if version == Version::V12 { header("ack").unwrap_or_default() } else { id },
        body: frame.body.to_vec(),
        number_header: NumberHeader::Shown(header("n")),
        is_redelivered: header("redelivered").as_deref() == Some("true"),
        text_bytes: own_lines(frame),
        death: header("x-death-reason").zip(header("x-death-queue")),
        reply_to: header("reply-to"),
    }
}

fn header(frame: &Frame<'_>, name: &str) -> Option<String> {
    frame.headers.value(name).map(|value| String::from_utf8_lossy(&value).into_owned())
}

fn optional(frame: &mut FrameWriter<'_>, name: &'static str, value: Option<&str>) {
    if let Some(value) = value {
        frame.header(name, value.as_bytes());
    }
}

fn destination(place: &Destination) -> String {
    match place {
        Destination::Queue(name) => format!("/queue/{name}"),
        Destination::DeclaredQueue(name) => format!("/amq/queue/{name}"),
        Destination::Topic(subject) => format!("/topic/{subject}"),
        Destination::Reply(destination) => destination.clone(),
    }
}

/// Bytes of the header lines that the broker did not add.
fn own_lines(frame: &Frame<'_>) -> usize {
    let is_added = |name: &[u8]| {
        matches!(
            name,
            b"subscription" | b"message-id" | b"ack" | b"redelivered" | b"destination" | b"content-length"
        ) || name.starts_with(b"x-first-death-")
            || name.starts_with(b"x-death-")
    };
    let own = frame.headers.iter().filter(|header| !is_added(header.name));
    own.map(|header| header.name.len() + header.value.len() + 2).sum()
}
