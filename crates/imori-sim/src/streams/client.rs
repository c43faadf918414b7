//! A client of streams: its connection, and what it waits for.

use std::collections::BTreeMap;

use imori_client::nats::header_block;
use imori_core::time::Time;
use imori_nats::codec::connect::ConnectOptions;
use imori_nats::codec::decode::{Decoder, Step};
use imori_nats::codec::encode::{PONG, push_connect, push_publish, push_subscribe};
use imori_nats::codec::headers::status;
use imori_nats::codec::operation::{Publish, ServerOp, Subscribe};
use imori_nats::limits::Limits;

use super::ledger::Ledger;
use crate::machine::{Shared, read_instead};
use crate::property::Property;

/// The subscription that gets the answers to requests.
const ANSWERS: &str = "answers";

/// What a client is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It does anything.
    Any,
    /// It makes what is missing, publishes once to every stream, and reads all consumers to their end.
    Drain,
    /// It deletes all streams.
    Remove,
}

/// A client.
pub(crate) struct StreamClient {
    pub(super) session: usize,
    /// Its transport.
    pub(crate) pipe: usize,
    pub(crate) is_reading: bool,
    /// Whether it has closed its transport, or noticed its end.
    pub(crate) is_gone: bool,
    pub(crate) actions_left: usize,
    pub(crate) next_at: Time,
    pub(super) role: Role,
    /// What is left to do for one that is there to drain or remove.
    pub(super) agenda: usize,
    decoder: Decoder,
    input: Vec<u8>,
    last_request: u64,
    pub(super) requests: BTreeMap<u64, Request>,
    /// The consumers that it reads.
    pub(super) readers: BTreeMap<(usize, usize), Reader>,
    pub(super) unsettled: Vec<Delivery>,
}

/// A request that waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    MakeStream(usize),
    DeleteStream(usize),
    MakeConsumer(usize, usize),
    DeleteConsumer(usize, usize),
    Publish(usize),
    Ack(Delivery),
    /// Deletes a message of a stream in this life.
    Delete {
        stream: usize,
        life: usize,
        sequence: u64,
    },
    /// The purge with this index.
    Purge {
        stream: usize,
        life: usize,
        purge: usize,
    },
    /// Gets the last message with a key.
    GetLast {
        stream: usize,
        life: usize,
        key: usize,
        at: u64,
    },
    /// Gets the message with a number.
    Get {
        stream: usize,
        life: usize,
        sequence: u64,
        at: u64,
    },
}

/// A consumer that a client reads.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Reader {
    /// Messages that it asked for, and that it got.
    pub(super) asked: u64,
    pub(super) got: u64,
    /// The life of the consumer when it asked first.
    pub(super) life: usize,
}

/// A delivery that the client can settle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub(super) stream: usize,
    pub(super) consumer: usize,
    /// The life of the consumer that certainly made it.
    pub(super) life: Option<usize>,
    pub(super) sequence: u64,
    /// The rest of the subject of its acknowledgement.
    pub(super) deliveries: u64,
    pub(super) number: u64,
}

/// An operation of the broker, in the client's own memory.
pub(super) struct Heard {
    pub(super) sid: String,
    pub(super) subject: String,
    pub(super) reply: Option<Vec<u8>>,
    pub(super) headers: Option<Vec<u8>>,
    pub(super) payload: Vec<u8>,
}

impl StreamClient {
    /// A client that logs in on a transport.
    pub(crate) fn connect(
        shared: &Shared,
        ledger: &mut Ledger,
        pipe: usize,
        role: Role,
        actions_left: usize,
    ) -> StreamClient {
        let session = ledger.sessions;
        ledger.sessions += 1;
        let client = StreamClient {
            session,
            pipe,
            is_reading: true,
            is_gone: false,
            actions_left,
            next_at: Time::default(),
            role,
            agenda: 0,
            decoder: Decoder::new(Limits::default()),
            input: Vec::new(),
            last_request: 0,
            requests: BTreeMap::new(),
            readers: BTreeMap::new(),
            unsettled: Vec::new(),
        };
        let mut out = Vec::new();
        let options =
            ConnectOptions { headers: true, no_responders: true, ..ConnectOptions::of_client("imori-sim") };
        push_connect(&mut out, &options);
        let subject = format!("_INBOX.{session}.*");
        push_subscribe(
            &mut out,
            &Subscribe { subject: subject.as_bytes(), group: None, sid: ANSWERS.as_bytes() },
        );
        client.send(shared, &out);
        client
    }

    /// Sends a request, and waits for its answer.
    pub(super) fn request(
        &mut self,
        shared: &Shared,
        request: Request,
        subject: &str,
        headers: &[(&str, &str)],
        payload: &[u8],
    ) {
        self.last_request += 1;
        self.requests.insert(self.last_request, request);
        let reply = format!("_INBOX.{}.{}", self.session, self.last_request);
        self.publish(shared, subject, Some(&reply), headers, payload);
    }

    /// Publishes a message.
    pub(super) fn publish(
        &mut self,
        shared: &Shared,
        subject: &str,
        reply: Option<&str>,
        headers: &[(&str, &str)],
        payload: &[u8],
    ) {
        let block = header_block(headers.iter().copied()).expect("NATS carries all of these");
        let headers = (!headers.is_empty()).then_some(&*block);
        let (subject, reply) = (subject.as_bytes(), reply.map(str::as_bytes));
        let mut out = Vec::new();
        push_publish(&mut out, &Publish { subject, reply, headers, payload });
        self.send(shared, &out);
    }

    /// Subscribes to the messages of a consumer.
    pub(super) fn subscribe(&mut self, shared: &Shared, subject: &str, sid: &str) {
        let mut out = Vec::new();
        let (subject, sid) = (subject.as_bytes(), sid.as_bytes());
        push_subscribe(&mut out, &Subscribe { subject, group: None, sid });
        self.send(shared, &out);
    }

    fn send(&self, shared: &Shared, bytes: &[u8]) {
        shared.trace.note(&[self.session as u64, bytes.len() as u64], || {
            format!("session {} sends {}", self.session, text(bytes))
        });
        let instead = read_instead(shared.bug, bytes);
        shared.network.pipe(self.pipe).to_server.extend(instead.as_deref().unwrap_or(bytes));
    }

    /// What it is there for.
    pub(crate) fn role(&self) -> Role {
        self.role
    }

    /// Closes its side of the transport.
    pub(crate) fn close(&mut self, shared: &Shared) {
        shared.network.pipe(self.pipe).client_closed = true;
        self.is_gone = true;
    }

    /// Disconnects without notice, possibly in the middle of an operation.
    pub(super) fn die(&mut self, shared: &Shared) {
        {
            let mut pipe = shared.network.pipe(self.pipe);
            let len = pipe.to_server.len();
            pipe.to_server.truncate(shared.random.between(0, len));
            pipe.is_reset = true;
        }
        shared.trace.note(&[self.pipe as u64], || format!("session {} is torn down", self.session));
        self.is_gone = true;
    }

    /// Reads input. What arrives after the client's end is still checked.
    pub(crate) fn receive(&mut self, shared: &Shared, ledger: &mut Ledger, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        let input = std::mem::take(&mut self.input);
        let mut consumed = 0;
        while let Some(rest) = input.get(consumed..).filter(|rest| !rest.is_empty()) {
            let (heard, len) = match self.decoder.server_op(rest) {
                Ok(Step::Op { op, consumed }) => (hear(&op), consumed),
                Ok(Step::Incomplete { .. }) => break,
                Err(error) => {
                    shared.violate(Property::Framing, || {
                        format!("session {} reads no operation: {error}", self.session)
                    });
                    break;
                }
            };
            let read = rest.get(..len).unwrap_or_default();
            shared.trace.note(&[self.session as u64, len as u64], || {
                format!("session {} gets {}", self.session, text(read))
            });
            consumed += len;
            match heard {
                Ok(Some(heard)) => self.take(shared, ledger, &heard),
                Ok(None) => {}
                Err(Said::Ping) if !self.is_gone => self.send(shared, PONG),
                Err(Said::Ping) => {}
                Err(Said::Error(error)) => self.take_error(shared, &error),
            }
        }
        self.input = input.get(consumed..).unwrap_or_default().to_vec();
    }

    /// Reads the last bytes of a transport that the broker has ended.
    pub(crate) fn receive_last(&mut self, shared: &Shared, ledger: &mut Ledger) {
        self.is_gone = true;
        let (bytes, is_incomplete) = {
            let mut pipe = shared.network.pipe(self.pipe);
            pipe.has_last_bytes = false;
            let mut bytes: Vec<u8> = pipe.to_client.drain(..).collect();
            bytes.append(&mut pipe.unsent);
            pipe.client_closed = true;
            (bytes, pipe.is_unsent_incomplete)
        };
        if !is_incomplete {
            self.receive(shared, ledger, &bytes);
        }
    }

    fn take(&mut self, shared: &Shared, ledger: &mut Ledger, heard: &Heard) {
        if heard.sid != ANSWERS {
            return self.take_delivery(shared, ledger, heard);
        }
        let number = heard.subject.rsplit('.').next().and_then(|number| number.parse().ok());
        match number.and_then(|number: u64| self.requests.remove(&number)) {
            Some(request) => self.take_answer(shared, ledger, request, heard),
            // A stream that refused a message and was deleted since is not known as one that has answered.
            None if heard.headers.as_deref().and_then(status) == Some(b"503") => {}
            None => shared.violate(Property::Framing, || {
                format!(
                    "session {} gets an answer at `{}`, where it waits for none",
                    self.session, heard.subject
                )
            }),
        }
    }

    fn take_error(&mut self, shared: &Shared, error: &str) {
        let is_expected = ["Slow Consumer", "Server Shutdown"].iter().any(|known| error.contains(known));
        if !is_expected {
            shared.violate(Property::Framing, || format!("session {} is told `{error}`", self.session));
        }
        if !self.is_gone {
            self.close(shared);
        }
    }
}

/// What the broker says besides messages.
enum Said {
    Ping,
    Error(String),
}

/// An operation in the client's own memory; `None` if it needs no reaction.
fn hear(op: &ServerOp<'_>) -> Result<Option<Heard>, Said> {
    match op {
        ServerOp::Message(message) => Ok(Some(Heard {
            sid: text(message.sid),
            subject: text(message.subject),
            reply: message.reply.map(<[u8]>::to_vec),
            headers: message.headers.map(<[u8]>::to_vec),
            payload: message.payload.to_vec(),
        })),
        ServerOp::Err(error) => Err(Said::Error(text(error))),
        ServerOp::Ping => Err(Said::Ping),
        ServerOp::Info(_) | ServerOp::Ok | ServerOp::Pong => Ok(None),
    }
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace("\r\n", " | ")
}
