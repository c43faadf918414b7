//! The protocols that connections speak, as one type: what a task says to any of them.
//!
//! Another protocol is another variant with its arms, its settings and its [`ProtocolName`].

use std::sync::Arc;

use bytes::Bytes;
use imori_core::id::ConnectionId;
use imori_core::outbound::Encoder;
use imori_core::time::Time;
use imori_core::turn::{Budget, ClientFacts, Next, Peer, Received, Refusal};
use imori_core::world::World;
use imori_stomp::frame::HeaderTable;

use crate::config::ProtocolName;
use crate::settings::ProtocolSettings;

/// The inbound half of a connection.
#[derive(Debug)]
pub enum Protocol {
    /// STOMP 1.0, 1.1 and 1.2.
    Stomp(imori_stomp::connection::Connection),
    /// NATS, as its clients speak it.
    Nats(imori_nats::connection::Connection),
}

/// What protocols note of a frame while they read it; nothing of it outlives a turn.
#[derive(Debug, Default)]
pub struct Tables {
    stomp: HeaderTable,
}

impl Protocol {
    /// A connection that was accepted just now.
    pub fn new(
        name: ProtocolName,
        settings: &ProtocolSettings,
        id: ConnectionId,
        peer: Peer,
        now: Time,
    ) -> Protocol {
        match name {
            ProtocolName::Stomp => {
                let settings = Arc::clone(&settings.stomp);
                Protocol::Stomp(imori_stomp::connection::Connection::new(settings, id, peer, now))
            }
            ProtocolName::Nats => {
                let settings = Arc::clone(&settings.nats);
                Protocol::Nats(imori_nats::connection::Connection::new(settings, id, peer, now))
            }
        }
    }

    /// What writes the deliveries of such a connection until more is agreed on.
    pub fn encoder(name: ProtocolName, settings: &ProtocolSettings) -> Box<dyn Encoder> {
        match name {
            ProtocolName::Stomp => imori_stomp::connection::Connection::encoder(&settings.stomp),
            ProtocolName::Nats => imori_nats::connection::Connection::encoder(&settings.nats),
        }
    }

    /// The connection is registered: says what the broker says first, if it does.
    pub fn greet<W: World>(&mut self, world: &W) {
        match self {
            // STOMP 1.2, Connecting: the client speaks first.
            Protocol::Stomp(_) => {}
            Protocol::Nats(nats) => nats.greet(world),
        }
    }

    /// Works through the frames at the head of `input`, which begins where the last call's `consumed` ended.
    /// `shared`, when given, holds exactly `input`, so that a large body can be kept without a copy.
    #[inline]
    pub fn receive<W: World>(
        &mut self,
        world: &W,
        tables: &mut Tables,
        input: &[u8],
        shared: Option<&Bytes>,
        budget: &mut Budget,
    ) -> Received {
        match self {
            Protocol::Stomp(stomp) => stomp.receive(world, &mut tables.stomp, input, shared, budget),
            Protocol::Nats(nats) => nats.receive(world, input, shared, budget),
        }
    }

    /// Says that the client has logged in.
    pub fn is_logged_in(&self) -> bool {
        match self {
            Protocol::Stomp(stomp) => stomp.is_logged_in(),
            Protocol::Nats(nats) => nats.is_logged_in(),
        }
    }

    /// What the client says of itself.
    pub fn client(&self) -> ClientFacts {
        match self {
            Protocol::Stomp(stomp) => stomp.client(),
            Protocol::Nats(nats) => nats.client(),
        }
    }

    /// Why the client was refused something last, once, for the log.
    pub fn take_refusal(&mut self) -> Option<Refusal> {
        match self {
            Protocol::Stomp(stomp) => stomp.take_refusal(),
            Protocol::Nats(nats) => nats.take_refusal(),
        }
    }

    /// Says that frames wait for the end of the memory alarm.
    pub fn waits_for_memory(&self) -> bool {
        match self {
            Protocol::Stomp(stomp) => stomp.waits_for_memory(),
            Protocol::Nats(nats) => nats.waits_for_memory(),
        }
    }

    /// Bytes of the frames that wait.
    pub fn parked_bytes(&self) -> usize {
        match self {
            Protocol::Stomp(stomp) => stomp.parked_bytes(),
            Protocol::Nats(nats) => nats.parked_bytes(),
        }
    }

    /// Says that what waits does so for a queue, which tells when it is shorter.
    pub fn waits_for_queue(&self) -> bool {
        match self {
            Protocol::Stomp(stomp) => stomp.waits_for_queue(),
            Protocol::Nats(nats) => nats.waits_for_queue(),
        }
    }

    /// When [`Protocol::tick`] is to be called.
    pub fn next_deadline(&self) -> Option<Time> {
        match self {
            Protocol::Stomp(stomp) => stomp.next_deadline(),
            Protocol::Nats(nats) => nats.next_deadline(),
        }
    }

    /// A deadline may have passed.
    pub fn tick<W: World>(&mut self, world: &W) -> Next {
        match self {
            Protocol::Stomp(stomp) => stomp.tick(world),
            Protocol::Nats(nats) => nats.tick(world),
        }
    }

    /// The memory alarm is over: does what waited for that.
    pub fn alarm_ended<W: World>(&mut self, world: &W) -> Next {
        match self {
            Protocol::Stomp(stomp) => stomp.alarm_ended(world),
            Protocol::Nats(nats) => nats.alarm_ended(world),
        }
    }

    /// The queue that something waited for is shorter, or gone.
    pub fn relieved<W: World>(&mut self, world: &W) -> Next {
        match self {
            Protocol::Stomp(stomp) => stomp.relieved(world),
            Protocol::Nats(nats) => nats.relieved(world),
        }
    }

    /// The broker begins to stop: the client is told, and goes or is cut.
    pub fn stopping<W: World>(&mut self, world: &W) {
        match self {
            Protocol::Stomp(stomp) => stomp.stopping(world),
            Protocol::Nats(nats) => nats.stopping(world),
        }
    }

    /// The transport is gone, and what the client sent before waits for the disk: gives back what it had but that; says
    /// whether that was all.
    #[must_use]
    pub fn leave_behind<W: World>(&mut self, world: &W) -> bool {
        match self {
            Protocol::Stomp(stomp) => stomp.leave_behind(world),
            // Nothing of it waits for the disk.
            Protocol::Nats(_) => true,
        }
    }

    /// The transport is gone: gives back what the client had, or a part of it; says whether that was all.
    #[must_use]
    pub fn disconnect<W: World>(&mut self, world: &W) -> bool {
        match self {
            Protocol::Stomp(stomp) => stomp.disconnect(world),
            Protocol::Nats(nats) => nats.disconnect(world),
        }
    }
}
