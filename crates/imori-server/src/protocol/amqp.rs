//! A connection of AMQP's listener: its first bytes choose between 0-9-1 and 1.0.

use std::sync::Arc;

use imori_amqp10::connection::Connection as Amqp10;
use imori_amqp091::connection::Connection as Amqp091;
use imori_core::authorize::Identity;
use imori_core::broker::{Actor, Revoked};
use imori_core::id::{ConnectionId, VhostId};
use imori_core::inbound::{Inbound, Intake, Performed, Phase, Taken, Unread};
use imori_core::outbound::{Encoder, Mute, SessionId};
use imori_core::time::Time;
use imori_core::turn::SessionDetails;
use imori_core::turn::{Budget, ClientFacts, Peer};
use imori_core::world::World;

use crate::config::Spoken;

/// Settings of both versions.
#[derive(Debug, Clone)]
pub struct AmqpSettings {
    /// AMQP 0-9-1 with RabbitMQ's extensions.
    pub amqp091: Arc<imori_amqp091::settings::Settings>,
    /// AMQP 1.0.
    pub amqp10: Arc<imori_amqp10::settings::Settings>,
}

/// The inbound half of a connection to AMQP's listener.
#[derive(Debug)]
pub enum AmqpConnection {
    /// The first bytes are awaited.
    Undecided(Box<Undecided>),
    /// The client speaks 0-9-1, or something else, to which that answers.
    Amqp091(Amqp091),
    /// The client speaks 1.0.
    Amqp10(Amqp10),
}

/// A connection whose client has not said which version it speaks.
#[derive(Debug)]
pub struct Undecided {
    settings: Arc<AmqpSettings>,
    id: ConnectionId,
    identity: Identity,
    accepted: Time,
    intake: Intake<Box<[u8]>>,
    is_closed: bool,
}

/// The version that the first bytes ask for; `None` where more of them are needed. A header of AMQP 1.0 has the number of
/// a protocol and behind that a major version from 1 on; those of 0-9-1 and before have 0 or 1 and then 0 or 1.
fn version(first: &[u8]) -> Option<Spoken> {
    match first {
        [b'A', b'M', b'Q', b'P', 2..=u8::MAX, ..] | [b'A', b'M', b'Q', b'P', 0, 1..=u8::MAX, ..] => {
            Some(Spoken::Amqp10)
        }
        [b'A', b'M', b'Q', b'P', 0] => None,
        _ if first.len() <= 4 && b"AMQP".starts_with(first) => None,
        _ => Some(Spoken::Amqp091),
    }
}

/// Runs an expression on whichever connection it is.
macro_rules! each {
    ($amqp:expr, $inbound:ident => $call:expr) => {
        match $amqp {
            AmqpConnection::Undecided($inbound) => $call,
            AmqpConnection::Amqp091($inbound) => $call,
            AmqpConnection::Amqp10($inbound) => $call,
        }
    };
}

impl AmqpConnection {
    /// Becomes a connection of the version that the first bytes ask for, if they are there. Gives whose version it is.
    #[inline]
    pub(super) fn decide<W: World>(&mut self, world: &W, first: &[u8]) -> Option<(ConnectionId, Spoken)> {
        match self {
            AmqpConnection::Undecided(_) => self.become_version(world, first),
            AmqpConnection::Amqp091(_) | AmqpConnection::Amqp10(_) => None,
        }
    }

    #[cold]
    fn become_version<W: World>(&mut self, world: &W, first: &[u8]) -> Option<(ConnectionId, Spoken)> {
        let AmqpConnection::Undecided(undecided) = self else { return None };
        let version = version(first)?;
        let Undecided { settings, id, accepted, intake, .. } = &**undecided;
        let (id, peer) = (*id, intake.peer.clone());
        *self = match version {
            Spoken::Amqp10 => {
                let encoder = Amqp10::encoder(&settings.amqp10);
                world.with_outbound(id, |outbound| outbound.set_encoder(encoder));
                AmqpConnection::Amqp10(Amqp10::new(Arc::clone(&settings.amqp10), id, peer, *accepted))
            }
            _ => {
                let encoder = Amqp091::encoder(&settings.amqp091);
                world.with_outbound(id, |outbound| outbound.set_encoder(encoder));
                AmqpConnection::Amqp091(Amqp091::new(Arc::clone(&settings.amqp091), id, peer, *accepted))
            }
        };
        Some((id, version))
    }
}

impl Inbound for AmqpConnection {
    type Settings = AmqpSettings;
    type Scratch = ();
    type Parked = Box<[u8]>;

    fn new(settings: Arc<AmqpSettings>, id: ConnectionId, peer: Peer, now: Time) -> AmqpConnection {
        let login_timeout = settings.amqp091.login_timeout;
        AmqpConnection::Undecided(Box::new(Undecided {
            intake: Intake::new(peer, login_timeout, settings.amqp091.parked_bytes_max, now),
            settings,
            id,
            identity: Identity::nobody(),
            accepted: now,
            is_closed: false,
        }))
    }

    /// Whoever has said nothing is told nothing: neither version's frames mean anything to the other.
    fn encoder(_: &AmqpSettings) -> Box<dyn Encoder> {
        Box::new(Mute)
    }

    fn intake(&self) -> &Intake<Box<[u8]>> {
        each!(self, inbound => inbound.intake())
    }

    fn intake_mut(&mut self) -> &mut Intake<Box<[u8]>> {
        each!(self, inbound => inbound.intake_mut())
    }

    fn actor(&self) -> Actor<'_> {
        each!(self, inbound => inbound.actor())
    }

    #[inline]
    fn phase(&self) -> Phase {
        each!(self, inbound => inbound.phase())
    }

    fn close(&mut self) {
        each!(self, inbound => inbound.close());
    }

    fn set_identity(&mut self, identity: Identity) {
        each!(self, inbound => inbound.set_identity(identity));
    }

    fn readers_revoked<W: World>(&mut self, world: &W, revoked: Vec<Revoked>) {
        each!(self, inbound => inbound.readers_revoked(world, revoked));
    }

    fn is_logged_in(&self) -> bool {
        each!(self, inbound => inbound.is_logged_in())
    }

    fn client(&self) -> ClientFacts {
        each!(self, inbound => inbound.client())
    }

    fn details<W: World>(&self, world: &W) -> Option<Vec<SessionDetails>> {
        match self {
            AmqpConnection::Amqp10(inbound) => inbound.details(world),
            AmqpConnection::Undecided(_) | AmqpConnection::Amqp091(_) => None,
        }
    }

    #[inline]
    fn take<W: World>(
        &mut self,
        world: &W,
        scratch: &mut (),
        unread: Unread<'_>,
        budget: &mut Budget,
    ) -> Taken {
        self.decide(world, unread.bytes());
        match self {
            AmqpConnection::Amqp091(inbound) => inbound.take(world, scratch, unread, budget),
            AmqpConnection::Amqp10(inbound) => inbound.take(world, scratch, unread, budget),
            AmqpConnection::Undecided(_) => Taken::Incomplete { frame_bytes: None },
        }
    }

    fn replay<W: World>(
        &mut self,
        world: &W,
        scratch: &mut (),
        frame: &Box<[u8]>,
        budget: &mut Budget,
    ) -> Performed {
        each!(self, inbound => inbound.replay(world, scratch, frame, budget))
    }

    fn has_parked(&self) -> bool {
        match self {
            AmqpConnection::Amqp091(inbound) => inbound.has_parked(),
            AmqpConnection::Amqp10(inbound) => inbound.has_parked(),
            AmqpConnection::Undecided(_) => false,
        }
    }

    fn replayed(&mut self, session: SessionId) {
        each!(self, inbound => inbound.replayed(session));
    }

    fn does_more_than_publish<W: World>(&self, world: &W) -> bool {
        each!(self, inbound => inbound.does_more_than_publish(world))
    }

    #[inline]
    fn gathered_bytes(&self, free_bytes: usize) -> usize {
        each!(self, inbound => inbound.gathered_bytes(free_bytes))
    }

    fn keepalive_deadline(&self) -> Option<Time> {
        each!(self, inbound => inbound.keepalive_deadline())
    }

    fn keep_alive<W: World>(&mut self, world: &W) {
        each!(self, inbound => inbound.keep_alive(world));
    }
}

/// Nothing has been said yet, so that nearly nothing can happen.
impl Undecided {
    fn intake(&self) -> &Intake<Box<[u8]>> {
        &self.intake
    }

    fn intake_mut(&mut self) -> &mut Intake<Box<[u8]>> {
        &mut self.intake
    }

    fn actor(&self) -> Actor<'_> {
        Actor { identity: &self.identity, connection: self.id, vhost: VhostId(0) }
    }

    fn phase(&self) -> Phase {
        if self.is_closed { Phase::Closed } else { Phase::Open }
    }

    fn close(&mut self) {
        self.is_closed = true;
    }

    fn set_identity(&mut self, _: Identity) {}

    fn readers_revoked<W: World>(&mut self, _: &W, _: Vec<Revoked>) {}

    fn is_logged_in(&self) -> bool {
        false
    }

    fn client(&self) -> ClientFacts {
        ClientFacts::default()
    }

    fn replay<W: World>(&mut self, _: &W, _: &mut (), _: &[u8], _: &mut Budget) -> Performed {
        Performed::Done
    }

    fn replayed(&mut self, _: SessionId) {}

    fn does_more_than_publish<W: World>(&self, _: &W) -> bool {
        false
    }

    fn gathered_bytes(&self, _: usize) -> usize {
        0
    }

    fn keepalive_deadline(&self) -> Option<Time> {
        None
    }

    fn keep_alive<W: World>(&mut self, _: &W) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_choose_the_version() {
        for (first, expected) in [
            (&b""[..], None),
            (b"A", None),
            (b"AMQP", None),
            (b"AMQP\0", None),
            (b"AMQP\0\0", Some(Spoken::Amqp091)),
            (b"AMQP\0\0\x09\x01", Some(Spoken::Amqp091)),
            (b"AMQP\x01\x01\x08\x00", Some(Spoken::Amqp091)),
            (b"AMQP\0\x01\0\0", Some(Spoken::Amqp10)),
            (b"AMQP\x03", Some(Spoken::Amqp10)),
            (b"AMQP\x02\x01\0\0", Some(Spoken::Amqp10)),
            (b"AMQP\x04", Some(Spoken::Amqp10)),
            (b"AMQP\xff\0\0\0", Some(Spoken::Amqp10)),
            (b"AMQP\0\x02\0\0", Some(Spoken::Amqp10)),
            (b"AMQP\x01\0\0\0", Some(Spoken::Amqp091)),
            (b"G", Some(Spoken::Amqp091)),
            (b"AMQX", Some(Spoken::Amqp091)),
        ] {
            assert_eq!(version(first), expected, "{first:?}");
        }
    }
}
