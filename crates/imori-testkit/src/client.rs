//! A client that speaks a protocol: the broker works on the bytes that it sends and collects its answers.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use imori_core::broker;
use imori_core::id::ConnectionId;
use imori_core::message::{HeaderReader, OriginId};
use imori_core::outbound::{Encoder, Outbound};
use imori_core::time::Time;
use imori_core::turn::{Budget, Next, Peer, Received};
use imori_core::world::World;

use crate::world::TestWorld;

/// A protocol as the kit drives it. A test implements it for a type of its own.
pub trait Protocol {
    /// The state machine of one connection.
    type Connection;
    /// Scratch memory that the connections of a cell share.
    type Scratch: Default;
    /// Settings that all its connections share.
    type Settings: Clone + Default;

    /// The reader of header texts of this origin.
    fn header_reader(origin: OriginId) -> &'static dyn HeaderReader;

    /// The encoder of a new connection.
    fn encoder(settings: &Arc<Self::Settings>) -> Box<dyn Encoder>;

    /// A new connection, which has greeted its client where the protocol does so.
    fn connection(
        world: &TestWorld,
        settings: &Arc<Self::Settings>,
        id: ConnectionId,
        peer: Peer,
    ) -> Self::Connection;

    /// Works on input; `shared` is the same bytes where they may be kept.
    fn receive(
        connection: &mut Self::Connection,
        world: &TestWorld,
        scratch: &mut Self::Scratch,
        input: &[u8],
        shared: Option<&Bytes>,
        budget: &mut Budget,
    ) -> Received;

    /// Tells the connection that the memory alarm is over.
    fn alarm_ended(connection: &mut Self::Connection, world: &TestWorld) -> Next;

    /// Tells the connection that the queue is shorter for which it waited.
    fn relieved(connection: &mut Self::Connection, world: &TestWorld) -> Next;

    /// The time at which [`Protocol::tick`] is due.
    fn next_deadline(connection: &Self::Connection) -> Option<Time>;

    /// Lets the connection look at the clock.
    fn tick(connection: &mut Self::Connection, world: &TestWorld) -> Next;

    /// Tells the connection that the broker is about to stop.
    fn stopping(_connection: &mut Self::Connection, _world: &TestWorld) {}

    /// Ends a part of what the connection holds; `true` once nothing is left.
    fn disconnect(connection: &mut Self::Connection, world: &TestWorld) -> bool;
}

/// A world in which the clients of a protocol can talk.
#[must_use]
pub fn world<P: Protocol>() -> TestWorld {
    TestWorld::reading(P::header_reader)
}

/// Everything that one client with default settings is answered for bytes that come in these pieces.
pub fn answers<'a, P: Protocol>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let world = world::<P>();
    let mut client = Client::<P>::new(&world, &Arc::default(), true);
    let mut answers = Vec::new();
    for piece in pieces {
        client.send(&world, piece);
        answers.extend(client.output(&world));
    }
    answers
}

/// One end of a transport, and the broker's state for it.
pub struct Client<P: Protocol> {
    /// The connection's id.
    pub id: ConnectionId,
    /// The protocol's state machine.
    pub connection: P::Connection,
    /// Its last turn's result.
    pub next: Next,
    unread: Vec<u8>,
    scratch: P::Scratch,
}

impl<P: Protocol> fmt::Debug for Client<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("id", &self.id).field("next", &self.next).finish_non_exhaustive()
    }
}

impl<P: Protocol> Client<P> {
    /// Connects from this machine, or from elsewhere.
    pub fn new(world: &TestWorld, settings: &Arc<P::Settings>, is_loopback: bool) -> Client<P> {
        let id = world.open(P::encoder(settings));
        let address = if is_loopback { "127.0.0.1:50000" } else { "192.0.2.1:50000" };
        let peer = Peer { number: u64::from(id.slot) + 1, is_loopback, address: address.to_string() };
        Client {
            id,
            connection: P::connection(world, settings, id, peer),
            next: Next::More { frame_bytes: None },
            unread: Vec::new(),
            scratch: P::Scratch::default(),
        }
    }

    /// Sends bytes and lets the broker work until it needs more, or waits.
    pub fn send(&mut self, world: &TestWorld, bytes: &[u8]) {
        self.arrive(bytes);
        if !matches!(self.next, Next::Parked | Next::Close) {
            self.work(world);
        }
    }

    /// Lets bytes come that the broker does not look at yet.
    pub fn arrive(&mut self, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
    }

    /// Lets one turn work on these bytes alone.
    pub fn turn(&mut self, world: &TestWorld, input: &[u8], budget: &mut Budget) -> Received {
        P::receive(&mut self.connection, world, &mut self.scratch, input, None, budget)
    }

    /// The memory alarm is over.
    pub fn alarm_ended(&mut self, world: &TestWorld) {
        self.go_on(world, P::alarm_ended);
    }

    /// The queue is shorter for which it waits.
    pub fn relieved(&mut self, world: &TestWorld) {
        self.go_on(world, P::relieved);
    }

    /// Lets the deadlines up to a time pass, each at its time.
    pub fn pass(&mut self, world: &TestWorld, until: Time) {
        while self.next != Next::Close
            && let Some(at) = P::next_deadline(&self.connection)
            && at <= until
        {
            world.set_time(at);
            self.next = P::tick(&mut self.connection, world);
        }
    }

    /// Takes the bytes that the broker has written for it.
    pub fn output(&mut self, world: &TestWorld) -> Vec<u8> {
        let mut output = Vec::new();
        loop {
            let taken = world.with_outbound(self.id, Outbound::take_unsent).flatten();
            let Some((bytes, written)) = taken else { break };
            output.extend_from_slice(&bytes[written..]);
            world.with_outbound(self.id, |outbound| outbound.put_back(bytes, usize::MAX));
            let written = world.with_outbound(self.id, Outbound::written);
            let (wakes, publishers) = written.unwrap_or_default();
            broker::wake_consumers(world, self.id, &wakes);
            broker::resume_publishers(world, &publishers);
        }
        if world.with_outbound(self.id, |outbound| outbound.is_ended()) == Some(true) {
            self.next = Next::Close;
        }
        output
    }

    /// The transport is gone.
    pub fn leave(&mut self, world: &TestWorld) {
        while !P::disconnect(&mut self.connection, world) {}
        world.forget(self.id);
        self.next = Next::Close;
    }

    fn go_on(&mut self, world: &TestWorld, tell: fn(&mut P::Connection, &TestWorld) -> Next) {
        if self.next == Next::Close {
            return;
        }
        self.next = tell(&mut self.connection, world);
        if self.next == Next::Again {
            self.work(world);
        }
    }

    fn work(&mut self, world: &TestWorld) {
        loop {
            let shared = Bytes::from(std::mem::take(&mut self.unread));
            let mut budget = Budget::default();
            let (connection, scratch) = (&mut self.connection, &mut self.scratch);
            let received = P::receive(connection, world, scratch, &shared, Some(&shared), &mut budget);
            self.unread = shared[received.consumed..].to_vec();
            self.next = received.next;
            if !matches!(received.next, Next::Again | Next::Press(_)) {
                return;
            }
        }
    }
}
