//! Identifies a client: the proof that it gives, and the verdict.
//!
//! The core decides nothing here. The program that runs it answers by [`World::verify`](crate::world::World::verify),
//! at once or later.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::authorize::Identity;
use crate::certificate::Certificate;
use crate::id::ConnectionId;

/// Name and password of the only user until users are configured, as in RabbitMQ; a client that names none means it.
pub const BUILT_IN_USER: &[u8] = b"guest";

/// A client that wants to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// The client's connection. No other connection ever has the same id.
    pub connection: ConnectionId,
    /// The client is on this machine.
    pub is_local: bool,
    /// The client's address, where it has one.
    pub source: Option<IpAddr>,
    /// Nobody on the way can read what the client sends: its connection is one of TLS.
    pub is_encrypted: bool,
    /// The certificate that the client showed and that its connection's listener verified, if any.
    pub certificate: Option<Arc<Certificate>>,
    /// The client's proof of who it is.
    pub credentials: Credentials,
}

/// A client's proof of who it is.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// A user's name and password. A part that the client left out stands for that of the built-in user.
    Password {
        /// The user's name.
        user: Option<Box<[u8]>>,
        /// The user's password.
        password: Option<Box<[u8]>>,
    },
    /// The certificate of its connection, which names a user.
    Certificate {
        /// The user that the client asks to be, if it names one.
        user: Option<Box<[u8]>>,
    },
    /// A secret that stands for a user without naming one.
    Token(Box<[u8]>),
    /// A signature by a key of NATS, of something that the broker said to this connection alone.
    Nkey {
        /// The public key, as NATS writes it.
        key: Box<[u8]>,
        /// The signature, of Ed25519.
        signature: Box<[u8]>,
        /// The text that is signed.
        nonce: Box<[u8]>,
    },
    /// A proof of knowing a password, without the password (RFC 5802, with SHA-256 by RFC 7677).
    Scram {
        /// The user's name.
        user: Box<[u8]>,
        /// The messages of both sides that the proof is about: `AuthMessage` of RFC 5802, 3.
        messages: Box<[u8]>,
        /// The `ClientProof`.
        proof: [u8; SCRAM_BYTES],
    },
    /// A claim of a kind that no protocol here understands.
    Unsupported,
}

/// Bytes of each key, proof and signature of SCRAM-SHA-256.
pub const SCRAM_BYTES: usize = 32;

/// The parameters by which a client makes keys of its password (RFC 5802, 2.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScramParameters {
    /// The salt.
    pub salt: Box<[u8]>,
    /// The number of iterations.
    pub iterations: u32,
}

impl fmt::Debug for Credentials {
    /// A password never gets into a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Credentials::Password { .. } => f.write_str("Password"),
            Credentials::Certificate { .. } => f.write_str("Certificate"),
            Credentials::Token(_) => f.write_str("Token"),
            Credentials::Nkey { .. } => f.write_str("Nkey"),
            Credentials::Scram { .. } => f.write_str("Scram"),
            Credentials::Unsupported => f.write_str("Unsupported"),
        }
    }
}

impl Credentials {
    /// A user's name and password, as far as the client gave them.
    pub fn password(user: Option<&[u8]>, password: Option<&[u8]>) -> Credentials {
        Credentials::Password { user: user.map(Into::into), password: password.map(Into::into) }
    }
}

/// Outcome of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The client is this user.
    Granted(Identity),
    /// The credentials are not good. Which part of them is not told (SECURITY AUTH-09).
    Refused,
    /// Too many logins wait to be checked. The client may try again later.
    Busy,
}

/// When the outcome of a login is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verification {
    /// Now.
    Done(Verdict),
    /// Later: the connection is told by [`Inbound::verified`](crate::inbound::Inbound::verified).
    Pending,
}
