//! The contract between a protocol's connection and the cell that runs it: the peer, the budget of
//! a turn, and the next step.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::certificate::Certificate;
use crate::id::{ConnectionId, VhostId};
use crate::limits::{
    TURN_CHANGES_BESIDE_OTHERS_MAX, TURN_CHANGES_MAX, TURN_COMMANDS_MAX, TURN_RECEIVERS_MAX,
};

/// The peer at the other end of a transport.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The number of its connection, unique while the broker runs.
    pub number: u64,
    /// Whether the peer is on this machine.
    pub is_loopback: bool,
    /// Its address in text form.
    pub address: String,
    /// Whether the transport uses TLS.
    pub is_encrypted: bool,
    /// The certificate that the peer presented, if it was verified.
    pub certificate: Option<Arc<Certificate>>,
    /// Whether TLS can be started within the protocol.
    pub start_tls: StartTls,
    /// Whether passwords are accepted: the transport cannot be overheard, or the operator allows
    /// it.
    pub may_send_password: bool,
}

impl Peer {
    /// A peer without TLS. It may send a password only if it is local.
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

    /// The IP address of the peer, if its address is a network address.
    pub fn source(&self) -> Option<IpAddr> {
        self.address.parse().ok().map(|address: SocketAddr| address.ip().to_canonical())
    }

    /// The user that its certificate names, if any.
    pub fn certified_user(&self) -> Option<&str> {
        self.certificate.as_ref()?.user.as_deref()
    }
}

/// Whether and when TLS can be started within a protocol.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum StartTls {
    /// TLS cannot be started.
    #[default]
    No,
    /// The peer may start TLS.
    Offered,
    /// The peer must start TLS before it logs in.
    Demanded,
}

/// Facts that a client states about itself when it logs in; empty fields where it states none.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ClientFacts {
    /// The client's chosen name.
    pub name: String,
    /// The programming language of its library.
    pub language: String,
    /// The version of its library, or of the protocol if clients do not send one.
    pub version: String,
    /// The user it logged in as.
    pub user: String,
    /// The vhost it entered.
    pub vhost: Option<VhostId>,
    /// The protocol with its version.
    pub protocol: String,
    /// The login mechanism, if the protocol has several.
    pub mechanism: String,
    /// The negotiated number of sessions, if the protocol negotiates one.
    pub sessions_max: Option<u16>,
    /// The negotiated frame size in bytes, if the protocol negotiates one.
    pub frame_bytes_max: Option<u32>,
    /// The negotiated heart-beat interval in seconds, if the protocol negotiates one.
    pub heartbeat_s: Option<u16>,
    /// All other client properties, as a JSON object.
    pub properties: String,
}

/// The remaining budget of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    commands: usize,
    receivers: usize,
    /// Changes of the routing table.
    changes: usize,
    /// A receiver that is behind.
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
    /// The budget of a turn while other connections wait.
    pub fn beside_others() -> Self {
        Self { changes: TURN_CHANGES_BESIDE_OTHERS_MAX, ..Self::default() }
    }

    /// Whether the turn must end.
    pub fn is_spent(&self) -> bool {
        self.commands == 0 || self.receivers == 0 || self.changes == 0
    }

    /// Ends the turn and returns the next step. A publisher that met a slow reader now waits for
    /// it. It waits once per turn, not per message, so that a stuck reader cannot delay it for
    /// long.
    pub fn close(&mut self, next: Next) -> Next {
        self.slow_reader.take().map_or(next, Next::SlowReader)
    }

    /// Charges commands and the deliveries that they caused, and notes a slow reader among the
    /// receivers.
    pub fn spend(&mut self, commands: usize, receivers: usize, slow_reader: Option<ConnectionId>) {
        self.commands = self.commands.saturating_sub(commands);
        self.receivers = self.receivers.saturating_sub(receivers);
        self.slow_reader = slow_reader.or(self.slow_reader);
    }

    /// Charges a command that changes the routing table.
    pub fn spend_change(&mut self) {
        self.spend(1, 0, None);
        self.changes = self.changes.saturating_sub(1);
    }

    /// The number of commands left, at least one.
    pub fn commands(&self) -> usize {
        self.commands.max(1)
    }

    /// The number of repeated messages that fit into the turn, if each goes to `receivers`
    /// receivers; one if that is unknown.
    pub fn messages_to(&self, receivers: Option<usize>) -> usize {
        receivers.map_or(1, |receivers| self.commands.min((self.receivers / receivers.max(1)).max(1)))
    }
}

/// The result of processing input in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// The number of bytes consumed.
    pub consumed: usize,
    /// The next step.
    pub next: Next,
}

/// The next step for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Read more input.
    More {
        /// The size of the incomplete frame in bytes, if known.
        frame_bytes: Option<usize>,
    },
    /// Give others a turn, then continue with the rest of the input.
    Again,
    /// Wait until this connection has room, a few milliseconds at most, then continue.
    SlowReader(ConnectionId),
    /// Wait a few milliseconds, then continue with the rest of the input: the disk has no room yet
    /// for what it settles.
    Later,
    /// Read nothing until the memory alarm ends.
    Parked,
    /// Read nothing until the verdict of a login is known, and pass it to
    /// [`verified`](crate::inbound::verified).
    Verify,
    /// Write the unsent output, then close.
    Close,
}

/// A notice about a client for the broker's log; protocols do not log themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The kind, which tells whether the client was informed.
    pub kind: NoticeKind,
    /// A short fixed text that programs may compare.
    pub message: &'static str,
    /// The problem, and how to fix it.
    pub text: String,
}

/// What became of the client that a notice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeKind {
    /// The client was refused something and told so in the same words, or cut.
    Refused,
    /// The client asked for something without effect, and was not told.
    Ignored,
}

impl Notice {
    /// A notice of a refusal, in the words that the client was told.
    pub fn refused(message: &'static str, text: String) -> Notice {
        Notice { kind: NoticeKind::Refused, message, text }
    }

    /// A notice of something without effect.
    pub fn ignored(message: &'static str, text: String) -> Notice {
        Notice { kind: NoticeKind::Ignored, message, text }
    }
}
