//! An AMQP 1.0 client for one session of a connection.
//!
//! Its receivers settle second, so that each settlement is answered. Frames of a transaction wait
//! in the client until the broker has declared it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use imori_amqp10::codec::composite::Composite;
use imori_amqp10::codec::composites::{
    Accepted, AnyTarget, Begin, Close, Coordinator, Declare, DeliveryState, Detach, Discharge, Disposition,
    End, Error, Flow, Header, Outcome as DeliveryOutcome, Performative, Properties, Rejected, Released,
    Target, TransactionalState, Transfer,
};
use imori_amqp10::codec::frame::{FrameKind, Step, decode};
use imori_amqp10::codec::push::push_binary_head;
use imori_amqp10::codec::restricted::Role;
use imori_amqp10::codec::sections::{Section, SectionKind, Sections};
use imori_client::amqp10::{
    self, Login, Reader, Receiver, push, push_login, push_message, push_receiver, push_sender, reason,
};

use super::connection::Connection;
use super::errors::complaint;
use super::outgoing::Destination;
use super::protocol::{
    Abilities, ClientEvent, ClientProtocol, Confirmed, Delivered, Disconnect, Open, Publish, Published,
    Settle, Subscribe, Transact, Unsubscribe,
};
use crate::model::{Mode, Outcome};

/// The largest frame that the client accepts, in bytes; small, so that most bodies are split.
const FRAME_BYTES_MAX: u32 = 1024;

/// Bytes of a body per transfer sent.
const PART_BYTES: usize = 1500;

/// Transfers that the broker may send before it gets a new window; few, so that deliveries often
/// wait for one, even half sent.
const WINDOW: u32 = 3;

/// The handle of the link to the coordinator.
const COORDINATOR: u32 = 0;

/// The handle of the link for messages that carry their own address.
const RELAY: u32 = 1;

/// A client of one session.
pub(crate) struct Amqp10Client {
    connection: Rc<Connection>,
    /// The number of the session's channel, counted from 1.
    channel: u16,
    is_transactional: bool,
    links: BTreeMap<u32, Link>,
    next_handle: u32,
    /// Expected answers, in the order of their commands.
    asked: VecDeque<Asked>,
    /// Deliveries sent that have no outcome yet.
    sent: VecDeque<(u32, Sent)>,
    next_sent: u32,
    /// The number of publishes outside of transactions.
    publishes: u64,
    next_transfer: u32,
    reader: Reader,
    /// Deliveries received.
    deliveries: u32,
    window: u32,
    /// Unsettled deliveries with their link, and whether a transaction settles them.
    unsettled: BTreeMap<u32, (u32, bool)>,
    /// Frames held behind each transaction that is not declared yet.
    held: VecDeque<Vec<u8>>,
    /// The number of the latest transaction, and its id once the broker has declared it.
    transaction: (u16, Option<[u8; 4]>),
    /// Names of confirms that arrive with the next commit.
    uncommitted: Vec<String>,
    /// First delivery ids of the ranges that the open transaction settles.
    retired: BTreeSet<u32>,
    /// Unanswered commits: the delivery id of each discharge, and the settlements that precede its
    /// answer.
    commits: VecDeque<(u32, BTreeSet<u32>)>,
    events: VecDeque<ClientEvent>,
    /// Whether the client makes a mistake on purpose, for which the broker ends the session.
    errs: bool,
    /// Whether the broker has ended the session.
    is_closed: bool,
}

/// A receiving link.
#[derive(Debug, Default)]
struct Link {
    id: String,
    granted: u32,
    received: u32,
    is_cumulative: bool,
    /// Whether the client gave its credit back; it then detaches the link once nothing of it is
    /// unsettled.
    is_drained: bool,
    is_detached: bool,
}

/// An expected answer.
#[derive(Debug)]
struct Asked {
    key: Key,
    names: Vec<String>,
    is_answered: bool,
}

/// The command to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Begin,
    Attach(u32),
    Drain(u32),
    /// The settlement of the range that begins with this delivery.
    Settle(u32),
    Discharge(u32),
    End,
}

/// The kind of a delivery sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    Publish(u64),
    Posting,
    Declare,
    Discharge,
}

impl Amqp10Client {
    /// Creates the client of a session on a connection.
    pub(crate) fn new(connection: &Rc<Connection>, channel: u16, is_transactional: bool) -> Amqp10Client {
        Amqp10Client {
            connection: Rc::clone(connection),
            channel,
            is_transactional,
            links: BTreeMap::new(),
            next_handle: RELAY + 1,
            asked: VecDeque::new(),
            sent: VecDeque::new(),
            next_sent: 0,
            publishes: 0,
            next_transfer: 0,
            reader: Reader::new(usize::MAX),
            deliveries: 0,
            window: WINDOW,
            unsettled: BTreeMap::new(),
            held: VecDeque::new(),
            transaction: (0, None),
            uncommitted: Vec::new(),
            retired: BTreeSet::new(),
            commits: VecDeque::new(),
            events: VecDeque::new(),
            errs: false,
            is_closed: false,
        }
    }

    fn frame<'a>(&self, out: &mut Vec<u8>, performative: &impl Composite<'a>) {
        push(out, self.channel - 1, performative);
    }

    fn ask(&mut self, key: Key, names: Vec<String>) {
        self.asked.push_back(Asked { key, names, is_answered: false });
    }

    /// Notes an answer. Its confirms wait for those of earlier commands, because settles overtake
    /// parked commands.
    fn answered(&mut self, key: Key) -> Result<(), String> {
        let asked = self.asked.iter_mut().find(|asked| asked.key == key && !asked.is_answered);
        asked.ok_or_else(|| format!("an answer to {key:?} comes, which nobody asked for"))?.is_answered =
            true;
        while let Some(asked) = self.asked.pop_front_if(|asked| asked.is_answered) {
            let confirmed =
                |name| ClientEvent::Confirmed(Confirmed { name: Some(name), level: None, count: None });
            self.events.extend(asked.names.into_iter().map(confirmed));
        }
        Ok(())
    }

    /// Sends frames that must stay behind those of transactions.
    fn send_behind(&mut self, out: &mut Vec<u8>, bytes: &[u8]) {
        self.held.back_mut().unwrap_or(out).extend_from_slice(bytes);
    }

    /// The id of the open transaction, or a placeholder until it is declared.
    fn transaction_id(&self) -> [u8; 4] {
        let [high, low] = self.transaction.0.to_be_bytes();
        self.transaction.1.unwrap_or([0xFF, 0xFF, high, low])
    }

    /// Sends the session's new window and a link's credit.
    fn flow(&mut self, out: &mut Vec<u8>, handle: Option<u32>, drain: bool) {
        let link = handle.and_then(|handle| self.links.get(&handle));
        self.window = WINDOW;
        let flow = Flow {
            next_incoming_id: Some(self.reader.next_incoming_id()),
            incoming_window: WINDOW,
            next_outgoing_id: self.next_transfer,
            outgoing_window: u32::MAX,
            handle,
            delivery_count: link.map(|link| link.received),
            link_credit: link.map(|link| link.granted - link.received),
            drain,
            ..Flow::default()
        };
        self.frame(out, &flow);
    }

    /// Renews the credit of a link after settling deliveries, or detaches the link.
    fn renew(&mut self, out: &mut Vec<u8>, handle: u32, settled: u32) {
        let Some(link) = self.links.get_mut(&handle) else { return };
        if !link.is_drained {
            link.granted += settled;
            self.flow(out, Some(handle), false);
        }
        self.detach_if_done(out, handle);
    }

    /// Detaches a link whose drain is answered and that has no unsettled deliveries.
    fn detach_if_done(&mut self, out: &mut Vec<u8>, handle: u32) {
        let waits = self.asked.iter().any(|asked| asked.key == Key::Drain(handle) && !asked.is_answered);
        let has_unsettled = self.unsettled.values().any(|(of, _)| *of == handle);
        let Some(link) = self.links.get_mut(&handle) else { return };
        if link.is_drained && !link.is_detached && !waits && !has_unsettled {
            link.is_detached = true;
            let mut bytes = Vec::new();
            self.frame(&mut bytes, &Detach { handle, closed: true, error: None });
            // A waiting discharge may have settled deliveries of the link.
            self.send_behind(out, &bytes);
        }
    }

    /// Sends a message on a link, split into transfers as needed; returns its delivery id.
    fn transfer(&mut self, out: &mut Vec<u8>, handle: u32, sent: Sent, payload: &[u8]) -> u32 {
        let id = self.next_sent;
        self.next_sent += 1;
        self.sent.push_back((id, sent));
        let (txn_id, tag) = (self.transaction_id(), id.to_be_bytes());
        let state = (sent == Sent::Posting)
            .then(|| DeliveryState::from(TransactionalState { txn_id: &txn_id, outcome: None }));
        let first = Transfer {
            handle,
            delivery_id: Some(id),
            delivery_tag: Some(&tag),
            message_format: Some(0),
            settled: Some(false),
            state,
            ..Transfer::default()
        };
        let mut bytes = Vec::new();
        push_message(&mut bytes, self.channel - 1, &first, payload, PART_BYTES);
        self.next_transfer += payload.len().div_ceil(PART_BYTES) as u32;
        self.send_behind(out, &bytes);
        id
    }

    fn attach_as(&self, out: &mut Vec<u8>, handle: u32, target: AnyTarget<'_>) {
        push_sender(out, self.channel - 1, &format!("{}.{handle}", self.channel), handle, target);
    }

    /// The deliveries that a settle covers, as ranges without gaps.
    fn meant(&self, last: u32) -> Vec<(u32, u32)> {
        let Some((handle, _)) = self.unsettled.get(&last).copied() else { return Vec::new() };
        let is_cumulative = self.links.get(&handle).is_some_and(|link| link.is_cumulative);
        let is_meant = |(id, (of, is_claimed)): &(&u32, &(u32, bool))| {
            **id == last || is_cumulative && *of == handle && !is_claimed
        };
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for (id, _) in self.unsettled.range(..=last).filter(is_meant) {
            match ranges.last_mut() {
                Some((_, end)) if *end + 1 == *id => *end = *id,
                _ => ranges.push((*id, *id)),
            }
        }
        ranges
    }

    /// Ends the transaction; returns the delivery id of its discharge.
    fn discharge(&mut self, out: &mut Vec<u8>, fail: bool) -> u32 {
        let txn_id = self.transaction_id();
        let discharge = value(|out| Discharge { txn_id: &txn_id, fail }.encode(out));
        self.transfer(out, COORDINATOR, Sent::Discharge, &discharge)
    }

    fn take(&mut self, performative: Performative<'_>) -> Result<(), String> {
        if let Performative::Open(_) | Performative::Close(_) = performative {
            if let Performative::Close(Close { error: Some(error) }) = performative
                && !self.is_closed
            {
                self.events.push_back(refused(&error));
            }
            return Ok(());
        }
        if self.is_closed {
            return Err(format!("{performative:?} comes after the end of its session"));
        }
        match performative {
            Performative::Begin(_) => self.answered(Key::Begin),
            Performative::Attach(attach) => match attach.role {
                Role::Sender if attach.source.is_some() => self.answered(Key::Attach(attach.handle)),
                Role::Receiver if attach.target.is_some() => Ok(()),
                _ => Err(format!("{attach:?} has no terminus")),
            },
            Performative::Flow(flow) => self.take_flow(&flow),
            Performative::Disposition(disposition) if disposition.role == Role::Sender => {
                self.take_settlement(&disposition)
            }
            Performative::Disposition(disposition) => self.take_outcome(&disposition),
            Performative::Detach(Detach { handle, error: None, .. }) => {
                let link = self.links.remove(&handle).filter(|link| link.is_detached);
                link.map(drop).ok_or_else(|| format!("link {handle} is detached, which nobody asked for"))
            }
            Performative::End(End { error }) => {
                self.is_closed = true;
                let Some(error) = error else {
                    // The end of a session answers the drains of its links, too.
                    let drains = self.asked.iter_mut().filter(|asked| matches!(asked.key, Key::Drain(_)));
                    drains.for_each(|asked| asked.is_answered = true);
                    return self.answered(Key::End);
                };
                self.connection.closed_by_broker.borrow_mut().insert(self.channel);
                self.events.push_back(match self.errs && error.condition.0 == "amqp:session:handle-in-use" {
                    true => {
                        ClientEvent::Refused { message: String::from("No such delivery"), text: Vec::new() }
                    }
                    false => refused(&error),
                });
                Ok(())
            }
            other => Err(format!("{other:?} is not for a client")),
        }
    }

    fn take_flow(&mut self, flow: &Flow<'_>) -> Result<(), String> {
        let (Some(handle), true) = (flow.handle, flow.drain) else { return Ok(()) };
        let granted = self.links.get(&handle).map(|link| link.granted);
        if flow.link_credit != Some(0) || flow.delivery_count != granted {
            return Err(format!("{flow:?} ends a drain of a link that was granted {granted:?}"));
        }
        self.answered(Key::Drain(handle))?;
        let mut out = Vec::new();
        self.detach_if_done(&mut out, handle);
        self.events.push_back(ClientEvent::Answer(out));
        Ok(())
    }

    /// Handles a transfer, and with the last one the whole message and its delivery-id.
    fn take_transfer(&mut self, transfer: &Transfer<'_>, whole: Option<(u32, &[u8])>) -> Result<(), String> {
        if self.is_closed {
            return Err(format!("{transfer:?} comes after the end of its session"));
        }
        let handle = transfer.handle;
        self.window =
            self.window.checked_sub(1).ok_or("a transfer comes, and the window of its session is used up")?;
        let link = self.links.get_mut(&handle).ok_or("a transfer comes by no link")?;
        if let Some(id) = transfer.delivery_id {
            if id != self.deliveries {
                return Err(format!("delivery {id} comes after {} deliveries", self.deliveries));
            }
            self.deliveries += 1;
            link.received += 1;
            if link.received > link.granted {
                return Err(format!("a link has {} deliveries for {}", link.received, link.granted));
            }
        }
        if let Some((id, message)) = whole {
            let subscription = link.id.clone();
            self.unsettled.insert(id, (handle, false));
            self.events.push_back(ClientEvent::Delivered(delivered(id, subscription, message)?));
        }
        Ok(())
    }

    /// Handles a settlement by the broker: of the client's own settle, or by a transaction.
    fn take_settlement(&mut self, disposition: &Disposition<'_>) -> Result<(), String> {
        match self.commits.front_mut().is_some_and(|(_, retired)| retired.remove(&disposition.first)) {
            true => Ok(()),
            false => self.answered(Key::Settle(disposition.first)),
        }
    }

    /// Handles the outcome of deliveries that the client sent.
    fn take_outcome(&mut self, disposition: &Disposition<'_>) -> Result<(), String> {
        let (first, last) = (disposition.first, disposition.last.unwrap_or(disposition.first));
        if self.sent.front().is_none_or(|(id, _)| *id != first) {
            return Err(format!("{disposition:?} comes, and {:?} waits for an outcome", self.sent.front()));
        }
        let mut published = None;
        while let Some((_, sent)) = self.sent.pop_front_if(|(id, _)| *id <= last) {
            let is_sole = first == last;
            match (sent, disposition.state) {
                (Sent::Publish(number), Some(DeliveryState::Accepted(_))) => {
                    published = Some((number, false));
                }
                (Sent::Publish(number), Some(DeliveryState::Rejected(_) | DeliveryState::Released(_))) => {
                    published = Some((number, true));
                }
                (Sent::Posting, Some(DeliveryState::Transactional(_))) if is_sole => {}
                (Sent::Declare, Some(DeliveryState::Declared(declared))) if is_sole => {
                    self.declared(declared.txn_id)?;
                }
                (Sent::Discharge, Some(DeliveryState::Accepted(_))) if is_sole => {
                    let commit = self.commits.pop_front_if(|(id, _)| *id == first);
                    if let Some(first) = commit.and_then(|(_, mut retired)| retired.pop_first()) {
                        return Err(format!("a transaction is done, and delivery {first} is not settled"));
                    }
                    self.answered(Key::Discharge(first))?;
                }
                (sent, state) => return Err(format!("{state:?} is no outcome of {sent:?}")),
            }
        }
        if let Some((number, is_refused)) = published {
            let is_multiple = first < last;
            self.events.push_back(ClientEvent::Published(Published { number, is_multiple, is_refused }));
        }
        Ok(())
    }

    /// Handles the declaration of the oldest waiting transaction, and releases the frames held
    /// behind it.
    fn declared(&mut self, id: &[u8]) -> Result<(), String> {
        let id: [u8; 4] = id.try_into().map_err(|_| format!("{id:?} is no id of a transaction"))?;
        let mut bytes = self.held.pop_front().ok_or("a transaction is declared that nobody wants")?;
        let number = self.transaction.0 - self.held.len() as u16;
        let [high, low] = number.to_be_bytes();
        let stand_in = [0xA0, 4, 0xFF, 0xFF, high, low];
        while let Some(at) = bytes.windows(stand_in.len()).position(|part| part == stand_in) {
            bytes.get_mut(at + 2..at + 6).into_iter().for_each(|place| place.copy_from_slice(&id));
        }
        if self.held.is_empty() {
            self.transaction.1 = Some(id);
        }
        self.events.push_back(ClientEvent::Resume(bytes));
        Ok(())
    }
}

impl ClientProtocol for Amqp10Client {
    fn abilities(&self) -> Abilities {
        Abilities {
            reads_queues: true,
            persists: true,
            transacts: self.is_transactional,
            confirms_apart: true,
            confirms_settles: true,
            settles_up_to: true,
            ..Abilities::default()
        }
    }

    fn connect(&mut self, out: &mut Vec<u8>, is_intruder: bool) {
        let login = Login {
            container: "sim",
            user: is_intruder.then_some(("guest", "wrong")),
            host: None,
            vhost: "/",
            frame_max: FRAME_BYTES_MAX,
            channel_max: 16,
            silence_ms: None,
        };
        push_login(out, &login);
    }

    fn open(&mut self, out: &mut Vec<u8>, open: &Open<'_>) {
        // A session that the broker ended makes its channel free only once it is answered.
        if self.connection.closed_by_broker.borrow_mut().remove(&self.channel) {
            self.frame(out, &End::default());
        }
        let begin = Begin { incoming_window: WINDOW, outgoing_window: u32::MAX, ..Begin::default() };
        self.frame(out, &begin);
        self.ask(Key::Begin, vec![String::from(open.confirm)]);
        if self.is_transactional {
            self.attach_as(out, COORDINATOR, Coordinator::default().into());
        }
        // A new session has nothing parked, so this link gets its credit before anything is sent.
        self.attach_as(out, RELAY, Target::default().into());
    }

    fn subscribe(&mut self, out: &mut Vec<u8>, subscribe: &Subscribe<'_>) {
        let (Destination::Queue(queue) | Destination::DeclaredQueue(queue)) = subscribe.place else { return };
        let handle = self.next_handle;
        self.next_handle += 1;
        let address = format!("queue://{queue}");
        let receiver = Receiver {
            name: &format!("{}.{handle}", self.channel),
            handle,
            address: Some(&address),
            ..Receiver::default()
        };
        push_receiver(out, self.channel - 1, &receiver);
        self.ask(Key::Attach(handle), vec![String::from(subscribe.confirm)]);
        let link = Link {
            id: String::from(subscribe.id),
            granted: subscribe.prefetch as u32,
            is_cumulative: subscribe.mode == Mode::Client,
            ..Link::default()
        };
        self.links.insert(handle, link);
        self.flow(out, Some(handle), false);
    }

    /// Gives all credit back; the link is detached once nothing of it is unsettled.
    fn unsubscribe(&mut self, out: &mut Vec<u8>, unsubscribe: &Unsubscribe<'_>) {
        let found = self.links.iter_mut().find(|(_, link)| link.id == unsubscribe.id && !link.is_drained);
        let Some((handle, link)) = found else { return };
        let handle = *handle;
        link.is_drained = true;
        self.ask(Key::Drain(handle), vec![String::from(unsubscribe.confirm)]);
        self.flow(out, Some(handle), true);
    }

    fn publish(&mut self, out: &mut Vec<u8>, publish: &Publish<'_>) -> Option<usize> {
        let address = match &publish.outgoing.place {
            Destination::Queue(queue) | Destination::DeclaredQueue(queue) => format!("queue://{queue}"),
            Destination::Topic(subject) | Destination::Reply(subject) => format!("topic://{subject}"),
        };
        let sent = match publish.transaction {
            Some(_) => Sent::Posting,
            None => {
                self.publishes += 1;
                Sent::Publish(self.publishes)
            }
        };
        let mut payload = Vec::new();
        // In other protocols' messages the priority is zero unless they set one.
        Header { durable: publish.outgoing.is_persistent, priority: 0, ..Header::default() }
            .encode(&mut payload);
        let begin = payload.len();
        Properties { to: Some(&address), ..Properties::default() }.encode(&mut payload);
        SectionKind::Data.push(&mut payload);
        push_binary_head(&mut payload, publish.body.len());
        let text_bytes = payload.len() - begin;
        payload.extend_from_slice(publish.body);
        self.transfer(out, RELAY, sent, &payload);
        Some(text_bytes)
    }

    fn settle(&mut self, out: &mut Vec<u8>, settle: &Settle<'_>) {
        let number: u32 = settle.ack.parse().unwrap_or_default();
        let Some(last) = number.checked_sub(1) else {
            self.errs = true;
            let mut bytes = Vec::new();
            self.attach_as(&mut bytes, RELAY, Target::default().into());
            return self.send_behind(out, &bytes);
        };
        let outcome = match settle.outcome {
            Outcome::Open | Outcome::Auto | Outcome::Accept => DeliveryOutcome::Accepted(Accepted {}),
            Outcome::Release => DeliveryOutcome::Released(Released {}),
            Outcome::Reject => DeliveryOutcome::Rejected(Rejected { error: None }),
        };
        let txn_id = self.transaction_id();
        let state: DeliveryState<'_> = match (settle.transaction, outcome) {
            (Some(_), outcome) => TransactionalState { txn_id: &txn_id, outcome: Some(outcome) }.into(),
            (None, DeliveryOutcome::Released(released)) => released.into(),
            (None, DeliveryOutcome::Rejected(rejected)) => rejected.into(),
            (None, _) => Accepted {}.into(),
        };
        let handle = self.unsettled.get(&last).map(|(handle, _)| *handle);
        let ranges = self.meant(last);
        let (mut bytes, mut settled) = (Vec::new(), 0);
        for (index, (first, end)) in ranges.iter().copied().enumerate() {
            let disposition = Disposition {
                role: Role::Receiver,
                first,
                last: (first < end).then_some(end),
                settled: false,
                state: Some(state),
                ..Disposition::default()
            };
            self.frame(&mut bytes, &disposition);
            let is_last = index + 1 == ranges.len();
            let names: Vec<String> =
                settle.confirm.filter(|_| is_last).into_iter().map(String::from).collect();
            match settle.transaction {
                Some(_) => {
                    self.uncommitted.extend(names);
                    self.retired.insert(first);
                    (first..=end).for_each(|id| {
                        self.unsettled.entry(id).and_modify(|(_, is_claimed)| *is_claimed = true);
                    });
                }
                None => {
                    self.ask(Key::Settle(first), names);
                    self.unsettled.retain(|id, _| !(first..=end).contains(id));
                    settled += end - first + 1;
                }
            }
        }
        match settle.transaction {
            Some(_) => self.send_behind(out, &bytes),
            None => {
                // A transaction that was rolled back may have settled the same delivery, and its
                // frames may be held.
                self.send_behind(out, &bytes);
                handle.into_iter().for_each(|handle| self.renew(out, handle, settled));
            }
        }
    }

    fn transact(&mut self, out: &mut Vec<u8>, step: Transact, _name: &str, confirm: Option<&str>) {
        match step {
            Transact::Begin => {
                let declare = value(|out| Declare::default().encode(out));
                self.transfer(out, COORDINATOR, Sent::Declare, &declare);
                self.transaction = (self.transaction.0 + 1, None);
                self.held.push_back(Vec::new());
            }
            Transact::Commit => {
                let id = self.discharge(out, false);
                self.commits.push_back((id, std::mem::take(&mut self.retired)));
                let mut names = std::mem::take(&mut self.uncommitted);
                names.extend(confirm.map(String::from));
                self.ask(Key::Discharge(id), names);
                let claimed: Vec<(u32, u32)> = self
                    .unsettled
                    .iter()
                    .filter(|(_, (_, is_claimed))| *is_claimed)
                    .map(|(id, (handle, _))| (*id, *handle))
                    .collect();
                for (id, handle) in claimed {
                    self.unsettled.remove(&id);
                    self.renew(out, handle, 1);
                }
            }
            Transact::Abort => {
                let id = self.discharge(out, true);
                self.uncommitted.clear();
                self.retired.clear();
                self.ask(Key::Discharge(id), Vec::new());
                self.unsettled.values_mut().for_each(|(_, is_claimed)| *is_claimed = false);
            }
        }
    }

    fn disconnect(&mut self, out: &mut Vec<u8>, disconnect: &Disconnect<'_>) {
        self.ask(Key::End, vec![String::from(disconnect.confirm)]);
        let mut bytes = Vec::new();
        self.frame(&mut bytes, &End::default());
        self.send_behind(out, &bytes);
    }

    /// Renews the window only now, so that any transfer beyond it was sent without permission.
    fn caught_up(&mut self, out: &mut Vec<u8>) {
        if self.window <= WINDOW / 2 {
            self.flow(out, None, false);
        }
    }

    fn channel(&self) -> Option<u16> {
        Some(self.channel)
    }

    fn part(&self, input: &[u8]) -> Option<(usize, Option<u16>)> {
        match decode(input, usize::MAX) {
            Ok(Step::Frame(frame)) => {
                // The descriptors of `open` and `close`.
                let is_of_all =
                    frame.kind == FrameKind::Sasl || matches!(frame.body, [] | [0, 0x53, 0x10 | 0x18, ..]);
                Some((frame.len, (!is_of_all).then_some(frame.channel + 1)))
            }
            Ok(Step::Header(header)) => Some((header.bytes().len(), None)),
            Ok(Step::Incomplete { .. }) => None,
            // The reader of these bytes reports the error.
            Err(_) => (!input.is_empty()).then_some((input.len(), None)),
        }
    }

    fn has_part(&self) -> bool {
        self.reader.has_part()
    }

    fn text_of(&self, bytes: &[u8]) -> String {
        let (mut rest, mut text) = (bytes, String::new());
        loop {
            let len = match decode(rest, usize::MAX) {
                Ok(Step::Frame(frame)) => {
                    text.push_str(&match (frame.kind, Performative::decode(frame.body)) {
                        (FrameKind::Amqp, Ok((performative, _))) => {
                            format!("{} {performative:?} | ", frame.channel + 1)
                        }
                        (kind, _) => format!("{kind:?} {} | ", frame.body.escape_ascii()),
                    });
                    frame.len
                }
                Ok(Step::Header(header)) => header.bytes().len(),
                _ => return text,
            };
            rest = rest.get(len..).unwrap_or_default();
        }
    }

    fn read(&mut self, input: &[u8]) -> Result<Option<(usize, ClientEvent)>, String> {
        if let Some(event) = self.events.pop_front() {
            return Ok(Some((0, event)));
        }
        let taken = self.reader.take(input).map_err(|error| error.to_string())?;
        let Some((item, len)) = taken else { return Ok(None) };
        match item {
            amqp10::Item::Nothing | amqp10::Item::Heartbeat => {}
            amqp10::Item::LoginRefused => {
                let message = String::from("Bad CONNECT");
                self.events.push_back(ClientEvent::Refused { message, text: Vec::new() });
            }
            amqp10::Item::Part(transfer) => self.take_transfer(&transfer, None)?,
            amqp10::Item::Delivery(transfer, id, message) => {
                self.take_transfer(&transfer, Some((id, &message)))?;
            }
            amqp10::Item::Performative(performative) => self.take(performative)?,
        }
        Ok(Some((len, self.events.pop_front().unwrap_or(ClientEvent::Nothing))))
    }
}

/// The payload of a message to the coordinator.
fn value(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut payload = Vec::new();
    SectionKind::AmqpValue.push(&mut payload);
    write(&mut payload);
    payload
}

/// Decodes a complete message.
fn delivered(id: u32, subscription: String, payload: &[u8]) -> Result<Delivered, String> {
    let (mut sections, mut body) = (Sections::new(payload), Vec::new());
    let mut header = Header::default();
    while let Some(section) = sections.next_section().map_err(|error| error.to_string())? {
        match section {
            Section::Header(found) => header = found,
            Section::Data(data) => body.extend_from_slice(data),
            Section::AmqpValue(imori_amqp10::codec::value::Value::String(text)) => {
                body.extend_from_slice(text.as_bytes());
            }
            _ => {}
        }
    }
    let number = u64::from(id) + 1;
    Ok(Delivered {
        subscription,
        number: Some(number),
        ack: number.to_string(),
        body,
        is_redelivered: header.first_acquirer != Some(true),
        ..Delivered::default()
    })
}

fn refused(error: &Error<'_>) -> ClientEvent {
    let text = reason(error);
    ClientEvent::Refused { message: complaint(text), text: text.as_bytes().to_vec() }
}
