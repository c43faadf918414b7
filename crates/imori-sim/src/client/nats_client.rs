//! A NATS client. A PONG confirms every command before its PING.

use imori_client::nats::{header_block, is_unheard};
use imori_nats::codec::connect::ConnectOptions;
use imori_nats::codec::decode::{Decoder, Step};
use imori_nats::codec::encode::{PING, PONG, push_connect, push_publish, push_subscribe, push_unsubscribe};
use imori_nats::codec::headers::Headers;
use imori_nats::codec::operation::{self, Message, ServerOp};
use imori_nats::limits::Limits;

use super::outgoing::{Destination, shared_name};
use super::protocol::{
    Abilities, ClientEvent, ClientProtocol, Confirmed, Delivered, Disconnect, HeaderUse, NumberHeader,
    Publish, Subscribe, Unsubscribe,
};

/// The subscription that receives replies.
const INBOX: &[u8] = b"inbox";

/// A client with or without headers.
pub(crate) struct NatsClient {
    session: usize,
    has_headers: bool,
    decoder: Decoder,
}

impl NatsClient {
    pub(crate) fn new(session: usize, has_headers: bool) -> NatsClient {
        NatsClient { session, has_headers, decoder: Decoder::new(Limits::default()) }
    }

    fn delivered(&self, message: &Message<'_>) -> ClientEvent {
        let subject = text(message.subject);
        if is_unheard(message) {
            return ClientEvent::NoResponders(subject);
        }
        let block = message.headers.unwrap_or_default();
        let header = |wanted: &[u8]| {
            Headers::new(block).find(|(name, _)| *name == wanted).map(|(_, value)| text(value))
        };
        ClientEvent::Delivered(Delivered {
            subscription: text(message.sid),
            body: message.payload.to_vec(),
            number_header: match self.has_headers {
                true => NumberHeader::Shown(header(b"n")),
                false => NumberHeader::Hidden,
            },
            death: header(b"x-death-reason").zip(header(b"x-death-queue")),
            reply_to: message.reply.map(text),
            ..Delivered::default()
        })
    }
}

impl ClientProtocol for NatsClient {
    fn abilities(&self) -> Abilities {
        Abilities {
            reads_topics: true,
            confirms_all: true,
            confirms_settles: true,
            has_groups: true,
            headers: if self.has_headers { HeaderUse::Sometimes } else { HeaderUse::Never },
            ..Abilities::default()
        }
    }

    fn connect(&mut self, out: &mut Vec<u8>, is_intruder: bool) {
        let has = self.has_headers;
        push_connect(
            out,
            &ConnectOptions {
                headers: has,
                no_responders: has,
                pass: is_intruder.then(|| String::from("wrong")),
                ..ConnectOptions::of_client("imori-sim")
            },
        );
        let subject = format!("_INBOX.{}.>", self.session);
        push_subscribe(out, &operation::Subscribe { subject: subject.as_bytes(), group: None, sid: INBOX });
    }

    fn subscribe(&mut self, out: &mut Vec<u8>, subscribe: &Subscribe<'_>) {
        let (subject, group) = (subject(subscribe.place), subscribe.group.map(str::as_bytes));
        let sid = subscribe.id.as_bytes();
        push_subscribe(out, &operation::Subscribe { subject: subject.as_bytes(), group, sid });
        out.extend_from_slice(PING);
    }

    fn unsubscribe(&mut self, out: &mut Vec<u8>, unsubscribe: &Unsubscribe<'_>) {
        let (sid, max) = (unsubscribe.id.as_bytes(), unsubscribe.deliveries_max);
        push_unsubscribe(out, &operation::Unsubscribe { sid, max });
        out.extend_from_slice(PING);
    }

    fn publish(&mut self, out: &mut Vec<u8>, publish: &Publish<'_>) -> Option<usize> {
        let outgoing = publish.outgoing;
        let subject = subject(&outgoing.place);
        let reply = outgoing.reply_to.map(|_| format!("_INBOX.{}.{}", publish.session, publish.message));
        let block = outgoing.has_headers.then(|| block(publish));
        let (reply, headers) = (reply.as_deref().map(str::as_bytes), block.as_deref());
        push_publish(
            out,
            &operation::Publish { subject: subject.as_bytes(), reply, headers, payload: publish.body },
        );
        if publish.confirm.is_some() {
            out.extend_from_slice(PING);
        }
        Some(reply.map_or(0, <[u8]>::len) + headers.map_or(0, <[u8]>::len))
    }

    fn disconnect(&mut self, out: &mut Vec<u8>, _: &Disconnect<'_>) {
        out.extend_from_slice(PING);
    }

    fn read(&mut self, input: &[u8]) -> Result<Option<(usize, ClientEvent)>, String> {
        let (op, consumed) = match self.decoder.server_op(input) {
            Ok(Step::Op { op, consumed }) => (op, consumed),
            Ok(Step::Incomplete { .. }) => return Ok(None),
            Err(error) => return Err(format!("no operation: {error}")),
        };
        let event = match op {
            ServerOp::Info(_) => ClientEvent::Nothing,
            ServerOp::Message(message) => self.delivered(&message),
            ServerOp::Ok => return Err(String::from("+OK, which it did not ask for")),
            // The queue is full or does not exist yet: the message is lost, and the client was
            // told.
            ServerOp::Err(message) if message.starts_with(b"Permissions Violation for Publish to ") => {
                ClientEvent::Nothing
            }
            ServerOp::Err(message) => ClientEvent::Refused { message: text(message), text: Vec::new() },
            ServerOp::Ping => ClientEvent::Answer(PONG.to_vec()),
            ServerOp::Pong => ClientEvent::Confirmed(Confirmed { name: None, level: None, count: None }),
        };
        Ok(Some((consumed, event)))
    }
}

/// Encodes the header block of a message.
fn block(publish: &Publish<'_>) -> Vec<u8> {
    let outgoing = publish.outgoing;
    let fields = [
        ("n", Some(publish.message.to_string())),
        ("Nats-Msg-Id", outgoing.once.map(shared_name)),
        ("priority", outgoing.priority.map(|priority| priority.to_string())),
        ("expiration", outgoing.expiration_ms.map(|ms| ms.to_string())),
    ];
    let fields = fields.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?)));
    header_block(fields).expect("NATS carries all of these")
}

/// The subject of a place. `*.#`, one word or more, is `>` in NATS.
fn subject(place: &Destination) -> String {
    match place {
        Destination::Queue(name) | Destination::DeclaredQueue(name) => format!("imori.queue.{name}"),
        Destination::Topic(subject) => match subject.strip_suffix("*.#") {
            Some(beginning) => format!("{beginning}>"),
            None => subject.clone(),
        },
        Destination::Reply(subject) => subject.clone(),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
