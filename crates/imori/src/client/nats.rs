//! A client of core NATS. Nothing is acknowledged; a PONG proves that the broker has processed
//! everything before the PING.

use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant};

use imori_bench::Url;
use imori_client::nats;
use imori_core::name::Printable;
use imori_nats::address::QUEUE_PREFIX;
use imori_nats::codec::connect::ConnectOptions;
use imori_nats::codec::decode::{Decoder, Step};
use imori_nats::codec::encode::{PING, PONG, push_connect, push_publish, push_subscribe};
use imori_nats::codec::headers::Headers;
use imori_nats::codec::info::Info;
use imori_nats::codec::operation::{Publish, ServerOp, Subscribe};
use imori_nats::limits::Limits;

use super::conversation::{Ack, Client, Header, Message, Received, Subscription, expiration};
use super::error::ClientError;
use super::session::{Protocol, Session};

/// The queue group for shared subscriptions.
const GROUP: &[u8] = b"imori-respond";

/// A logged-in NATS connection.
pub(super) struct Nats {
    session: Session<Operations>,
    subscriptions: u32,
}

/// The server's answers so far.
struct Operations {
    decoder: Decoder,
    info: Option<Info>,
    has_pong: bool,
}

impl Protocol for Operations {
    fn take(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<(Option<Received>, usize)>, ClientError> {
        let step =
            self.decoder.server_op(input).map_err(|error| ClientError::Decode("NATS", error.into()))?;
        let Step::Op { op, consumed } = step else { return Ok(None) };
        let mut taken = None;
        match op {
            ServerOp::Message(message) if nats::is_unheard(&message) => return Err(ClientError::Unheard),
            ServerOp::Message(message) => taken = Some(received(&message)),
            ServerOp::Info(json) => {
                let not_json = || ClientError::Decode("NATS", "its INFO is not JSON".into());
                self.info = Some(Info::parse(json).ok_or_else(not_json)?);
            }
            ServerOp::Err(error) => return Err(ClientError::Refused(Printable(error).to_string())),
            ServerOp::Pong => self.has_pong = true,
            ServerOp::Ping => out.extend_from_slice(PONG),
            ServerOp::Ok => {}
        }
        Ok(Some((taken, consumed)))
    }
}

impl Nats {
    pub(super) fn connect(url: &Url) -> Result<Nats, ClientError> {
        let decoder = Decoder::new(Limits::of_client());
        let session = Session::connect(url, Operations { decoder, info: None, has_pong: false })?;
        let mut client = Nats { session, subscriptions: 0 };
        let greeting = client.session.wait(|operations| operations.info.take());
        let info = greeting.map_err(|error| match error {
            ClientError::TimedOut(_) => ClientError::TimedOut(
                "the broker does not begin, as a broker of NATS does; is it the right port?",
            ),
            other => other,
        })?;
        if info.tls_required && !url.is_tls {
            return Err(unspeakable("the broker demands TLS; write `tls://` instead of `nats://`"));
        }
        let (user, pass) = url.login.clone().unzip();
        let options = ConnectOptions { user, pass, ..ConnectOptions::of_client("imori") };
        client.session.write(|out| push_connect(out, &options))?;
        client.confirmed()?;
        Ok(client)
    }

    /// Waits until the server has processed everything sent so far.
    fn confirmed(&mut self) -> Result<(), ClientError> {
        self.session.write(|out| out.extend_from_slice(PING))?;
        self.session.wait(|operations| std::mem::take(&mut operations.has_pong).then_some(()))
    }

    fn send(
        &mut self,
        subject: &[u8],
        reply: Option<&[u8]>,
        headers: Option<&[u8]>,
        payload: &[u8],
    ) -> Result<(), ClientError> {
        self.session.write(|out| push_publish(out, &Publish { subject, reply, headers, payload }))
    }

    fn hear(&mut self, subject: &str, group: Option<&[u8]>) -> Result<(), ClientError> {
        self.subscriptions += 1;
        let sid = self.subscriptions.to_string();
        let subscribe = Subscribe { subject: subject.as_bytes(), group, sid: sid.as_bytes() };
        self.session.write(|out| push_subscribe(out, &subscribe))
    }
}

impl Client for Nats {
    fn publish(&mut self, message: &Message<'_>) -> Result<(), ClientError> {
        let headers = header_block(message.headers)?;
        self.send(subject(message.destination)?, None, headers.as_deref(), message.body)
    }

    fn publish_confirmed(&mut self, message: &Message<'_>) -> Result<(), ClientError> {
        self.publish(message)?;
        self.confirmed()
    }

    fn subscribe(&mut self, subscription: &Subscription<'_>) -> Result<(), ClientError> {
        if subscription.ack != Ack::Auto {
            return Err(unspeakable("core NATS knows no acknowledgement; leave `--ack` out"));
        }
        if !subscription.headers.is_empty() {
            return Err(unspeakable("a NATS subscription has no headers; leave `--header` out"));
        }
        subject(subscription.source)?;
        self.hear(subscription.source, subscription.is_shared.then_some(GROUP))
    }

    fn request(&mut self, message: &Message<'_>, patience: Duration) -> Result<(), ClientError> {
        // Only a queue stores requests; other requests go without headers, which every server
        // understands.
        let waits = message.destination.as_bytes().starts_with(QUEUE_PREFIX);
        let expiration = expiration(message.headers, patience).filter(|_| waits);
        let headers = header_block(&[message.headers, expiration.as_slice()].concat())?;
        let subject = subject(message.destination)?;
        let inbox = inbox();
        self.hear(&inbox, None)?;
        self.send(subject, Some(inbox.as_bytes()), headers.as_deref(), message.body)
    }

    fn reply(&mut self, request: &Received, answer: &Result<Vec<u8>, String>) -> Result<(), ClientError> {
        let Some(reply_to) = &request.reply_to else { return Ok(()) };
        let headers = match answer {
            Ok(_) => None,
            Err(error) => {
                let error = Printable(error.as_bytes()).to_string();
                header_block(&[Header { name: String::from("error"), value: error }])?
            }
        };
        self.send(reply_to, None, headers.as_deref(), answer.as_deref().unwrap_or_default())
    }

    fn accept(&mut self, _message: &Received) -> Result<(), ClientError> {
        Ok(())
    }

    fn receive(&mut self, deadline: Option<Instant>) -> Result<Received, ClientError> {
        self.session.receive(deadline)
    }

    fn disconnect(mut self: Box<Self>) -> Result<(), ClientError> {
        self.confirmed()
    }
}

/// Checks that a subject is safe in a control line.
pub fn subject(text: &str) -> Result<&[u8], ClientError> {
    let is_subject = !text.is_empty() && !text.bytes().any(|byte| byte.is_ascii_whitespace() || byte == 0);
    match is_subject {
        true => Ok(text.as_bytes()),
        false => {
            let told = format!("`{}` is no subject; write it as `orders.new`", Printable(text.as_bytes()));
            Err(ClientError::Unspeakable(told))
        }
    }
}

/// Encodes the header block; `None` without headers.
pub fn header_block(headers: &[Header]) -> Result<Option<Vec<u8>>, ClientError> {
    if headers.is_empty() {
        return Ok(None);
    }
    let fields = headers.iter().map(|header| (header.name.as_str(), header.value.as_str()));
    let block = nats::header_block(fields).map_err(|name| {
        let name = Printable(name.as_bytes());
        ClientError::Unspeakable(format!("NATS cannot carry the header `{name}`; leave it out"))
    })?;
    Ok(Some(block))
}

/// A random inbox subject, which no other client can guess.
pub fn inbox() -> String {
    let random = RandomState::new();
    format!("_INBOX.{:016x}{:016x}", random.hash_one(0), random.hash_one(1))
}

/// Converts a message; its subject and reply address come first in the headers.
fn received(message: &imori_nats::codec::operation::Message<'_>) -> Received {
    let mut headers = vec![(b"subject".to_vec(), message.subject.to_vec())];
    headers.extend(message.reply.map(|reply| (b"reply-to".to_vec(), reply.to_vec())));
    let carried = Headers::new(message.headers.unwrap_or_default());
    headers.extend(carried.map(|(name, value)| (name.to_vec(), value.to_vec())));
    let reply_to = message.reply.map(<[u8]>::to_vec);
    Received { headers, reply_to, body: message.payload.to_vec() }
}

fn unspeakable(what: &str) -> ClientError {
    ClientError::Unspeakable(String::from(what))
}
