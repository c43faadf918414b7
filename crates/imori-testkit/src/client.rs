//! A client that speaks a protocol: passes its bytes to the broker and collects the answers.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use imori_core::broker;
use imori_core::id::ConnectionId;
use imori_core::inbound::{Accept, disconnect, tick, verified};
use imori_core::login::Verdict;
use imori_core::outbound::Outbound;
use imori_core::time::Time;
use imori_core::turn::{Budget, Next, Peer, Received};
use imori_core::world::World;

use crate::world::TestWorld;

/// Sends these pieces of input as one client with default settings, and returns all answers.
pub fn answers<'a, C: Accept<Settings: Default>>(
    world: &TestWorld,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> Vec<u8> {
    let mut client = Client::<C>::new(world, &Arc::default(), true);
    let mut answers = Vec::new();
    for piece in pieces {
        client.send(world, piece);
        answers.extend(client.output(world));
    }
    answers
}

/// One end of a transport, with the broker's state for it.
pub struct Client<C: Accept> {
    /// The connection's id.
    pub id: ConnectionId,
    /// The protocol's state machine.
    pub connection: C,
    /// The result of its last turn.
    pub next: Next,
    unread: Vec<u8>,
    scratch: C::Scratch,
}

impl<C: Accept> fmt::Debug for Client<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("id", &self.id).field("next", &self.next).finish_non_exhaustive()
    }
}

impl<C: Accept> Client<C> {
    /// Connects from this machine, or from another if `is_loopback` is false.
    pub fn new(world: &TestWorld, settings: &Arc<C::Settings>, is_loopback: bool) -> Client<C> {
        let id = world.open(C::encoder(settings));
        let address = if is_loopback { "127.0.0.1:50000" } else { "192.0.2.1:50000" };
        let peer = Peer::plain(u64::from(id.slot) + 1, is_loopback, address.to_string());
        let mut connection = C::new(Arc::clone(settings), id, peer, world.now());
        connection.greet(world);
        let next = Next::More { frame_bytes: None };
        Client { id, connection, next, unread: Vec::new(), scratch: Default::default() }
    }

    /// Sends bytes and runs turns until the broker needs more input or waits.
    pub fn send(&mut self, world: &TestWorld, bytes: &[u8]) {
        self.arrive(bytes);
        if !matches!(self.next, Next::Parked | Next::Verify | Next::Close) {
            self.work(world);
        }
    }

    /// Buffers bytes without running a turn.
    pub fn arrive(&mut self, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
    }

    /// Runs one turn on these bytes only.
    pub fn turn(&mut self, world: &TestWorld, input: &[u8], budget: &mut Budget) -> Received {
        self.connection.receive(world, &mut self.scratch, input, None, budget)
    }

    /// Tells the connection that the memory alarm has ended.
    pub fn alarm_ended(&mut self, world: &TestWorld) {
        let next = self.connection.intake().alarm_ended();
        self.go_on(world, next);
    }

    /// Tells the connection that the queue it waited for has room again.
    pub fn unthrottled(&mut self, world: &TestWorld) {
        let next = self.connection.intake_mut().unthrottled();
        self.go_on(world, next);
    }

    /// Passes the connection the verdict on its credentials.
    pub fn verified(&mut self, world: &TestWorld, verdict: Verdict) {
        let next = verified(&mut self.connection, verdict);
        self.go_on(world, next);
    }

    /// Runs the connection's deadlines up to `until`, each at its own time.
    pub fn pass(&mut self, world: &TestWorld, until: Time) {
        while self.next != Next::Close
            && let Some(at) = self.connection.next_deadline()
            && at <= until
        {
            world.set_time(at);
            self.next = tick(&mut self.connection, world);
        }
    }

    /// Takes all bytes that the broker wrote for the client.
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

    /// Closes the transport.
    pub fn leave(&mut self, world: &TestWorld) {
        while !disconnect(&mut self.connection, world) {}
        world.forget(self.id);
        self.next = Next::Close;
    }

    fn go_on(&mut self, world: &TestWorld, next: Next) {
        if self.next == Next::Close {
            return;
        }
        self.next = next;
        if self.next == Next::Again {
            self.work(world);
        }
    }

    fn work(&mut self, world: &TestWorld) {
        loop {
            let shared = Bytes::from(std::mem::take(&mut self.unread));
            let mut budget = Budget::default();
            let received =
                self.connection.receive(world, &mut self.scratch, &shared, Some(&shared), &mut budget);
            self.unread = shared[received.consumed..].to_vec();
            self.next = received.next;
            if !matches!(received.next, Next::Again | Next::SlowReader(_)) {
                return;
            }
        }
    }
}
