//! The table of protocols, and a connection of any of them as one type.
//!
//! To add a protocol, write its crate and add a line to the table. Its [`ProtocolName`] is its listener's key, and
//! `prepare.rs` derives its settings from the configuration.

use std::sync::Arc;

use bytes::Bytes;
use imori_core::authorize::Renewal;
use imori_core::certificate::Certificate;
use imori_core::id::ConnectionId;
use imori_core::inbound::Inbound;
use imori_core::login::Verdict;
use imori_core::outbound::Encoder;
use imori_core::time::Time;
use imori_core::turn::SessionDetails;
use imori_core::turn::{Budget, ClientFacts, Next, Notice, Peer, Received};
use imori_core::world::World;

use crate::config::{ProtocolName, Spoken};
use crate::protocol_numbers::{AMQP, AMQP10, NATS, STOMP, header_reader};

mod amqp;

pub use amqp::{AmqpConnection, AmqpSettings};

/// Declares the types with a variant or field for each protocol, and the macro `each!`, which evaluates one
/// expression for any of them. The dollar is an argument, so that `each!` can have arguments of its own.
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
            $( $(#[doc = $doc])+ pub $name: Arc<<$Connection as Inbound>::Settings>, )+
        }

        /// Scratch memory for reading frames; nothing in it outlives a turn.
        #[derive(Debug, Default)]
        pub struct Scratch {
            $( $name: <$Connection as Inbound>::Scratch, )+
        }

        impl Protocol {
            /// Creates the inbound half of a connection accepted at `now`.
            pub fn new(
                name: ProtocolName,
                settings: &ProtocolSettings,
                id: ConnectionId,
                peer: Peer,
                now: Time,
            ) -> Protocol {
                match name {
                    $( ProtocolName::$Name => {
                        let settings = Arc::clone(&settings.$name);
                        Protocol::$Name(<$Connection>::new(settings, id, peer, now))
                    } )+
                }
            }

            /// Creates the encoder of a connection before login.
            pub fn encoder(name: ProtocolName, settings: &ProtocolSettings) -> Box<dyn Encoder> {
                match name {
                    $( ProtocolName::$Name => <$Connection>::encoder(&settings.$name), )+
                }
            }

            /// Processes the frames at the start of `input`; see [`Inbound::receive`].
            #[inline]
            pub fn receive<W: World>(
                &mut self,
                world: &W,
                scratch: &mut Scratch,
                input: &[u8],
                shared: Option<&Bytes>,
                budget: &mut Budget,
            ) -> Received {
                match self {
                    $( Protocol::$Name(inbound) => {
                        inbound.receive(world, &mut scratch.$name, input, shared, budget)
                    } )+
                }
            }
        }

        macro_rules! each {
            ($d protocol:expr, $d inbound:ident => $d call:expr) => {
                match $d protocol {
                    $( Protocol::$Name($d inbound) => $d call, )+
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
    /// AMQP 0-9-1 with RabbitMQ's extensions, and AMQP 1.0, by the first bytes.
    Amqp, amqp: AmqpConnection;
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
            amqp: Arc::new(AmqpSettings {
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
            }),
        }
    }
}

/// Each method forwards to the method of [`Inbound`] with the same name, except `decide`.
impl Protocol {
    /// Notes that the peer has started TLS, and its certificate.
    pub fn secured(&mut self, certificate: Option<Arc<Certificate>>) {
        each!(self, inbound => inbound.secured(certificate));
    }

    /// Sends the greeting, if the protocol has one.
    pub fn greet<W: World>(&mut self, world: &W) {
        each!(self, inbound => inbound.greet(world));
    }

    /// Whether the client has logged in.
    pub fn is_logged_in(&self) -> bool {
        each!(self, inbound => inbound.is_logged_in())
    }

    /// Facts about the client's program, for the monitor.
    pub fn client(&self) -> ClientFacts {
        each!(self, inbound => inbound.client())
    }

    /// The sessions with their links; `None` in a protocol without links.
    pub fn details<W: World>(&self, world: &W) -> Option<Vec<SessionDetails>> {
        each!(self, inbound => inbound.details(world))
    }

    /// Chooses the version of AMQP by a client's first bytes, once they are there. Returns the connection and its
    /// version if it was chosen just now.
    #[inline]
    pub(crate) fn decide<W: World>(&mut self, world: &W, first: &[u8]) -> Option<(ConnectionId, Spoken)> {
        match self {
            Protocol::Amqp(amqp) => amqp.decide(world, first),
            Protocol::Stomp(_) | Protocol::Nats(_) => None,
        }
    }

    /// Takes the last notice, for the log.
    pub fn take_notice(&mut self) -> Option<Notice> {
        each!(self, inbound => inbound.take_notice())
    }

    /// Whether frames are parked.
    pub fn has_parked(&self) -> bool {
        each!(self, inbound => inbound.has_parked())
    }

    /// Bytes of the parked frames.
    pub fn parked_bytes(&self) -> usize {
        each!(self, inbound => inbound.parked_bytes())
    }

    /// Whether a frame waits for a queue.
    pub fn waits_for_queue(&self) -> bool {
        each!(self, inbound => inbound.waits_for_queue())
    }

    /// Whether parked frames wait for the end of an alarm.
    pub fn waits_for_alarm(&self) -> bool {
        each!(self, inbound => inbound.waits_for_alarm())
    }

    /// Whether a frame of this size could be parked during an alarm, so that the frames behind it can be read.
    pub fn has_place_to_park<W: World>(&self, world: &W, frame_bytes: usize) -> bool {
        each!(self, inbound => inbound.has_place_to_park(world, frame_bytes))
    }

    /// Total bytes of messages received in part so far, counted once `free_bytes` have arrived.
    #[inline]
    pub fn gathered_bytes(&self, free_bytes: usize) -> usize {
        each!(self, inbound => inbound.gathered_bytes(free_bytes))
    }

    /// Notes that a part of a long frame has arrived.
    pub fn came(&mut self, now: Time) {
        each!(self, inbound => inbound.came(now));
    }

    /// Notes that reading is paused.
    pub fn pause(&mut self) {
        each!(self, inbound => inbound.pause());
    }

    /// When to call [`Protocol::tick`].
    pub fn next_deadline(&self) -> Option<Time> {
        each!(self, inbound => inbound.next_deadline())
    }

    /// Handles the deadlines that have passed.
    pub fn tick<W: World>(&mut self, world: &W) -> Next {
        each!(self, inbound => inbound.tick(world))
    }

    /// Replays parked frames after an alarm.
    pub fn alarm_ended<W: World>(&mut self, world: &W) -> Next {
        each!(self, inbound => inbound.alarm_ended(world))
    }

    /// Replays parked frames once the queue they waited for is shorter or gone.
    pub fn unthrottled<W: World>(&mut self, world: &W) -> Next {
        each!(self, inbound => inbound.unthrottled(world))
    }

    /// Continues a login after its slow check.
    pub fn verified(&mut self, verdict: Verdict) -> Next {
        each!(self, inbound => inbound.verified(verdict))
    }

    /// Applies a change of a user if the client is logged in as that user. Whether the connection has ended.
    #[must_use]
    pub fn renew<W: World>(&mut self, world: &W, renewal: &Renewal) -> bool {
        each!(self, inbound => inbound.renew(world, renewal))
    }

    /// Tells the client that the broker is stopping.
    pub fn stopping<W: World>(&mut self, world: &W) {
        each!(self, inbound => inbound.stopping(world));
    }

    /// Releases what a client without a transport had, but keeps what it sent. Whether all of it was released.
    #[must_use]
    pub fn detach<W: World>(&mut self, world: &W) -> bool {
        each!(self, inbound => inbound.detach(world))
    }

    /// Releases everything a client without a transport had. Whether all of it was released.
    #[must_use]
    pub fn disconnect<W: World>(&mut self, world: &W) -> bool {
        each!(self, inbound => inbound.disconnect(world))
    }
}

#[cfg(test)]
mod tests;
