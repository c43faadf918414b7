//! The table of protocols, and a connection of any of them as one type.

use std::any::Any;
use std::net::SocketAddr;
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

use super::part::OwnSettings;
use super::parts::header_reader;
use super::{amqp10, amqp091, nats, stomp};
use crate::config::{Config, Spoken};
use crate::run_facts::RunFacts;

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

        impl ProtocolSettings {
            /// Gives the settings of each protocol its numbers and the reader of other protocols' headers.
            #[allow(clippy::too_many_arguments, reason = "one for each protocol")]
            pub fn new($( $name: <$Connection as Accept>::Settings, )+) -> ProtocolSettings {
                ProtocolSettings { $( $name: Arc::new($name.numbered(header_reader)), )+ }
            }

            /// Derives the settings of each protocol from the configuration. `client` is the address that clients are
            /// told.
            pub(crate) fn of(config: &Config, run: &RunFacts, client: SocketAddr) -> ProtocolSettings {
                ProtocolSettings::new($( <<$Connection as Accept>::Settings>::of(config, run, client), )+)
            }
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
    Stomp, stomp: stomp::Connection;
    /// NATS, as its clients speak it.
    Nats, nats: nats::Connection;
    /// AMQP 0-9-1 with RabbitMQ's extensions.
    Amqp091, amqp091: amqp091::Connection;
    /// AMQP 1.0.
    Amqp10, amqp10: amqp10::Connection;
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
