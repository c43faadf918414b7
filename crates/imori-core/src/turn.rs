//! The contract between a protocol's connection and the cell that runs it: the peer, the budget of a turn, and the
//! next step.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::certificate::Certificate;
use crate::id::{ConnectionId, VhostId};
use crate::limits::{
    TURN_CHANGES_BESIDE_OTHERS_MAX, TURN_CHANGES_MAX, TURN_COMMANDS_MAX, TURN_RECEIVERS_MAX,
};
use crate::name::Name;

/// The peer at the other end of a transport.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The number of its connection, which no other has as long as the broker runs.
    pub number: u64,
    /// The peer is on this machine.
    pub is_loopback: bool,
    /// Its address, as people write it.
    pub address: String,
    /// The transport is one of TLS.
    pub is_encrypted: bool,
    /// The certificate that the peer showed and that was verified, if any.
    pub certificate: Option<Arc<Certificate>>,
    /// Whether it may begin TLS in the course of its protocol.
    pub start_tls: StartTls,
    /// A password may come by this transport: nobody on the way reads it, or the operator accepts that.
    pub may_send_password: bool,
}

impl Peer {
    /// A peer without TLS. From elsewhere it may send no password.
    pub fn plain(number: u64, is_loopback: bool, address: String) -> Peer {
        Peer {
            number,
            is_loopback,
            address,
            is_encrypted: false,
            certificate: None,
            start_tls: StartTls::No,
            may_send_password: is_loopback,
        }
    }

    /// The host of its address, where that is one of the network.
    pub fn source(&self) -> Option<IpAddr> {
        self.address.parse().ok().map(|address: SocketAddr| address.ip().to_canonical())
    }

    /// The user that its certificate names, if it showed one that names one.
    pub fn certified_user(&self) -> Option<&str> {
        self.certificate.as_ref()?.user.as_deref()
    }
}

/// TLS that begins in the course of a protocol.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum StartTls {
    /// There is none.
    #[default]
    No,
    /// The peer may begin it.
    Offered,
    /// The peer has to begin it before it logs in.
    Demanded,
}

/// The facts that a client tells about itself when it logs in; empty where it tells none.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ClientFacts {
    /// The name that the client gives itself.
    pub name: String,
    /// The language of its library.
    pub language: String,
    /// The version of its library, or of the protocol where clients tell no other.
    pub version: String,
    /// The user it logged in as.
    pub user: String,
    /// The vhost it entered.
    pub vhost: Option<VhostId>,
    /// The protocol that it speaks, with its version.
    pub protocol: String,
    /// The mechanism by which it logged in, where its protocol knows several.
    pub mechanism: String,
    /// Sessions that it may open, where its protocol agrees on a number.
    pub sessions_max: Option<u16>,
    /// Bytes of a frame, where its protocol agrees on a number.
    pub frame_bytes_max: Option<u32>,
    /// Seconds between heart-beats, where its protocol agrees on a number.
    pub heartbeat_s: Option<u16>,
    /// Everything else that it tells of its program, as a JSON object.
    pub properties: String,
}

/// A session, and its links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionDetails {
    /// The channel that it is on.
    pub channel: u16,
    /// The highest number of a link.
    pub handle_max: u32,
    /// The serial number of the client's next frame of a delivery.
    pub next_incoming_id: u32,
    /// Frames of deliveries that the client may send.
    pub incoming_window: u32,
    /// The serial number of the broker's next frame of a delivery.
    pub next_outgoing_id: u32,
    /// Frames of deliveries that the client takes.
    pub remote_incoming_window: u32,
    /// Deliveries to the client that are not settled.
    pub unsettled: usize,
    /// Answers to the client that wait for the journal.
    pub held_answers: usize,
    /// The links, by their numbers.
    pub links: Vec<LinkDetails>,
}

/// The way that messages take on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkDirection {
    /// The client sends.
    Incoming,
    /// The broker sends.
    Outgoing,
}

/// A link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkDetails {
    /// Its number in the session.
    pub handle: u32,
    /// The name that the client gave it.
    pub name: String,
    /// The way that messages take.
    pub direction: LinkDirection,
    /// The node as the client names it; `None` where each message names its own.
    pub address: Option<String>,
    /// The queue that an outgoing link reads.
    pub queue: Option<Name>,
    /// `settled`, `unsettled` or `mixed`.
    pub snd_settle_mode: &'static str,
    /// `first` or `second`.
    pub rcv_settle_mode: &'static str,
    /// Bytes of a message, where that is limited.
    pub message_bytes_max: Option<u64>,
    /// Deliveries so far, as a serial number.
    pub delivery_count: u32,
    /// Deliveries that may follow.
    pub credit: u32,
    /// Deliveries of an outgoing link that are not settled.
    pub unsettled: usize,
}

/// How much a turn may still do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    commands: usize,
    receivers: usize,
    /// Changes of the routing table.
    changes: usize,
    /// A receiver who is behind.
    slow_reader: Option<ConnectionId>,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            commands: TURN_COMMANDS_MAX,
            receivers: TURN_RECEIVERS_MAX,
            changes: TURN_CHANGES_MAX,
            slow_reader: None,
        }
    }
}

impl Budget {
    /// The budget of a turn while other connections wait for its end.
    pub fn beside_others() -> Self {
        Self { changes: TURN_CHANGES_BESIDE_OTHERS_MAX, ..Self::default() }
    }

    /// Says that the turn is over.
    pub fn is_spent(&self) -> bool {
        self.commands == 0 || self.receivers == 0 || self.changes == 0
    }

    /// Ends the turn, and gives the next step. A publisher that met a slow reader waits for that reader now. It waits
    /// once a turn and not at each message, so that a reader that stopped cannot hold it up for long.
    pub fn close(&mut self, next: Next) -> Next {
        self.slow_reader.take().map_or(next, Next::SlowReader)
    }

    /// Charges the turn with commands and the deliveries that they caused, and notes a slow reader among the
    /// receivers.
    pub fn spend(&mut self, commands: usize, receivers: usize, slow_reader: Option<ConnectionId>) {
        self.commands = self.commands.saturating_sub(commands);
        self.receivers = self.receivers.saturating_sub(receivers);
        self.slow_reader = slow_reader.or(self.slow_reader);
    }

    /// Notes a command that changes the routing table.
    pub fn spend_change(&mut self) {
        self.spend(1, 0, None);
        self.changes = self.changes.saturating_sub(1);
    }

    /// How many commands it allows, at least one.
    pub fn commands(&self) -> usize {
        self.commands.max(1)
    }

    /// How many messages of a publisher that repeats itself it allows, each going to so many; where that is
    /// not known, one.
    pub fn messages_to(&self, receivers: Option<usize>) -> usize {
        receivers.map_or(1, |receivers| self.commands.min((self.receivers / receivers.max(1)).max(1)))
    }
}

/// The result of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Bytes of the input that are done with.
    pub consumed: usize,
    /// The next step.
    pub next: Next,
}

/// The next step, which the caller has to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Read more.
    More {
        /// Bytes of the whole frame whose beginning is left, when that is known.
        frame_bytes: Option<usize>,
    },
    /// Give others a turn, then come back with what is left of the input.
    Again,
    /// Wait until this connection has room, but a few milliseconds at most, then come back.
    SlowReader(ConnectionId),
    /// Come back after a few milliseconds with what is left of the input: what it settles has no room yet.
    Later,
    /// Read nothing until the memory alarm ends.
    Parked,
    /// Read nothing until the verdict of a login is known, and tell it by
    /// [`Inbound::verified`](crate::inbound::Inbound::verified).
    Verify,
    /// Write what is unsent, then close.
    Close,
}

/// Something about a client for the broker's log: protocols do not log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Whether the client knows of it.
    pub kind: NoticeKind,
    /// A few words that programs may compare.
    pub message: &'static str,
    /// The fault, and how to mend it.
    pub text: String,
}

/// The kinds of notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeKind {
    /// The client was refused something and told so in the same words, or it is cut.
    Refused,
    /// The client asked for something that has no effect, and was not told.
    Ignored,
}

impl Notice {
    /// A refusal, as the client was told.
    pub fn refused(message: &'static str, text: String) -> Notice {
        Notice { kind: NoticeKind::Refused, message, text }
    }

    /// Something without effect.
    pub fn ignored(message: &'static str, text: String) -> Notice {
        Notice { kind: NoticeKind::Ignored, message, text }
    }
}
