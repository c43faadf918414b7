//! The errors of all clients.

use std::error::Error;
use std::fmt;
use std::io;

use imori_bench::Url;

/// Why a request failed or a connection ended.
#[derive(Debug)]
pub enum ClientError {
    /// No connection could be made to this broker.
    Unreachable(Box<Url>, io::Error),
    /// The broker refused a request, with this text.
    Refused(String),
    /// The broker closed the connection.
    Closed,
    /// The awaited answer did not arrive in time.
    TimedOut(&'static str),
    /// A NATS request has no responders.
    Unheard,
    /// The protocol has no way to express the request.
    Unspeakable(String),
    /// The broker chose a protocol version that this client does not know.
    Version(String),
    /// The broker answered with something other than the expected answer.
    Unexpected(&'static str),
    /// The broker sent bytes that are not of this protocol.
    Decode(&'static str, Box<dyn Error + Send + Sync>),
    /// The connection broke.
    Broken(io::Error),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Unreachable(url, error) => write!(f, "cannot connect to `{url:?}`: {error}"),
            ClientError::Refused(error) => write!(f, "refused by the broker: {error}"),
            ClientError::Closed => f.write_str("the broker closed the connection"),
            ClientError::TimedOut(what) => f.write_str(what),
            ClientError::Unheard => f.write_str("nobody is subscribed there; start a responder"),
            ClientError::Unspeakable(what) => f.write_str(what),
            ClientError::Version(known) => write!(f, "the broker speaks none of {known}"),
            ClientError::Unexpected(what) => write!(f, "the broker answered with {what}"),
            ClientError::Decode(protocol, error) => {
                write!(f, "the broker does not speak {protocol}: {error}")
            }
            ClientError::Broken(error) => write!(f, "the connection broke: {error}"),
        }
    }
}

impl Error for ClientError {}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> ClientError {
        ClientError::Broken(error)
    }
}
