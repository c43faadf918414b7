//! The table of protocols, and a connection of any of them as one type.
//!
//! To add a protocol, write its crate, and add a line to the table and a variant to [`Spoken`]. Its
//! [`ProtocolName`](crate::config::ProtocolName) is its listener's key, and `prepare.rs` derives its settings from the
//! configuration.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;
use imori_core::authorize::Identity;
use imori_core::broker::{Actor, Revoked};
use imori_core::id::ConnectionId;
use imori_core::inbound::{Accept, Inbound, Intake, Performed, Phase, Taken, Unread};
use imori_core::outbound::{Encoder, SessionId};
use imori_core::time::Time;
use imori_core::turn::{Budget, ClientFacts, Peer, Received};
use imori_core::world::World;

use crate::config::Spoken;
use crate::protocol_numbers::{AMQP, AMQP10, NATS, STOMP, header_reader};

/// Declares the types with a variant or field for each protocol, and the macro `each!`, which evaluates one
/// expression for any of them, with its part of a [`Scratch`] if one is named. The dollar is an argument, so that
/// `each!` can have arguments of its own.
macro_rules! protocols {
    ($d:tt $( $(#[doc = $doc:literal])+ $Name:ident, $name:ident: $Connection:ty; )+) => {
        /// The inbound half of a connection.
        #[derive(Debug)]
        pub enum Protocol {
            $( $(#[doc = $doc])+ $Name($Connection), )+
        }

        /// Settings of each protocol's connections.
        #[derive(Debug, Clone)]
        pub struct ProtocolSettings {
            $( $(#[doc = $doc])+ pub $name: Arc<<$Connection as Accept>::Settings>, )+
        }

        /// Scratch memory for reading frames; nothing in it outlives a turn.
        #[derive(Debug, Default)]
        pub struct Scratch {
            $( $name: <$Connection as Inbound>::Scratch, )+
        }

        impl Protocol {
            /// Creates the inbound half of a connection accepted at `now`.
            pub fn new(
                spoken: Spoken,
                settings: &ProtocolSettings,
                id: ConnectionId,
                peer: Peer,
                now: Time,
            ) -> Protocol {
                match spoken {
                    $( Spoken::$Name => {
                        let settings = Arc::clone(&settings.$name);
                        Protocol::$Name(<$Connection>::new(settings, id, peer, now))
                    } )+
                }
            }

            /// Creates the encoder of a connection before login.
            pub fn encoder(spoken: Spoken, settings: &ProtocolSettings) -> Box<dyn Encoder> {
                match spoken {
                    $( Spoken::$Name => <$Connection>::encoder(&settings.$name), )+
                }
            }
        }

        macro_rules! each {
            ($d protocol:expr, $d inbound:ident => $d call:expr) => {
                match $d protocol {
                    $( Protocol::$Name($d inbound) => $d call, )+
                }
            };
            ($d protocol:expr, $d inbound:ident, $d scratch:ident => $d call:expr) => {
                match $d protocol {
                    $( Protocol::$Name($d inbound) => {
                        let $d scratch = &mut $d scratch.$name;
                        $d call
                    } )+
                }
            };
        }
    };
}

protocols! {$
    /// STOMP 1.0, 1.1 and 1.2.
    Stomp, stomp: imori_stomp::connection::Connection;
    /// NATS, as its clients speak it.
    Nats, nats: imori_nats::connection::Connection;
    /// AMQP 0-9-1 with RabbitMQ's extensions.
    Amqp091, amqp091: imori_amqp091::connection::Connection;
    /// AMQP 1.0.
    Amqp10, amqp10: imori_amqp10::connection::Connection;
}

impl ProtocolSettings {
    /// Gives each protocol its numbers and the reader of other protocols' headers.
    pub fn new(
        stomp: imori_stomp::settings::Settings,
        nats: imori_nats::settings::Settings,
        amqp091: imori_amqp091::settings::Settings,
        amqp10: imori_amqp10::settings::Settings,
    ) -> ProtocolSettings {
        ProtocolSettings {
            stomp: Arc::new(imori_stomp::settings::Settings {
                origins: STOMP.origins,
                encoder_kinds: STOMP.encoder_kinds,
                header_readers: header_reader,
                ..stomp
            }),
            nats: Arc::new(imori_nats::settings::Settings {
                origins: NATS.origins,
                encoder_kinds: NATS.encoder_kinds,
                header_readers: header_reader,
                ..nats
            }),
            amqp091: Arc::new(imori_amqp091::settings::Settings {
                origins: AMQP.origins,
                encoder_kinds: AMQP.encoder_kinds,
                header_readers: header_reader,
                ..amqp091
            }),
            amqp10: Arc::new(imori_amqp10::settings::Settings {
                origins: AMQP10.origins,
                encoder_kinds: AMQP10.encoder_kinds,
                header_readers: header_reader,
                ..amqp10
            }),
        }
    }
}

/// Each method forwards to the protocol's own. [`Inbound::receive`] does too, so that the protocol is matched once a turn
/// and not once a frame.
impl Inbound for Protocol {
    type Scratch = Scratch;

    fn intake(&self) -> &Intake {
        each!(self, inbound => inbound.intake())
    }

    fn intake_mut(&mut self) -> &mut Intake {
        each!(self, inbound => inbound.intake_mut())
    }

    fn actor(&self) -> Actor<'_> {
        each!(self, inbound => inbound.actor())
    }

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

    fn details<W: World>(&self, world: &W) -> Option<Box<dyn Any + Send>> {
        each!(self, inbound => inbound.details(world))
    }

    fn greet<W: World>(&mut self, world: &W) {
        each!(self, inbound => inbound.greet(world));
    }

    fn take<W: World>(
        &mut self,
        world: &W,
        scratch: &mut Scratch,
        unread: Unread<'_>,
        budget: &mut Budget,
    ) -> Taken {
        each!(self, inbound, scratch => inbound.take(world, scratch, unread, budget))
    }

    fn replay<W: World>(
        &mut self,
        world: &W,
        scratch: &mut Scratch,
        frame: &[u8],
        budget: &mut Budget,
    ) -> Performed {
        each!(self, inbound, scratch => inbound.replay(world, scratch, frame, budget))
    }

    fn replayed(&mut self, session: SessionId) {
        each!(self, inbound => inbound.replayed(session));
    }

    fn finish_turn<W: World>(&mut self, world: &W) {
        each!(self, inbound => inbound.finish_turn(world));
    }

    fn has_parked(&self) -> bool {
        each!(self, inbound => inbound.has_parked())
    }

    fn must_wait<W: World>(&self, world: &W) -> bool {
        each!(self, inbound => inbound.must_wait(world))
    }

    fn does_more_than_publish<W: World>(&self, world: &W) -> bool {
        each!(self, inbound => inbound.does_more_than_publish(world))
    }

    #[inline]
    fn gathered_bytes(&self, free_bytes: usize) -> usize {
        each!(self, inbound => inbound.gathered_bytes(free_bytes))
    }

    fn login_timed_out<W: World>(&mut self, world: &W) {
        each!(self, inbound => inbound.login_timed_out(world));
    }

    fn keepalive_deadline(&self) -> Option<Time> {
        each!(self, inbound => inbound.keepalive_deadline())
    }

    fn keep_alive<W: World>(&mut self, world: &W) {
        each!(self, inbound => inbound.keep_alive(world));
    }

    fn stopping<W: World>(&mut self, world: &W) {
        each!(self, inbound => inbound.stopping(world));
    }

    #[inline]
    fn receive<W: World>(
        &mut self,
        world: &W,
        scratch: &mut Scratch,
        input: &[u8],
        shared: Option<&Bytes>,
        budget: &mut Budget,
    ) -> Received {
        each!(self, inbound, scratch => inbound.receive(world, scratch, input, shared, budget))
    }

    fn next_deadline(&self) -> Option<Time> {
        each!(self, inbound => inbound.next_deadline())
    }
}

#[cfg(test)]
mod tests;
