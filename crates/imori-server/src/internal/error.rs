//! Why an internal client's request failed.

use std::fmt;

use imori_core::error::BrokerError;
use imori_core::internal::{CommandError, SubscriptionEnd};
use imori_core::name::Name;

use crate::pipe::Failure;

/// Why an internal client's request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InternalError {
    /// The broker refused the request.
    Broker(BrokerError),
    /// A call's request has no receiver.
    NoResponder,
    /// No reply to the call arrived before its deadline.
    Late,
    /// The client has reached its limit of calls that wait for a reply.
    TooManyCalls,
    /// The message names another user as its sender.
    OtherUser,
    /// The credentials are wrong, or too many logins are being checked.
    LoginRefused,
    /// There is no vhost of this name.
    NoVhost(Name),
    /// There is no cell of this number.
    NoCell(u16),
    /// The cell has reached its limit of internal clients.
    TooMany,
    /// The client has ended, or ended before the answer arrived.
    Ended(SubscriptionEnd),
}

impl fmt::Display for InternalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InternalError::Broker(error) => write!(f, "{error}"),
            InternalError::NoResponder => write!(f, "{}", CommandError::NoResponder),
            InternalError::Late => {
                f.write_str("no reply came in time; call again, or give the responder more time")
            }
            InternalError::TooManyCalls => write!(f, "{}", CommandError::TooManyCalls),
            InternalError::OtherUser => write!(f, "{}", CommandError::OtherUser),
            InternalError::LoginRefused => {
                f.write_str("the user or the password is not right, or the broker is busy; log in again")
            }
            InternalError::NoVhost(name) => {
                write!(f, "there is no vhost `{name}`; use one of `broker.vhosts`")
            }
            InternalError::NoCell(cell) => {
                write!(f, "there is no cell `{cell}`; leave the choice to the broker")
            }
            InternalError::TooMany => f.write_str("there are too many internal clients; drop one first"),
            InternalError::Ended(reason) => write!(f, "{reason}"),
        }
    }
}

impl std::error::Error for InternalError {}

impl From<BrokerError> for InternalError {
    fn from(error: BrokerError) -> InternalError {
        InternalError::Broker(error)
    }
}

impl From<SubscriptionEnd> for InternalError {
    fn from(reason: SubscriptionEnd) -> InternalError {
        InternalError::Ended(reason)
    }
}

impl From<CommandError> for InternalError {
    fn from(error: CommandError) -> InternalError {
        match error {
            CommandError::Broker(error) => InternalError::Broker(error),
            CommandError::NoResponder => InternalError::NoResponder,
            CommandError::TooManyCalls => InternalError::TooManyCalls,
            CommandError::OtherUser => InternalError::OtherUser,
        }
    }
}

impl From<Failure> for InternalError {
    fn from(failure: Failure) -> InternalError {
        match failure {
            Failure::Refused(error) => error.into(),
            Failure::Late => InternalError::Late,
            Failure::Ended(reason) => InternalError::Ended(reason),
        }
    }
}
