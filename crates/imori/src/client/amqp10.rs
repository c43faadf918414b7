//! An AMQP 1.0 client. It waits until every message it sent is accepted; each link has its own
//! credit.

use std::collections::{BTreeSet, HashMap};
use std::process;
use std::time::{Duration, Instant};

use imori_amqp10::codec::composites::{Attach, Close, Disposition, Open, Performative, Target, Transfer};
use imori_amqp10::codec::frame::push_heartbeat;
use imori_amqp10::codec::restricted::Role;
use imori_amqp10::codec::symbols::Symbols;
use imori_amqp10::codec::value::Symbol;
use imori_bench::Url;
use imori_client::Malformed;
use imori_client::amqp10::{
    Credit, Item, Login, Reader, Receiver, WINDOW, push, push_accept, push_begin, push_login, push_message,
    push_receiver, push_sender, refusal,
};

use super::amqp10_message::{DELIVERY_ID, Node, message, received};
use super::conversation::{Ack, Client, Header, Message, Received, Subscription, expiration};
use super::error::ClientError;
use super::session::{Protocol, Session};

/// The channel of the only session.
const CHANNEL: u16 = 0;

/// The largest frame in either direction, in bytes; every broker accepts this size by default.
const FRAME_BYTES: u32 = 32 * 1024;

/// Bytes of a message per frame, which leaves room for the largest transfer written here.
const PART_BYTES: usize = FRAME_BYTES as usize - 256;

/// The link credit if no prefetch count is given.
const CREDIT: u32 = 100;

/// An AMQP 1.0 connection that is logged in and has a session.
pub(super) struct Amqp10 {
    session: Session<Links>,
    /// The sending links by node; the link of `None` is for messages that name their address
    /// themselves.
    senders: HashMap<Option<Node>, u32>,
    /// The delivery id of the next message to send.
    next_delivery: u32,
    /// The acknowledgement mode of the subscription.
    ack: Ack,
    /// The oldest delivery since the last acknowledgement; `Ack::Client` settles from here on.
    first_unsettled: Option<u32>,
}

/// The broker's answers so far.
struct Links {
    reader: Reader,
    links: Vec<Link>,
    is_begun: bool,
    is_closed: bool,
    /// Ids of messages sent but not yet accepted.
    unaccepted: BTreeSet<u32>,
    /// The broker's idle timeout.
    silence_max: Option<Duration>,
}

/// A link; its index in `links` is our handle.
#[derive(Default)]
struct Link {
    name: String,
    /// The broker's handle, once the broker has attached its end.
    remote: Option<u32>,
    /// Whether the broker attached its end with a terminus; without one it refuses the link.
    is_attached: bool,
    /// The address that the broker assigned to a dynamic source.
    address: Option<String>,
    credit: Credit,
    /// The credit of a receiving link when full; 0 for a sending link.
    window: u32,
}

impl Protocol for Links {
    fn take(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<(Option<Received>, usize)>, ClientError> {
        let Some((item, used)) = self.reader.take(input).map_err(wrong)? else { return Ok(None) };
        let mut message = None;
        match item {
            Item::Nothing | Item::Heartbeat | Item::Part(_) => {}
            Item::LoginRefused => {
                let text = "the login is wrong; correct user and password of the URL";
                return Err(ClientError::Refused(String::from(text)));
            }
            Item::Delivery(transfer, id, payload) => {
                message = Some(received(id, &payload).map_err(|error| wrong(error.into()))?);
                self.renew(transfer.handle, out);
            }
            Item::Performative(performative) => self.obey(&performative)?,
        }
        Ok(Some((message, used)))
    }

    fn silence_max(&self) -> Option<Duration> {
        self.silence_max
    }

    fn push_heartbeat(out: &mut Vec<u8>) {
        push_heartbeat(out);
    }
}

impl Links {
    fn obey(&mut self, performative: &Performative<'_>) -> Result<(), ClientError> {
        match performative {
            Performative::Open(Open { idle_time_out, .. }) => {
                let silence = idle_time_out.filter(|milliseconds| *milliseconds > 0);
                self.silence_max = silence.map(|milliseconds| Duration::from_millis(milliseconds.into()));
            }
            Performative::Begin(_) => self.is_begun = true,
            Performative::Attach(attach) => self.attached(attach),
            Performative::Flow(flow) => {
                let link =
                    self.links.iter_mut().find(|link| flow.handle.is_some() && link.remote == flow.handle);
                if let Some(link) = link.filter(|link| link.window == 0) {
                    let count = flow.delivery_count.unwrap_or(0);
                    link.credit.granted_until = count.wrapping_add(flow.link_credit.unwrap_or(0));
                }
            }
            Performative::Close(Close { error: None }) => self.is_closed = true,
            other => {
                if let Some(text) = refusal(other) {
                    return Err(ClientError::Refused(text));
                }
                if let Performative::Disposition(Disposition { role: Role::Receiver, first, last, .. }) =
                    other
                {
                    let settled = *first..=last.unwrap_or(*first);
                    self.unaccepted.retain(|number| !settled.contains(number));
                }
            }
        }
        Ok(())
    }

    fn attached(&mut self, attach: &Attach<'_>) {
        let Some(link) = self.links.iter_mut().find(|link| link.name == attach.name) else { return };
        link.remote = Some(attach.handle);
        match attach.role {
            Role::Sender => {
                link.is_attached = attach.source.is_some();
                link.credit.delivered = attach.initial_delivery_count.unwrap_or(0);
                link.credit.granted_until = link.credit.delivered.wrapping_add(link.window);
                let address = attach.source.as_ref().and_then(|source| source.address);
                link.address = address.map(String::from);
            }
            Role::Receiver => link.is_attached = attach.target.is_some(),
        }
    }

    /// Counts a delivery, and renews the credit of its link once half of it is used.
    fn renew(&mut self, remote: u32, out: &mut Vec<u8>) {
        let next_incoming_id = self.reader.next_incoming_id();
        let found = (0..).zip(&mut self.links).find(|(_, link)| link.remote == Some(remote));
        if let Some((handle, link)) = found
            && link.credit.is_half_used(link.window)
        {
            let until = link.credit.delivered.wrapping_add(link.window);
            link.credit.grant(out, CHANNEL, (handle, true), next_incoming_id, until);
        }
    }
}

impl Amqp10 {
    pub(super) fn connect(url: &Url) -> Result<Amqp10, ClientError> {
        let links = Links {
            reader: Reader::new(FRAME_BYTES as usize),
            links: Vec::new(),
            is_begun: false,
            is_closed: false,
            unaccepted: BTreeSet::new(),
            silence_max: None,
        };
        let mut client = Amqp10 {
            session: Session::connect(url, links)?,
            senders: HashMap::new(),
            next_delivery: 0,
            ack: Ack::Auto,
            first_unsettled: None,
        };
        let login = Login {
            container: &format!("imori-{}", process::id()),
            user: url.user(),
            host: Some(&url.host),
            vhost: &url.vhost,
            frame_max: FRAME_BYTES,
            channel_max: u16::MAX,
            silence_ms: None,
        };
        client.session.write(|out| {
            push_login(out, &login);
            push_begin(out, CHANNEL);
        })?;
        client.session.wait(|links| links.is_begun.then_some(()))?;
        Ok(client)
    }

    /// Attaches a link, whose name and handle `push` is given, and waits for the broker's end.
    fn attach(
        &mut self,
        name: Option<&str>,
        window: u32,
        push: impl FnOnce(&mut Vec<u8>, &str, u32),
    ) -> Result<u32, ClientError> {
        let links = &mut self.session.protocol.links;
        let handle = u32::try_from(links.len()).unwrap_or(u32::MAX);
        let name = name.map_or_else(|| format!("imori-{}-{handle}", process::id()), String::from);
        links.push(Link { name: name.clone(), window, ..Link::default() });
        self.session.write(|out| {
            push(out, &name, handle);
            if window > 0 {
                Credit::default().grant(out, CHANNEL, (handle, false), 0, window);
            }
        })?;
        self.session.wait(|links| link(links, handle).is_attached.then_some(handle))
    }

    /// The link for sending to a node, or to any address if `node` is `None`.
    fn sender(&mut self, node: Option<Node>) -> Result<u32, ClientError> {
        if let Some(handle) = self.senders.get(&node) {
            return Ok(*handle);
        }
        let target = Target {
            address: node.as_ref().map(|node| node.address.as_str()),
            capabilities: node
                .as_ref()
                .and_then(|node| node.capability)
                .map(|name| Symbols::One(Symbol(name))),
            ..Target::default()
        };
        let handle =
            self.attach(None, 0, |out, name, handle| push_sender(out, CHANNEL, name, handle, target))?;
        self.senders.insert(node, handle);
        Ok(handle)
    }

    /// Sends a message as soon as its link has credit; returns its delivery id.
    fn transfer(&mut self, handle: u32, message: &[u8]) -> Result<u32, ClientError> {
        self.session.wait(|links| {
            let Credit { delivered, granted_until } = &mut link(links, handle).credit;
            let has_credit = granted_until != delivered;
            has_credit.then(|| *delivered = delivered.wrapping_add(1))
        })?;
        let number = self.next_delivery;
        self.next_delivery = number.wrapping_add(1);
        self.session.protocol.unaccepted.insert(number);
        let first = Transfer {
            handle,
            delivery_id: Some(number),
            delivery_tag: Some(&number.to_be_bytes()),
            message_format: Some(0),
            ..Transfer::default()
        };
        self.session.write(|out| {
            push_message(out, CHANNEL, &first, message, PART_BYTES);
        })?;
        Ok(number)
    }

    fn publish_numbered(&mut self, sent: &Message<'_>) -> Result<u32, ClientError> {
        let node = Node::parse(sent.destination)?;
        let sections = message(sent.headers, Some(&node.address), None, None, sent.body)?;
        let handle = self.sender(Some(node))?;
        self.transfer(handle, &sections)
    }
}

impl Client for Amqp10 {
    fn publish(&mut self, message: &Message<'_>) -> Result<(), ClientError> {
        self.publish_numbered(message).map(drop)
    }

    fn publish_confirmed(&mut self, message: &Message<'_>) -> Result<(), ClientError> {
        let number = self.publish_numbered(message)?;
        self.session.wait(|links| (!links.unaccepted.contains(&number)).then_some(()))
    }

    /// Ignores `is_shared`: consumers share a message exactly if the address is a queue.
    fn subscribe(&mut self, subscription: &Subscription<'_>) -> Result<(), ClientError> {
        let node = Node::parse(subscription.source)?;
        let mut receiver = Receiver {
            address: Some(&node.address),
            capability: Some(node.capability.unwrap_or("queue")),
            is_settled: subscription.ack == Ack::Auto,
            ..Receiver::default()
        };
        let (mut window, mut durable) = (CREDIT, None);
        for Header { name, value } in subscription.headers {
            match name.as_str() {
                "prefetch-count" => {
                    let count = value.parse().ok().filter(|count| (1..=WINDOW).contains(count));
                    window = count.ok_or_else(|| prefetch_error(value))?;
                }
                "selector" => receiver.selector = Some(value),
                "durable" => durable = Some(value.as_str()),
                _ => return Err(header_error(name)),
            }
        }
        receiver.is_durable = durable.is_some();
        self.ack = subscription.ack;
        let attached = self.attach(durable, window, |out, name, handle| {
            push_receiver(out, CHANNEL, &Receiver { name, handle, ..receiver });
        });
        attached.map(drop)
    }

    fn request(&mut self, sent: &Message<'_>, patience: Duration) -> Result<(), ClientError> {
        let replies = self.attach(None, 1, |out, name, handle| {
            push_receiver(out, CHANNEL, &Receiver { name, handle, is_settled: true, ..Receiver::default() });
        })?;
        let reply_to = link(&mut self.session.protocol, replies).address.clone();
        let node = Node::parse(sent.destination)?;
        let headers = [sent.headers, expiration(sent.headers, patience).as_slice()].concat();
        let to = node.address.clone();
        let sections = message(&headers, Some(&to), Some("1"), reply_to.as_deref(), sent.body)?;
        let handle = self.sender(Some(node))?;
        self.transfer(handle, &sections).map(drop)
    }

    fn reply(&mut self, request: &Received, answer: &Result<Vec<u8>, String>) -> Result<(), ClientError> {
        let Some(reply_to) = &request.reply_to else { return Ok(()) };
        let Ok(to) = str::from_utf8(reply_to) else { return Ok(()) };
        let error = answer.as_ref().err().map(|error| Header { name: "error".into(), value: error.clone() });
        // Some requesters send no correlation id and match replies by message id instead.
        let of_request = request.header("correlation-id").or(request.header("message-id"));
        let correlation = of_request.and_then(|id| str::from_utf8(id).ok());
        let body = answer.as_deref().unwrap_or_default();
        let sections = message(error.as_slice(), Some(to), correlation, None, body)?;
        let handle = self.sender(None)?;
        self.transfer(handle, &sections).map(drop)
    }

    fn accept(&mut self, message: &Received) -> Result<(), ClientError> {
        let Some(id) = message.number(DELIVERY_ID).filter(|_| self.ack != Ack::Auto) else {
            return Ok(());
        };
        let first = match self.ack {
            Ack::Client => self.first_unsettled.unwrap_or(id),
            _ => id,
        };
        self.first_unsettled = None;
        self.session.write(|out| push_accept(out, CHANNEL, first, id))
    }

    fn receive(&mut self, deadline: Option<Instant>) -> Result<Received, ClientError> {
        let message = self.session.receive(deadline)?;
        self.first_unsettled = self.first_unsettled.or(message.number(DELIVERY_ID));
        Ok(message)
    }

    fn disconnect(mut self: Box<Self>) -> Result<(), ClientError> {
        self.session.wait(|links| links.unaccepted.is_empty().then_some(()))?;
        self.session.write(|out| push(out, CHANNEL, &Close::default()))?;
        self.session.wait(|links| links.is_closed.then_some(()))
    }
}

fn link(links: &mut Links, handle: u32) -> &mut Link {
    links.links.get_mut(handle as usize).expect("handles are those of links that were attached")
}

fn wrong(error: Malformed) -> ClientError {
    ClientError::Decode("AMQP 1.0", error)
}

fn prefetch_error(value: &str) -> ClientError {
    ClientError::Unspeakable(format!("`{value}` is no prefetch count; use a number from 1 to {WINDOW}"))
}

fn header_error(name: &str) -> ClientError {
    ClientError::Unspeakable(format!(
        "`{name}` is no header of a subscription; use `prefetch-count`, `selector` or `durable`"
    ))
}
