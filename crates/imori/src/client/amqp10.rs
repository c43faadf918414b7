//! An AMQP 1.0 client. It waits until every message it sent is accepted; each link has its own
//! credit.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::process;
use std::time::{Duration, Instant};

use imori_amqp10::codec::composites::{
    Accepted, AnyTarget, Attach, Begin, Close, DeliveryState, Disposition, Error, Flow, Open, Performative,
    SaslFrame, SaslInit, Source, Target, Transfer,
};
use imori_amqp10::codec::error::DecodeError;
use imori_amqp10::codec::frame::{FrameKind, ProtocolHeader, Step, decode, push_frame, push_heartbeat};
use imori_amqp10::codec::map::MapBuf;
use imori_amqp10::codec::push::{push_descriptor, push_value};
use imori_amqp10::codec::restricted::{
    Role, SaslCode, SenderSettleMode, TerminusDurability, TerminusExpiryPolicy,
};
use imori_amqp10::codec::symbols::Symbols;
use imori_amqp10::codec::value::{Descriptor, Symbol, Value};
use imori_bench::Url;

use super::amqp10_message::{DELIVERY_ID, Node, message, received};
use super::conversation::{Ack, Client, Header, Message, Received, Subscription, expiration};
use super::error::ClientError;
use super::transport::{PATIENCE, Transport};

/// The channel of the only session.
const CHANNEL: u16 = 0;

/// The largest frame in either direction, in bytes; every broker accepts this size by default.
const FRAME_BYTES: u32 = 32 * 1024;

/// Bytes of a message per frame, which leaves room for the largest transfer written here.
const PART_BYTES: usize = FRAME_BYTES as usize - 256;

/// Both windows of the session, so large that only link credit limits deliveries.
const WINDOW: u32 = i32::MAX as u32;

/// The link credit if no prefetch count is given.
const CREDIT: u32 = 100;

/// The filter of a selector (Apache's registry).
const SELECTOR: (&str, u64) = ("apache.org:selector-filter:string", 0x0000_468C_0000_0004);

/// An AMQP 1.0 connection that is logged in and has a session.
pub(super) struct Amqp10 {
    transport: Transport,
    /// Messages that arrived and that `receive` has not returned yet.
    waiting: VecDeque<Received>,
    links: Vec<Link>,
    /// The sending links by node; the link of `None` is for messages that name their address
    /// themselves.
    senders: HashMap<Option<Node>, u32>,
    /// The delivery id of the next message to send.
    next_delivery: u32,
    /// Ids of messages sent but not yet accepted.
    unaccepted: BTreeSet<u32>,
    next_incoming_id: u32,
    /// Payload of a delivery that arrives in several frames.
    gathered: Vec<u8>,
    delivery_id: u32,
    /// The acknowledgement mode of the subscription.
    ack: Ack,
    /// The oldest delivery since the last acknowledgement; `Ack::Client` settles from here on.
    first_unsettled: Option<u32>,
    /// The broker's idle timeout; the client sends a heartbeat after half of it.
    silence_max: Option<Duration>,
}

/// The terms of a receiving link.
struct Terms<'a> {
    /// The link's credit: deliveries the broker may send before it is granted more.
    window: u32,
    /// Whether the broker sends deliveries already settled.
    is_settled: bool,
    selector: Option<&'a str>,
    /// The name of a durable subscription, which outlives the connection.
    durable: Option<&'a str>,
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
    /// Deliveries so far, and remaining credit.
    delivered: u32,
    credit: u32,
    /// The credit of a receiving link when full; 0 for a sending link.
    window: u32,
}

impl Amqp10 {
    pub(super) fn connect(url: &Url) -> Result<Amqp10, ClientError> {
        let mut client = Amqp10 {
            transport: Transport::connect(url)?,
            waiting: VecDeque::new(),
            links: Vec::new(),
            senders: HashMap::new(),
            next_delivery: 0,
            unaccepted: BTreeSet::new(),
            next_incoming_id: 0,
            gathered: Vec::new(),
            delivery_id: 0,
            ack: Ack::Auto,
            first_unsettled: None,
            silence_max: None,
        };
        client.log_in(url)?;
        Ok(client)
    }

    fn log_in(&mut self, url: &Url) -> Result<(), ClientError> {
        let (user, password) = match &url.login {
            Some((user, password)) => (user.as_str(), password.as_str()),
            None => ("guest", "guest"),
        };
        let response = format!("\0{user}\0{password}");
        let init = SaslInit {
            mechanism: Symbol("PLAIN"),
            initial_response: Some(response.as_bytes()),
            hostname: Some(&url.host),
        };
        self.transport.write(|out| {
            out.extend_from_slice(ProtocolHeader::Sasl.bytes());
            push_frame(out, FrameKind::Sasl, 0, |out| SaslFrame::Init(init).encode(out));
        })?;
        while self.hear(Some(Instant::now() + PATIENCE))? != Some(Said::LoggedIn) {}
        let hostname = (url.vhost != "/").then(|| format!("vhost:{}", url.vhost));
        let container = format!("imori-{}", process::id());
        let open = Open {
            container_id: &container,
            hostname: hostname.as_deref(),
            max_frame_size: FRAME_BYTES,
            ..Open::default()
        };
        let begin = Begin { incoming_window: WINDOW, outgoing_window: WINDOW, ..Begin::default() };
        self.transport.write(|out| out.extend_from_slice(ProtocolHeader::Amqp.bytes()))?;
        self.send(&Performative::Open(open))?;
        self.send(&Performative::Begin(begin))?;
        while self.hear(Some(Instant::now() + PATIENCE))? != Some(Said::Begun) {}
        Ok(())
    }

    fn send(&mut self, performative: &Performative<'_>) -> Result<(), ClientError> {
        self.transport.write(|out| push_frame(out, FrameKind::Amqp, CHANNEL, |out| performative.encode(out)))
    }

    /// Waits for the broker's next frame. Returns `None` if the frame is not an awaited answer; a
    /// refusal is an error.
    fn hear(&mut self, deadline: Option<Instant>) -> Result<Option<Said>, ClientError> {
        self.transport.flush()?;
        loop {
            let step = decode(self.transport.input(), FRAME_BYTES as usize).map_err(wrong)?;
            let (frame, len) = match step {
                Step::Header(header) => {
                    self.transport.consume(header.bytes().len());
                    return Ok(None);
                }
                Step::Frame(frame) => (frame, frame.len),
                Step::Incomplete { .. } => {
                    self.read(deadline)?;
                    continue;
                }
            };
            let (kind, body) = (frame.kind, frame.body.to_vec());
            self.transport.consume(len);
            return match kind {
                FrameKind::Sasl => of_login(&SaslFrame::decode(&body).map_err(wrong)?),
                FrameKind::Amqp if body.is_empty() => Ok(None),
                FrameKind::Amqp => {
                    let (performative, payload) = Performative::decode(&body).map_err(wrong)?;
                    self.obey(&performative, payload)
                }
            };
        }
    }

    /// Waits for input, and sends a heartbeat if the wait reaches half of the broker's idle
    /// timeout.
    fn read(&mut self, deadline: Option<Instant>) -> Result<(), ClientError> {
        let beat = self.silence_max.map(|silence| Instant::now() + silence / 2);
        let until = [deadline, beat].into_iter().flatten().min();
        self.transport.read(until)?;
        if beat.is_some_and(|beat| beat <= Instant::now()) {
            self.transport.write(push_heartbeat)?;
            self.transport.flush()?;
        }
        Ok(())
    }

    fn obey(&mut self, performative: &Performative<'_>, payload: &[u8]) -> Result<Option<Said>, ClientError> {
        match performative {
            Performative::Begin(begin) => {
                self.next_incoming_id = begin.next_outgoing_id;
                return Ok(Some(Said::Begun));
            }
            Performative::Attach(attach) => self.attached(attach),
            Performative::Flow(flow) => {
                if let Some(link) = flow.handle.and_then(|remote| self.remote_link(remote))
                    && link.window == 0
                {
                    let until = flow.delivery_count.unwrap_or(0).wrapping_add(flow.link_credit.unwrap_or(0));
                    link.credit = until.wrapping_sub(link.delivered);
                }
            }
            Performative::Transfer(transfer) => self.transferred(transfer, payload)?,
            Performative::Disposition(disposition) => self.settled(disposition)?,
            Performative::Detach(detach) => return Err(refused(detach.error.as_ref(), "it detaches a link")),
            Performative::End(end) => return Err(refused(end.error.as_ref(), "it ends the session")),
            Performative::Close(close) => match &close.error {
                Some(error) => return Err(refused(Some(error), "")),
                None => return Ok(Some(Said::Closed)),
            },
            Performative::Open(open) => {
                let silence = open.idle_time_out.filter(|milliseconds| *milliseconds > 0);
                self.silence_max = silence.map(|milliseconds| Duration::from_millis(milliseconds.into()));
            }
        }
        Ok(None)
    }

    fn remote_link(&mut self, remote: u32) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.remote == Some(remote))
    }

    fn attached(&mut self, attach: &Attach<'_>) {
        let Some(link) = self.links.iter_mut().find(|link| link.name == attach.name) else { return };
        link.remote = Some(attach.handle);
        match attach.role {
            Role::Sender => {
                link.is_attached = attach.source.is_some();
                link.delivered = attach.initial_delivery_count.unwrap_or(0);
                let address = attach.source.as_ref().and_then(|source| source.address);
                link.address = address.map(String::from);
            }
            Role::Receiver => link.is_attached = attach.target.is_some(),
        }
    }

    fn transferred(&mut self, transfer: &Transfer<'_>, payload: &[u8]) -> Result<(), ClientError> {
        self.next_incoming_id = self.next_incoming_id.wrapping_add(1);
        self.delivery_id = transfer.delivery_id.unwrap_or(self.delivery_id);
        self.gathered.extend_from_slice(payload);
        if transfer.aborted {
            self.gathered.clear();
        }
        if transfer.more || transfer.aborted {
            return Ok(());
        }
        let message = received(self.delivery_id, &self.gathered).map_err(wrong)?;
        self.gathered.clear();
        self.waiting.push_back(message);
        let next_incoming_id = self.next_incoming_id;
        let Some((handle, link)) =
            (0..).zip(&mut self.links).find(|(_, link)| link.remote == Some(transfer.handle))
        else {
            return Ok(());
        };
        link.delivered = link.delivered.wrapping_add(1);
        link.credit = link.credit.saturating_sub(1);
        if link.credit > link.window / 2 {
            return Ok(());
        }
        link.credit = link.window;
        let flow = Flow {
            next_incoming_id: Some(next_incoming_id),
            incoming_window: WINDOW,
            outgoing_window: WINDOW,
            handle: Some(handle),
            delivery_count: Some(link.delivered),
            link_credit: Some(link.window),
            ..Flow::default()
        };
        self.send(&Performative::Flow(flow))
    }

    fn settled(&mut self, disposition: &Disposition<'_>) -> Result<(), ClientError> {
        if disposition.role != Role::Receiver {
            return Ok(());
        }
        match &disposition.state {
            Some(DeliveryState::Rejected(rejected)) => {
                return Err(refused(rejected.error.as_ref(), "the message is rejected"));
            }
            Some(DeliveryState::Released(_) | DeliveryState::Modified(_)) => {
                return Err(ClientError::Refused(String::from("no queue gets the message")));
            }
            _ => {}
        }
        let last = disposition.last.unwrap_or(disposition.first);
        self.unaccepted.retain(|number| !(disposition.first..=last).contains(number));
        Ok(())
    }

    /// Attaches a link and waits for the broker's end. A link without a name gets one.
    fn attach(&mut self, mut link: Link, attach: Attach<'_>) -> Result<u32, ClientError> {
        let handle = u32::try_from(self.links.len()).unwrap_or(u32::MAX);
        if link.name.is_empty() {
            link.name = format!("imori-{}-{handle}", process::id());
        }
        let (name, window) = (link.name.clone(), link.window);
        self.links.push(link);
        self.send(&Performative::Attach(Attach { name: &name, handle, ..attach }))?;
        if window > 0 {
            let flow = Flow {
                next_incoming_id: Some(self.next_incoming_id),
                incoming_window: WINDOW,
                outgoing_window: WINDOW,
                handle: Some(handle),
                link_credit: Some(window),
                ..Flow::default()
            };
            self.send(&Performative::Flow(flow))?;
        }
        let deadline = Instant::now() + PATIENCE;
        while !self.link(handle).is_attached {
            self.hear(Some(deadline))?;
        }
        Ok(handle)
    }

    fn link(&mut self, handle: u32) -> &mut Link {
        self.links.get_mut(handle as usize).expect("handles are those of links that were attached")
    }

    /// The link for sending to a node, or to any address if `node` is `None`.
    fn sender(&mut self, node: Option<Node>) -> Result<u32, ClientError> {
        if let Some(handle) = self.senders.get(&node) {
            return Ok(*handle);
        }
        let capability = node.as_ref().and_then(|node| node.capability).map(Symbol);
        let target = Target {
            address: node.as_ref().map(|node| node.address.as_str()),
            capabilities: capability.as_ref().map(|capability| Symbols::One(*capability)),
            ..Target::default()
        };
        let attach = Attach {
            role: Role::Sender,
            source: Some(Source::default()),
            target: Some(AnyTarget::Target(target)),
            initial_delivery_count: Some(0),
            ..Attach::default()
        };
        let handle = self.attach(Link::default(), attach)?;
        self.senders.insert(node, handle);
        Ok(handle)
    }

    /// Attaches a link that receives from a node, or from a temporary queue if `node` is `None`.
    fn receiver(&mut self, node: Option<&Node>, terms: &Terms<'_>) -> Result<u32, ClientError> {
        let own = Symbol(node.map_or("temporary-queue", |node| node.capability.unwrap_or("queue")));
        let of_subscription = [own, Symbol("shared"), Symbol("global")];
        let capabilities = if terms.durable.is_some() { &of_subscription[..] } else { &of_subscription[..1] };
        let mut filter = Vec::new();
        if let Some(selector) = terms.selector {
            push_descriptor(&mut filter, Descriptor::Code(SELECTOR.1));
            push_value(&mut filter, Value::String(selector));
        }
        let mut filters = MapBuf::new();
        if let Ok((filter, _)) = Value::decode(&filter) {
            filters.push(Value::Symbol(Symbol(SELECTOR.0)), filter);
        }
        let mut source = Source {
            address: node.map(|node| node.address.as_str()),
            dynamic: node.is_none(),
            filter: (!filters.is_empty()).then(|| filters.map()),
            capabilities: Some(Symbols::Slice(capabilities)),
            ..Source::default()
        };
        if terms.durable.is_some() {
            source.durable = TerminusDurability::UnsettledState;
            source.expiry_policy = TerminusExpiryPolicy::Never;
        }
        let attach = Attach {
            role: Role::Receiver,
            snd_settle_mode: match terms.is_settled {
                true => SenderSettleMode::Settled,
                false => SenderSettleMode::Unsettled,
            },
            source: Some(source),
            target: Some(AnyTarget::Target(Target::default())),
            ..Attach::default()
        };
        let name = String::from(terms.durable.unwrap_or_default());
        self.attach(Link { name, window: terms.window, credit: terms.window, ..Link::default() }, attach)
    }

    /// Sends a message as soon as its link has credit; returns its delivery id.
    fn transfer(&mut self, handle: u32, message: &[u8]) -> Result<u32, ClientError> {
        let deadline = Instant::now() + PATIENCE;
        while self.link(handle).credit == 0 {
            self.hear(Some(deadline))?;
        }
        let link = self.link(handle);
        link.credit -= 1;
        link.delivered = link.delivered.wrapping_add(1);
        let number = self.next_delivery;
        self.next_delivery = number.wrapping_add(1);
        self.unaccepted.insert(number);
        let tag = number.to_be_bytes();
        let count = message.len().div_ceil(PART_BYTES);
        for (part, is_last) in message.chunks(PART_BYTES).zip((1..=count).map(|index| index == count)) {
            let transfer = Transfer {
                handle,
                delivery_id: Some(number),
                delivery_tag: Some(&tag),
                message_format: Some(0),
                more: !is_last,
                ..Transfer::default()
            };
            self.transport.write(|out| {
                push_frame(out, FrameKind::Amqp, CHANNEL, |out| {
                    Performative::Transfer(transfer).encode(out);
                    out.extend_from_slice(part);
                });
            })?;
        }
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
        let deadline = Instant::now() + PATIENCE;
        while self.unaccepted.contains(&number) {
            self.hear(Some(deadline))?;
        }
        Ok(())
    }

    /// Ignores `is_shared`: consumers share a message exactly if the address is a queue.
    fn subscribe(&mut self, subscription: &Subscription<'_>) -> Result<(), ClientError> {
        let node = Node::parse(subscription.source)?;
        let is_settled = subscription.ack == Ack::Auto;
        let mut terms = Terms { window: CREDIT, is_settled, selector: None, durable: None };
        for Header { name, value } in subscription.headers {
            match name.as_str() {
                "prefetch-count" => {
                    let count = value.parse().ok().filter(|count| (1..=WINDOW).contains(count));
                    terms.window = count.ok_or_else(|| prefetch_error(value))?;
                }
                "selector" => terms.selector = Some(value),
                "durable" => terms.durable = Some(value),
                _ => return Err(header_error(name)),
            }
        }
        self.ack = subscription.ack;
        self.receiver(Some(&node), &terms).map(drop)
    }

    fn request(&mut self, sent: &Message<'_>, patience: Duration) -> Result<(), ClientError> {
        let terms = Terms { window: 1, is_settled: true, selector: None, durable: None };
        let replies = self.receiver(None, &terms)?;
        let reply_to = self.link(replies).address.clone();
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
        let id = message.header(DELIVERY_ID).and_then(|id| str::from_utf8(id).ok());
        let Some(id) = id.and_then(|id| id.parse().ok()).filter(|_| self.ack != Ack::Auto) else {
            return Ok(());
        };
        let first = match self.ack {
            Ack::Client => self.first_unsettled.unwrap_or(id),
            _ => id,
        };
        self.first_unsettled = None;
        let disposition = Disposition {
            role: Role::Receiver,
            first,
            last: Some(id),
            settled: true,
            state: Some(DeliveryState::Accepted(Accepted {})),
            ..Disposition::default()
        };
        self.send(&Performative::Disposition(disposition))
    }

    fn receive(&mut self, deadline: Option<Instant>) -> Result<Received, ClientError> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                let id = message.header(DELIVERY_ID).and_then(|id| str::from_utf8(id).ok());
                let id = id.and_then(|id| id.parse().ok());
                self.first_unsettled = self.first_unsettled.or(id);
                return Ok(message);
            }
            self.hear(deadline)?;
        }
    }

    fn disconnect(mut self: Box<Self>) -> Result<(), ClientError> {
        let deadline = Some(Instant::now() + PATIENCE);
        while !self.unaccepted.is_empty() {
            self.hear(deadline)?;
        }
        self.send(&Performative::Close(Close::default()))?;
        while self.hear(deadline)? != Some(Said::Closed) {}
        Ok(())
    }
}

/// An answer that some call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    LoggedIn,
    Begun,
    Closed,
}

fn of_login(frame: &SaslFrame<'_>) -> Result<Option<Said>, ClientError> {
    match frame {
        SaslFrame::Outcome(outcome) if outcome.code == SaslCode::Ok => Ok(Some(Said::LoggedIn)),
        SaslFrame::Outcome(_) => Err(ClientError::Refused(String::from(
            "the login is wrong; correct user and password of the URL",
        ))),
        _ => Ok(None),
    }
}

fn refused(error: Option<&Error<'_>>, otherwise: &str) -> ClientError {
    ClientError::Refused(match error {
        Some(Error { description: Some(description), .. }) => String::from(*description),
        Some(error) => String::from(error.condition.0),
        None => String::from(otherwise),
    })
}

fn wrong(error: DecodeError) -> ClientError {
    ClientError::Decode("AMQP 1.0", error.to_string().into())
}

fn prefetch_error(value: &str) -> ClientError {
    ClientError::Unspeakable(format!("`{value}` is no prefetch count; use a number from 1 to {WINDOW}"))
}

fn header_error(name: &str) -> ClientError {
    ClientError::Unspeakable(format!(
        "`{name}` is no header of a subscription; use `prefetch-count`, `selector` or `durable`"
    ))
}
