//! Why a broker does not start, with advice.

use std::error::Error;
use std::fmt;
use std::io;

use crate::config::{ConfigConflict, ListenAddress, ListenerName};
use crate::jwt::KeysError;
use crate::store::StoreError;
use crate::tls::TlsError;

/// Why a broker does not start.
#[derive(Debug)]
pub enum StartError {
    /// The configuration contradicts itself.
    Config(ConfigConflict),
    /// An address cannot be bound.
    Bind {
        /// The listener.
        name: ListenerName,
        /// The address.
        address: ListenAddress,
        /// The system's error.
        error: io::Error,
    },
    /// No listener for messages is left.
    NoListener,
    /// A certificate, a key or a CA cannot be used.
    Tls(TlsError),
    /// The keys of access tokens cannot be used.
    Keys(KeysError),
    /// The exporter of spans cannot be started.
    Traces(String),
    /// The system has no random bytes.
    Random(String),
    /// A thread cannot be started.
    Thread(io::Error),
    /// The store cannot be opened.
    Store(Box<StoreError>),
    /// The user `admin` cannot be created, for this reason.
    FirstUser(String),
    /// SCRAM cannot be offered, for this reason.
    Scram(String),
    /// The definitions file cannot be applied, for this reason.
    Definitions(String),
}

impl StartError {
    /// The configuration keys of which one has to change, as `section.key`.
    pub fn keys(&self) -> Vec<String> {
        match self {
            StartError::Config(conflict) => conflict.keys(),
            StartError::Bind { name, .. } => vec![name.key()],
            StartError::NoListener => ConfigConflict::NoListener.keys(),
            StartError::Tls(error) => vec![String::from(error.key())],
            StartError::Definitions(_) => vec![String::from("definitions.file")],
            StartError::Scram(_) => vec![String::from("users.scram")],
            StartError::Keys(_) => vec![String::from("jwt.keys_file")],
            StartError::Traces(_) => vec![String::from("traces.otlp_ca")],
            StartError::Random(_)
            | StartError::Thread(_)
            | StartError::Store(_)
            | StartError::FirstUser(_) => Vec::new(),
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Config(conflict) => conflict.fmt(f),
            StartError::Bind { name, address, error } => {
                write!(
                    f,
                    "cannot listen on `{name}={address}`: {error}; stop what listens there or choose another port"
                )
            }
            StartError::NoListener => {
                f.write_str("there is no address to listen on; set `listeners.stomp`, `listeners.nats` or `listeners.amqp`")
            }
            StartError::Tls(error) => error.fmt(f),
            StartError::Keys(error) => error.fmt(f),
            StartError::Traces(error) => write!(f, "spans cannot be sent: {error}"),
            StartError::Random(error) => write!(f, "the system gives no random bytes: {error}"),
            StartError::Thread(error) => {
                write!(f, "a thread cannot be started: {error}; lower `cells.count`")
            }
            StartError::Store(error) => error.fmt(f),
            StartError::Definitions(why) => f.write_str(why),
            StartError::Scram(why) => write!(f, "SCRAM cannot be offered: {why}"),
            StartError::FirstUser(why) => write!(f, "the user `admin` cannot be made: {why}"),
        }
    }
}

impl Error for StartError {}
