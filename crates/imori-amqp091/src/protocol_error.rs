//! Exceptions: the errors that close a channel or the connection, in RabbitMQ's words.

use std::fmt::{self, Display};

use imori_core::authorize::{Cause, Refusal, Resource};
use imori_core::error::BrokerError;
use imori_core::name::Name;
use imori_core::quota::QuotaReached;
use imori_core::route::RouteError;

use crate::codec::error::DecodeError;

/// A reply code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    ConnectionForced = 320,
    AccessRefused = 403,
    NotFound = 404,
    ResourceLocked = 405,
    PreconditionFailed = 406,
    FrameError = 501,
    SyntaxError = 502,
    CommandInvalid = 503,
    ChannelError = 504,
    UnexpectedFrame = 505,
    ResourceError = 506,
    NotAllowed = 530,
    NotImplemented = 540,
    InternalError = 541,
}

impl Code {
    /// Returns the number of the code.
    pub(crate) fn number(self) -> u16 {
        self as u16
    }

    /// Returns the name that starts a reply text; clients match it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Code::ConnectionForced => "CONNECTION_FORCED",
            Code::AccessRefused => "ACCESS_REFUSED",
            Code::NotFound => "NOT_FOUND",
            Code::ResourceLocked => "RESOURCE_LOCKED",
            Code::PreconditionFailed => "PRECONDITION_FAILED",
            Code::FrameError => "FRAME_ERROR",
            Code::SyntaxError => "SYNTAX_ERROR",
            Code::CommandInvalid => "COMMAND_INVALID",
            Code::ChannelError => "CHANNEL_ERROR",
            Code::UnexpectedFrame => "UNEXPECTED_FRAME",
            Code::ResourceError => "RESOURCE_ERROR",
            Code::NotAllowed => "NOT_ALLOWED",
            Code::NotImplemented => "NOT_IMPLEMENTED",
            Code::InternalError => "INTERNAL_ERROR",
        }
    }

    /// Whether the code closes the connection rather than the channel (AMQP 0-9-1, 1.2: soft and
    /// hard errors).
    pub(crate) fn ends_connection(self) -> bool {
        !matches!(
            self,
            Code::AccessRefused | Code::NotFound | Code::ResourceLocked | Code::PreconditionFailed
        )
    }
}

/// An exception. Boxed, so that a `Result` without an error stays small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtocolError(Box<Words>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Words {
    code: Code,
    text: String,
}

/// Maximum length of a reply text in bytes; it is a short string.
const TEXT_BYTES_MAX: usize = 255;

impl ProtocolError {
    /// Creates an exception with an explanation.
    #[cold]
    pub(crate) fn new(code: Code, text: impl Display) -> ProtocolError {
        ProtocolError(Box::new(Words { code, text: text.to_string() }))
    }

    /// The reply code.
    pub(crate) fn code(&self) -> Code {
        self.0.code
    }

    /// Returns the reply text: the name of the code and the explanation, cut to fit into a short
    /// string.
    pub fn text(&self) -> String {
        let text = format!("{} - {}", self.0.code.name(), self.0.text);
        if text.len() <= TEXT_BYTES_MAX {
            return text;
        }
        let end = text.floor_char_boundary(TEXT_BYTES_MAX - 3);
        format!("{}...", text.get(..end).unwrap_or_default())
    }

    /// The exception for a missing queue or exchange.
    #[cold]
    pub(crate) fn not_found(kind: &str, name: impl Display, vhost: &Name) -> ProtocolError {
        ProtocolError::new(Code::NotFound, format_args!("no {kind} '{name}' in vhost '{vhost}'"))
    }

    /// Translates an error of the core, using RabbitMQ's text if it has one.
    #[cold]
    pub(crate) fn of_broker(error: &BrokerError, vhost: &Name) -> ProtocolError {
        let new = |code, text: fmt::Arguments<'_>| ProtocolError::new(code, text);
        match error {
            BrokerError::NoQueue(name) => ProtocolError::not_found("queue", name, vhost),
            BrokerError::Locked(name) => new(
                Code::ResourceLocked,
                format_args!(
                    "cannot obtain exclusive access to locked queue '{name}' in vhost '{vhost}'. It could be originally \
                     declared on another connection or the exclusive property value does not match that of the original \
                     declaration."
                ),
            ),
            BrokerError::ConsumedExclusively(name) => {
                new(Code::AccessRefused, format_args!("queue '{name}' in vhost '{vhost}' in exclusive use"))
            }
            BrokerError::NotEmpty(name) => {
                new(Code::PreconditionFailed, format_args!("queue '{name}' in vhost '{vhost}' not empty"))
            }
            BrokerError::InUse(name) => {
                new(Code::PreconditionFailed, format_args!("'{name}' in vhost '{vhost}' in use"))
            }
            BrokerError::NoDelivery(number) => {
                new(Code::PreconditionFailed, format_args!("unknown delivery tag {number}"))
            }
            BrokerError::Route(error) => ProtocolError::of_route(error, vhost),
            BrokerError::Refused(refusal) => ProtocolError::of_refusal(refusal, vhost),
            BrokerError::SingleActive(_)
            | BrokerError::Inequivalent { .. }
            | BrokerError::NotKept(_)
            | BrokerError::StreamKeeps(_)
            | BrokerError::Nowhere(_)
            | BrokerError::ToItself(_)
            | BrokerError::HeadersTooLarge
            | BrokerError::RecordTooLarge { .. }
            | BrokerError::TransactionTooLarge { .. }
            | BrokerError::QueueFull(_) => ProtocolError::new(Code::PreconditionFailed, error),
            BrokerError::IsStream(name) => new(
                Code::NotImplemented,
                format_args!("basic.get not supported by stream queues queue '{name}' in vhost '{vhost}'"),
            ),
            BrokerError::NoInbox => ProtocolError::new(Code::NotFound, error),
            BrokerError::SessionOpen(_) => ProtocolError::new(Code::ChannelError, error),
            BrokerError::TooManySessions { .. } => ProtocolError::new(Code::NotAllowed, error),
            BrokerError::Quota(reached) => ProtocolError::of_quota(reached),
            BrokerError::NoSession(_) => ProtocolError::new(Code::ChannelError, error),
            // RESOURCE_ERROR would end the connection with all its channels.
            BrokerError::TooManyQueues | BrokerError::Unavailable { .. } => {
                ProtocolError::new(Code::PreconditionFailed, error)
            }
        }
    }

    /// Translates a reached quota of the user or the vhost to RabbitMQ's text.
    #[cold]
    pub(crate) fn of_quota(reached: &QuotaReached) -> ProtocolError {
        let new = |code, text: fmt::Arguments<'_>| ProtocolError::new(code, text);
        match reached {
            QuotaReached::VhostConnections { vhost, user, max } => new(
                Code::NotAllowed,
                format_args!(
                    "access to vhost '{vhost}' refused for user '{user}': connection limit ({max}) is reached"
                ),
            ),
            QuotaReached::UserConnections { user, max } => new(
                Code::NotAllowed,
                format_args!(
                    "Connection refused for user '{user}': user connection limit ({max}) is reached"
                ),
            ),
            QuotaReached::Sessions { user, max } => new(
                Code::NotAllowed,
                format_args!(
                    "number of channels opened for user '{user}' has reached the maximum allowed user limit of ({max})"
                ),
            ),
            QuotaReached::Queues { queue, vhost, max } => new(
                Code::PreconditionFailed,
                format_args!(
                    "cannot declare queue '{queue}': queue limit in vhost '{vhost}' ({max}) is reached"
                ),
            ),
            QuotaReached::Bytes { .. } => ProtocolError::new(Code::PreconditionFailed, reached),
        }
    }

    /// Translates a missing right to RabbitMQ's text.
    #[cold]
    fn of_refusal(refusal: &Refusal, vhost: &Name) -> ProtocolError {
        let user = refusal.user();
        let Cause::Access(access, resource) = refusal.cause() else {
            return ProtocolError::new(Code::AccessRefused, refusal);
        };
        let text = match resource {
            Resource::Queue(name) => format!("{access} access to queue '{name}'"),
            Resource::Exchange(name) => format!("{access} access to exchange '{name}'"),
            Resource::Topic { exchange, key } => {
                format!("{access} access to topic '{key}' in exchange '{exchange}'")
            }
        };
        let text = format_args!("{text} in vhost '{vhost}' refused for user '{user}'");
        ProtocolError::new(Code::AccessRefused, text)
    }

    #[cold]
    fn of_route(error: &RouteError, vhost: &Name) -> ProtocolError {
        let new = |code, text: fmt::Arguments<'_>| ProtocolError::new(code, text);
        match error {
            RouteError::NoExchange(name) => ProtocolError::not_found("exchange", name, vhost),
            RouteError::DefaultExchange => {
                new(Code::AccessRefused, format_args!("operation not permitted on the default exchange"))
            }
            RouteError::Internal(name) => new(
                Code::AccessRefused,
                format_args!("cannot publish to internal exchange '{name}' in vhost '{vhost}'"),
            ),
            RouteError::Reserved(name) => new(
                Code::AccessRefused,
                format_args!("exchange name '{name}' contains reserved prefix 'amq.*'"),
            ),
            RouteError::NoVhost(_) => ProtocolError::new(Code::NotAllowed, error),
            RouteError::Differs { .. }
            | RouteError::Pattern(_)
            | RouteError::HeaderMatch
            | RouteError::Arguments(_)
            | RouteError::Limit { .. } => ProtocolError::new(Code::PreconditionFailed, error),
        }
    }
}

impl From<DecodeError> for ProtocolError {
    /// Undecodable bytes close the connection.
    #[cold]
    fn from(error: DecodeError) -> ProtocolError {
        let code = match error {
            DecodeError::UnknownMethod(_) => Code::NotImplemented,
            DecodeError::NoMethod
            | DecodeError::ProtocolHeader
            | DecodeError::FrameType { .. }
            | DecodeError::FrameTooLong { .. }
            | DecodeError::FrameEnd { .. }
            | DecodeError::Method { .. }
            | DecodeError::ContentClass { .. }
            | DecodeError::Content(_)
            | DecodeError::PropertyFlags { .. } => Code::FrameError,
        };
        ProtocolError::new(code, error)
    }
}
