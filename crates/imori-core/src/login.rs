//! Logins: the credentials of a client, and the verdict on them.
//!
//! The core decides nothing here. The program that runs it answers in
//! [`Access::verify`](crate::world::Access::verify), at once or later.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::authorize::Identity;
use crate::certificate::Certificate;
use crate::id::ConnectionId;

/// Name and password of the only user until users are configured, as in RabbitMQ; also the default
/// for clients that send none.
pub const BUILT_IN_USER: &[u8] = b"guest";

/// A request to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// The client's connection. Ids of connections are never reused.
    pub connection: ConnectionId,
    /// Whether the client is on this machine.
    pub is_local: bool,
    /// The client's IP address, if it has one.
    pub source: Option<IpAddr>,
    /// Whether the connection uses TLS, so that credentials cannot be read on the way.
    pub is_encrypted: bool,
    /// The client's certificate, if it presented one that the listener verified.
    pub certificate: Option<Arc<Certificate>>,
    /// The client's credentials.
    pub credentials: Credentials,
}

/// The credentials of a client.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// A user's name and password. A missing part defaults to that of the built-in user.
    Password {
        /// The user's name.
        user: Option<Box<[u8]>>,
        /// The user's password.
        password: Option<Box<[u8]>>,
    },
    /// The certificate of the connection, which names a user.
    Certificate {
        /// The user that the client asks to be, if it names one.
        user: Option<Box<[u8]>>,
    },
    /// A secret that identifies a user without naming one.
    Token(Box<[u8]>),
    /// A signature by a NATS key of a nonce that the broker sent on this connection only.
    Nkey {
        /// The public key in NATS's encoding.
        key: Box<[u8]>,
        /// The Ed25519 signature.
        signature: Box<[u8]>,
        /// The signed text.
        nonce: Box<[u8]>,
    },
    /// A proof of knowing a password, without the password (RFC 5802, with SHA-256 by RFC 7677).
    Scram {
        /// The user's name.
        user: Box<[u8]>,
        /// The signed messages of both sides: `AuthMessage` of RFC 5802, 3.
        messages: Box<[u8]>,
        /// The `ClientProof`.
        proof: [u8; SCRAM_BYTES],
    },
    /// A mechanism that no protocol here supports.
    Unsupported,
}

/// The size in bytes of each key, proof and signature of SCRAM-SHA-256.
pub const SCRAM_BYTES: usize = 32;

/// The parameters with which a client derives keys from its password (RFC 5802, 2.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScramParameters {
    /// The salt of the stored keys, chosen when the password was set.
    pub salt: Box<[u8]>,
    /// How often the client hashes its password with the salt.
    pub iterations: u32,
}

impl fmt::Debug for Credentials {
    /// Omits all secrets, so that none gets into a log.
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
    /// A user's name and password, as far as the client sent them.
    pub fn password(user: Option<&[u8]>, password: Option<&[u8]>) -> Credentials {
        Credentials::Password { user: user.map(Into::into), password: password.map(Into::into) }
    }
}

/// The outcome of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The client is this user.
    Granted(Identity),
    /// The credentials are wrong; which part is not disclosed (SECURITY AUTH-09).
    Refused,
    /// Too many logins are waiting to be checked. The client may retry later.
    Busy,
}

/// The result of starting a verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verification {
    /// The verdict, at once.
    Done(Verdict),
    /// The verdict follows in [`verified`](crate::inbound::verified).
    Pending,
}
