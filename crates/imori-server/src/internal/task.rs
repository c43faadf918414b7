//! The task of an internal client: runs its user's commands on its cell, and hands out what comes.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use imori_core::authorize::{Action, Identity, Object, authorize};
use imori_core::broker;
use imori_core::delivery::Outcome;
use imori_core::error::BrokerError;
use imori_core::id::{ConnectionId, ReaderId, VhostId};
use imori_core::internal::{Client, Frames, Incoming, IncomingMessage, OutgoingMessage, Published};
use imori_core::message::{Address, Property};
use imori_core::outbound::Outbound;
use imori_core::world::World;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tracing::{debug, warn};

use super::client::{Answer, Command, InternalClient, InternalError, Messages};
use crate::cell::Cell;
use crate::limits::{INTERNAL_CLIENTS_MAX, INTERNAL_COMMANDS_MAX, INTERNAL_PARKED_MAX};
use crate::peers::client::Client as Peer;
use crate::pipe::Pipe;
use crate::shared::{TcpWire, Writer};
use crate::turn::{Link, Signal, Signals, flush};

/// Starts an internal client on this thread's cell; `None` where the cell has no place for it.
pub(crate) fn start(cell: &Cell, identity: Identity, vhost: VhostId) -> Option<InternalClient> {
    let (pipe, signals) = (Arc::new(Pipe::default()), Arc::new(Signals::default()));
    let handle = cell.shared.cell(cell.id)?;
    if handle.internal_clients.load(Ordering::Relaxed) >= INTERNAL_CLIENTS_MAX {
        return None;
    }
    let key = handle.connections.insert(|key| {
        let id = ConnectionId { cell: cell.id, slot: key.slot, generation: key.generation };
        let outbound = Outbound::new(id, Client::encoder(), cell.settings().outbound, cell.gauge().clone());
        let wire = TcpWire {
            writer: Writer::Internal(Arc::clone(&pipe)),
            policy: cell.settings().config.cells.write,
            waker: Some(pipe.waker()),
            client: Peer::internal(cell.now(), vhost),
        };
        Link::new(outbound, wire, Arc::clone(&signals))
    })?;
    handle.internal_clients.fetch_add(1, Ordering::Relaxed);
    let connection = ConnectionId { cell: cell.id, slot: key.slot, generation: key.generation };
    let (sender, commands) = mpsc::channel(INTERNAL_COMMANDS_MAX);
    let task = Task {
        client: Client::new(identity, connection, vhost),
        connection,
        signals,
        pipe,
        frames: Frames::default(),
        numbers: 0,
        subscribers: HashMap::new(),
        requests: HashMap::new(),
        confirms: HashMap::new(),
        parked: VecDeque::new(),
        held: None,
    };
    tokio::spawn(task.run(commands));
    Some(InternalClient(sender))
}

/// A publish whose outcome somebody waits for, and that may have to wait.
struct Publish {
    to: Address,
    message: OutgoingMessage,
    answer: Answer<usize>,
}

/// A subscription and where its messages go.
struct Subscriber {
    reader: ReaderId,
    messages: Messages,
}

/// How a turn goes on.
#[derive(PartialEq, Eq)]
enum Next {
    /// With what comes next.
    Wait,
    /// Not: the client has ended.
    Over,
}

struct Task {
    client: Client,
    connection: ConnectionId,
    signals: Arc<Signals>,
    pipe: Arc<Pipe>,
    frames: Frames,
    /// Publishes whose confirm was asked for.
    numbers: u64,
    subscribers: HashMap<u64, Subscriber>,
    requests: HashMap<u64, Answer<IncomingMessage>>,
    /// Publishes that wait for the disk, with the number of their receivers.
    confirms: HashMap<u64, (Answer<usize>, usize)>,
    /// Publishes that wait for room, in order.
    parked: VecDeque<Publish>,
    /// A message whose receiver has no room; those behind it wait too.
    held: Option<(Messages, IncomingMessage)>,
}

impl Task {
    async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        loop {
            let takes_commands = self.parked.len() < INTERNAL_PARKED_MAX;
            let held = self.held.as_ref().map(|(messages, _)| messages.clone());
            let mut command = None;
            tokio::select! {
                () = self.pipe.woken() => {}
                given = commands.recv(), if takes_commands => match given {
                    Some(given) => command = Some(given),
                    None => break,
                },
                () = has_room(held.as_ref()), if held.is_some() => {}
            }
            let next = Cell::current(|cell| {
                cell.begin_turn();
                let next = self.turn(cell, command);
                cell.end_turn();
                next
            });
            if next != Some(Next::Wait) {
                break;
            }
        }
    }

    fn turn(&mut self, cell: &Cell, command: Option<Command>) -> Next {
        for signal in [Signal::Broken, Signal::End, Signal::Ending, Signal::Evict, Signal::Stopping] {
            if self.signals.take(signal) {
                self.tell_of_end(cell);
                return Next::Over;
            }
        }
        for signal in [Signal::Resume, Signal::AlarmEnded, Signal::Unthrottled] {
            self.signals.take(signal);
        }
        if self.signals.take(Signal::Renewed) && !self.renew(cell) {
            return Next::Over;
        }
        self.publish_parked(cell);
        if let Some(command) = command {
            self.obey(cell, command);
        }
        self.read(cell)
    }

    /// Takes changes of its user; false where it ends by that.
    fn renew(&mut self, cell: &Cell) -> bool {
        let renewals = cell.shared.with_link(self.connection, |link| link.take_renewals());
        for renewal in renewals.unwrap_or_default() {
            let actor = self.client.actor();
            if !renewal.concerns(actor.identity) {
                continue;
            }
            let may_stay =
                |identity: &Identity| authorize(identity, Action::Enter, actor.vhost, Object::Vhost).is_ok();
            let Some(identity) = renewal.identity.filter(may_stay) else {
                debug!(user = %actor.identity.user, connection = ?self.connection, "the login of an internal client was revoked");
                return false;
            };
            self.client.set_identity(identity);
            for revoked in broker::recheck_readers(cell, &self.client.actor()) {
                // Its receiver sees the end of its messages.
                self.subscribers.retain(|_, subscriber| subscriber.reader != revoked.reader);
            }
        }
        true
    }

    /// Says in the log why the client was cut, if it was.
    fn tell_of_end(&mut self, cell: &Cell) {
        while let Ok(Some(incoming)) = self.take(cell) {
            if let Incoming::Cut(reason) = incoming {
                debug!(%reason, connection = ?self.connection, "an internal client has ended");
            }
        }
    }

    fn obey(&mut self, cell: &Cell, command: Command) {
        match command {
            Command::Publish { to, message, answer } => self.publish(cell, Publish { to, message, answer }),
            Command::Reply { request, message, answer } => {
                let request = *request;
                let Some(to) = request.reply_to else {
                    let _ = answer.send(Ok(0));
                    return;
                };
                let message = match &request.correlation_id {
                    Some(id) => message.with(Property::CorrelationId, id),
                    None => message,
                };
                self.publish(cell, Publish { to, message, answer });
            }
            Command::Ask { to, message, answer } => self.ask(cell, &to, message, answer),
            Command::Subscribe { exchange, key, group, messages, answer } => {
                let added = self.client.subscribe(cell, exchange.as_bytes(), &key, group);
                self.note_subscriber(cell, added, messages, answer);
            }
            Command::Consume { queue, credit, messages, answer } => {
                let added = self.client.consume(cell, queue.as_bytes(), credit);
                self.note_subscriber(cell, added, messages, answer);
            }
            Command::Settle { number, outcome, answer } => {
                let settled = self.client.settle(cell, number, outcome);
                let _ = answer.send(settled.map_err(InternalError::from));
            }
        }
    }

    /// Publishes behind those that wait for room.
    fn publish(&mut self, cell: &Cell, publish: Publish) {
        self.parked.push_back(publish);
        if self.parked.len() == 1 {
            self.publish_parked(cell);
        }
    }

    fn publish_parked(&mut self, cell: &Cell) {
        while let Some(Publish { to, message, answer }) = self.parked.pop_front() {
            let number = self.numbers + 1;
            match self.client.publish(cell, &to, &message, Some(number)) {
                Ok(Published::Taken { receivers }) => {
                    self.numbers = number;
                    self.confirms.insert(number, (answer, receivers));
                }
                Ok(waits) => {
                    self.parked.push_front(Publish { to, message, answer });
                    if waits == Published::WaitForAlarm && !cell.shared.memory.park(self.connection) {
                        // The alarm has ended meanwhile, of which nobody tells.
                        continue;
                    }
                    return;
                }
                Err(error) => drop(answer.send(Err(error.into()))),
            }
        }
    }

    fn ask(&mut self, cell: &Cell, to: &Address, message: OutgoingMessage, answer: Answer<IncomingMessage>) {
        self.forget_abandoned(cell);
        match self.client.ask(cell, to, message) {
            Ok((Published::Taken { receivers: 0 }, request)) => {
                self.client.forget(cell, request);
                let _ = answer.send(Err(InternalError::NoResponder));
            }
            Ok((Published::Taken { .. }, request)) => drop(self.requests.insert(request, answer)),
            Ok((Published::WaitForAlarm | Published::WaitForQueue, request)) => {
                self.client.forget(cell, request);
                let _ = answer.send(Err(InternalError::Busy));
            }
            Err(error) => drop(answer.send(Err(error.into()))),
        }
    }

    /// Forgets requests that nobody waits for any more.
    fn forget_abandoned(&mut self, cell: &Cell) {
        let client = &self.client;
        self.requests.retain(|request, answer| {
            if answer.is_closed() {
                client.forget(cell, *request);
            }
            !answer.is_closed()
        });
    }

    fn note_subscriber(
        &mut self,
        cell: &Cell,
        added: Result<(u64, ReaderId), BrokerError>,
        messages: Messages,
        answer: Answer<()>,
    ) {
        let outcome = added.map(|(subscription, reader)| {
            self.subscribers.insert(subscription, Subscriber { reader, messages });
        });
        if let Err(Ok(())) = answer.send(outcome.map_err(InternalError::from)) {
            debug!(connection = ?self.connection, "a subscription's receiver was gone before it began");
            self.read(cell);
        }
    }

    /// Hands out all that has come, as far as receivers have room.
    fn read(&mut self, cell: &Cell) -> Next {
        loop {
            if let Some((messages, message)) = self.held.take() {
                self.hand_out(cell, messages, message);
            }
            if self.held.is_some() {
                return Next::Wait;
            }
            match self.take(cell) {
                Ok(Some(incoming)) => self.hear(cell, incoming),
                Ok(None) => return Next::Wait,
                Err(error) => {
                    warn!(error, connection = ?self.connection, "an internal client ends by a fault");
                    return Next::Over;
                }
            }
        }
    }

    /// The next frame; takes more from the outbound half where there is none.
    fn take(&mut self, cell: &Cell) -> Result<Option<Incoming>, &'static str> {
        loop {
            if let Some(incoming) = self.frames.next(cell)? {
                return Ok(Some(incoming));
            }
            let before = self.frames.bytes();
            self.pipe.read(|bytes| self.frames.push(bytes));
            if self.frames.bytes() == before {
                if !self.signals.take(Signal::Write) {
                    return Ok(None);
                }
                flush(cell, self.connection);
            }
        }
    }

    fn hear(&mut self, cell: &Cell, incoming: Incoming) {
        match incoming {
            Incoming::Message(message) => {
                if let Some(answer) = self.requests.remove(&message.subscription) {
                    self.client.forget(cell, message.subscription);
                    let _ = answer.send(Ok(message));
                } else if let Some(subscriber) = self.subscribers.get(&message.subscription) {
                    let messages = subscriber.messages.clone();
                    self.hand_out(cell, messages, message);
                }
            }
            // Its receiver sees the end of its messages.
            Incoming::Cancelled(subscription) => drop(self.subscribers.remove(&subscription)),
            Incoming::Confirmed(number) => {
                if let Some((answer, receivers)) = self.confirms.remove(&number) {
                    let _ = answer.send(Ok(receivers));
                }
            }
            Incoming::Cut(reason) => {
                warn!(%reason, connection = ?self.connection, "an internal client is cut");
            }
        }
    }

    fn hand_out(&mut self, cell: &Cell, messages: Messages, message: IncomingMessage) {
        match messages.try_send(message) {
            Ok(()) => {}
            Err(TrySendError::Full(message)) => self.held = Some((messages, message)),
            Err(TrySendError::Closed(message)) => {
                if let Some(Subscriber { reader, .. }) = self.subscribers.remove(&message.subscription) {
                    broker::cancel(cell, &self.client.actor(), reader);
                }
                if message.settles {
                    // Nobody has seen it.
                    let _ = self.client.settle(cell, message.number, Outcome::Release { failed: false });
                }
            }
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        Cell::current(|cell| {
            cell.begin_turn();
            while !self.client.disconnect(cell) {}
            if let Some(handle) = cell.shared.cell(cell.id) {
                handle.internal_clients.fetch_sub(1, Ordering::Relaxed);
            }
            cell.remove_connection(self.connection);
            cell.end_turn();
        });
    }
}

/// Waits until a receiver has room, or is gone.
async fn has_room(messages: Option<&Messages>) {
    if let Some(messages) = messages {
        // What is reserved is given back: the turn that follows sends.
        let _ = messages.reserve().await;
    }
}
