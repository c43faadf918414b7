//! Errors sent to clients: a condition of the standard for programs, and a sentence for people.

use std::fmt::Display;

use imori_core::authorize::Refusal;
use imori_core::error::BrokerError;
use imori_core::quota::QuotaReached;
use imori_core::room::Unavailable;
use imori_core::route::RouteError;

use crate::codec::composites::Error;
use crate::codec::condition;
use crate::codec::error::DecodeError;
use crate::codec::map::MapBuf;
use crate::codec::value::Symbol;

/// An error without its scope. Boxed, so that a `Result` without an error stays small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtocolError(Box<Words>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Words {
    condition: Symbol<'static>,
    text: String,
    info: Option<MapBuf>,
}

/// An error with its scope, the smallest thing that has to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Detaches the link with this client handle.
    Link(u32, ProtocolError),
    /// Ends the session.
    Session(ProtocolError),
    /// Closes the connection.
    Connection(ProtocolError),
}

/// Maximum length of the text in bytes, which must fit into the smallest frame.
const TEXT_BYTES_MAX: usize = 300;

impl ProtocolError {
    /// Creates an error with an explanation.
    #[cold]
    pub(crate) fn new(condition: Symbol<'static>, text: impl Display) -> ProtocolError {
        let mut text = text.to_string();
        if text.len() > TEXT_BYTES_MAX {
            text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX - 3));
            text.push_str("...");
        }
        ProtocolError(Box::new(Words { condition, text, info: None }))
    }

    /// The error of a link that another link of the same name has replaced (AMQP 1.0, 2.6.1).
    #[cold]
    pub(crate) fn stolen() -> ProtocolError {
        ProtocolError::new(condition::LINK_STOLEN, "another link of its name took its place")
    }

    /// Adds details for programs.
    #[cold]
    pub(crate) fn with_info(mut self, info: MapBuf) -> ProtocolError {
        self.0.info = Some(info);
        self
    }

    /// The condition, for programs.
    pub fn condition(&self) -> Symbol<'static> {
        self.0.condition
    }

    /// The sentence, for people.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Returns the error as it is encoded.
    pub(crate) fn error(&self) -> Error<'_> {
        Error {
            condition: self.0.condition,
            description: Some(&self.0.text),
            info: self.0.info.as_ref().map(MapBuf::map),
        }
    }

    /// Scopes the error to a link.
    #[cold]
    pub(crate) fn of_link(self, handle: u32) -> Failure {
        Failure::Link(handle, self)
    }
}

impl From<BrokerError> for ProtocolError {
    #[cold]
    fn from(error: BrokerError) -> ProtocolError {
        let condition = match &error {
            BrokerError::Refused(_) => condition::UNAUTHORIZED_ACCESS,
            BrokerError::Route(error) => match error {
                RouteError::NoExchange(_) | RouteError::NoVhost(_) => condition::NOT_FOUND,
                RouteError::DefaultExchange | RouteError::Internal(_) | RouteError::Reserved(_) => {
                    condition::UNAUTHORIZED_ACCESS
                }
                RouteError::Limit { .. } => condition::RESOURCE_LIMIT_EXCEEDED,
                RouteError::Differs { .. }
                | RouteError::Pattern(_)
                | RouteError::HeaderMatch
                | RouteError::Arguments(_) => condition::PRECONDITION_FAILED,
            },
            BrokerError::IsStream(_) => condition::NOT_IMPLEMENTED,
            BrokerError::NoQueue(_) | BrokerError::NoInbox | BrokerError::Nowhere(_) => condition::NOT_FOUND,
            BrokerError::Locked(_) | BrokerError::ConsumedExclusively(_) | BrokerError::SingleActive(_) => {
                condition::RESOURCE_LOCKED
            }
            BrokerError::InUse(_)
            | BrokerError::NotEmpty(_)
            | BrokerError::Inequivalent { .. }
            | BrokerError::NotKept(_)
            | BrokerError::StreamKeeps(_)
            | BrokerError::ToItself(_) => condition::PRECONDITION_FAILED,
            BrokerError::NoDelivery(_) | BrokerError::NoSession(_) | BrokerError::SessionOpen(_) => {
                condition::ILLEGAL_STATE
            }
            BrokerError::QueueFull(_)
            | BrokerError::TooManySessions { .. }
            | BrokerError::RecordTooLarge { .. }
            | BrokerError::TransactionTooLarge { .. }
            | BrokerError::HeadersTooLarge
            | BrokerError::TooManyQueues
            | BrokerError::Quota(_)
            | BrokerError::Unavailable { cause: Unavailable::DiskFull, .. } => {
                condition::RESOURCE_LIMIT_EXCEEDED
            }
            BrokerError::Unavailable { .. } => condition::RESOURCE_LOCKED,
        };
        ProtocolError::new(condition, error)
    }
}

impl From<Refusal> for ProtocolError {
    #[cold]
    fn from(refusal: Refusal) -> ProtocolError {
        ProtocolError::new(condition::UNAUTHORIZED_ACCESS, refusal)
    }
}

impl From<QuotaReached> for ProtocolError {
    #[cold]
    fn from(reached: QuotaReached) -> ProtocolError {
        ProtocolError::new(condition::RESOURCE_LIMIT_EXCEEDED, reached)
    }
}

impl From<DecodeError> for ProtocolError {
    /// Distinguishes framing errors from undecodable values.
    #[cold]
    fn from(error: DecodeError) -> ProtocolError {
        let condition = match error {
            DecodeError::FrameTooLong { .. }
            | DecodeError::FrameTooShort { .. }
            | DecodeError::DataOffset { .. }
            | DecodeError::FrameType { .. }
            | DecodeError::ProtocolHeader => condition::CONNECTION_FRAMING_ERROR,
            _ => condition::DECODE_ERROR,
        };
        ProtocolError::new(condition, error)
    }
}

impl From<DecodeError> for Failure {
    /// Undecodable bytes close the connection.
    #[cold]
    fn from(error: DecodeError) -> Failure {
        Failure::Connection(error.into())
    }
}
