//! A client of the tiny world: what it sends is worked on, what it gets is collected.

use std::sync::Arc;

use bytes::Bytes;
use imori_core::broker;
use imori_core::id::ConnectionId;
use imori_core::inbound::Inbound;
use imori_core::outbound::Outbound;
use imori_core::time::Time;
use imori_core::turn::{Budget, Next, Peer};
use imori_core::world::World;
use imori_nats::connection::Connection;
use imori_nats::settings::Settings;

use crate::world::TinyWorld;

/// One end of a transport, and the broker's state for it.
pub(crate) struct Client {
    pub(crate) id: ConnectionId,
    pub(crate) connection: Connection,
    /// What the last turn came to.
    pub(crate) next: Next,
    unread: Vec<u8>,
}

impl Client {
    /// Connects from this machine, or from elsewhere, and is greeted.
    pub(crate) fn new(world: &TinyWorld, settings: &Arc<Settings>, is_loopback: bool) -> Client {
        let id = world.connect(Connection::encoder(settings));
        let address = if is_loopback { "127.0.0.1:50000" } else { "192.0.2.1:50000" };
        let peer = Peer { number: u64::from(id.slot) + 1, is_loopback, address: address.to_string() };
        let mut connection = Connection::new(Arc::clone(settings), id, peer, world.now());
        connection.greet(world);
        Client { id, connection, next: Next::More { frame_bytes: None }, unread: Vec::new() }
    }

    /// Sends bytes and lets the broker work until it needs more, or waits.
    pub(crate) fn send(&mut self, world: &TinyWorld, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
        if !matches!(self.next, Next::Parked | Next::Close) {
            self.work(world);
        }
    }

    /// Bytes come, and nobody looks at them yet.
    pub(crate) fn arrive(&mut self, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
    }

    /// The memory alarm is over.
    pub(crate) fn alarm_ended(&mut self, world: &TinyWorld) {
        if self.next == Next::Close {
            return;
        }
        self.next = self.connection.alarm_ended(world);
        if self.next == Next::Again {
            self.work(world);
        }
    }

    /// The queue that it waits for is shorter.
    pub(crate) fn relieved(&mut self, world: &TinyWorld) {
        if self.next == Next::Close {
            return;
        }
        self.next = self.connection.relieved(world);
        if self.next == Next::Again {
            self.work(world);
        }
    }

    /// Lets the deadlines up to a time pass, each at its time.
    pub(crate) fn pass(&mut self, world: &TinyWorld, until: Time) {
        while self.next != Next::Close
            && let Some(at) = self.connection.next_deadline()
            && at <= until
        {
            world.set_time(at);
            self.next = self.connection.tick(world);
        }
    }

    /// Takes what the broker has written for it.
    pub(crate) fn output(&mut self, world: &TinyWorld) -> Vec<u8> {
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
    pub(crate) fn leave(&mut self, world: &TinyWorld) {
        while !self.connection.disconnect(world) {}
        world.forget(self.id);
        self.next = Next::Close;
    }

    fn work(&mut self, world: &TinyWorld) {
        loop {
            let shared = Bytes::from(std::mem::take(&mut self.unread));
            let mut budget = Budget::default();
            let received = self.connection.receive(world, &mut (), &shared, Some(&shared), &mut budget);
            self.unread = shared[received.consumed..].to_vec();
            self.next = received.next;
            if !matches!(received.next, Next::Again | Next::Press(_)) {
                return;
            }
        }
    }
}
