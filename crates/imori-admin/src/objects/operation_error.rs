//! Why an operation failed, before either admin API puts it into its own format.

use std::fmt;

use imori_core::arguments::{ArgumentError, ExchangeError, NameError};
use imori_core::error::BrokerError;
use imori_core::room::Unavailable;
use imori_core::route::RouteError;
use imori_server::InternalError;
use imori_server::access::AccessError;

/// Why an operation failed.
#[derive(Debug)]
pub enum OperationError {
    /// There is no object of this kind and name.
    Missing(&'static str, String),
    /// The user lacks a right; the text reveals nothing about the object.
    NotPermitted(String),
    /// The request is invalid.
    Bad(String),
    /// The request conflicts with the current state.
    Conflict(String),
    /// The broker cannot do it now; the request may be repeated.
    Unavailable(String),
    /// The broker has stopped.
    Ended,
}

impl OperationError {
    /// The user sees no vhost of this name.
    pub(crate) fn no_vhost(name: &str) -> OperationError {
        OperationError::Missing("vhost", name.to_owned())
    }
}

impl fmt::Display for OperationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OperationError::Missing(kind, name) => write!(f, "there is no {kind} `{}`", name.escape_debug()),
            OperationError::NotPermitted(text)
            | OperationError::Bad(text)
            | OperationError::Conflict(text)
            | OperationError::Unavailable(text) => f.write_str(text),
            OperationError::Ended => f.write_str("the broker is stopping"),
        }
    }
}

impl From<AccessError> for OperationError {
    fn from(refusal: AccessError) -> OperationError {
        match refusal {
            AccessError::Missing(kind, name) => OperationError::Missing(kind, name),
            AccessError::Bad(reason) => OperationError::Bad(reason),
            AccessError::NotKept | AccessError::NoRandomness | AccessError::Secret(..) => {
                OperationError::Unavailable(refusal.to_string())
            }
        }
    }
}

impl From<BrokerError> for OperationError {
    fn from(refusal: BrokerError) -> OperationError {
        match refusal {
            BrokerError::NoQueue(name) => OperationError::Missing("queue", name.to_string()),
            BrokerError::Route(RouteError::NoExchange(name)) => {
                OperationError::Missing("exchange", name.to_string())
            }
            BrokerError::Refused(_)
            | BrokerError::Route(RouteError::Reserved(_) | RouteError::DefaultExchange) => {
                OperationError::NotPermitted(refusal.to_string())
            }
            BrokerError::Locked(_)
            | BrokerError::ConsumedExclusively(_)
            | BrokerError::InUse(_)
            | BrokerError::NotEmpty(_)
            | BrokerError::Inequivalent { .. }
            | BrokerError::Route(RouteError::Differs { .. })
            | BrokerError::QueueFull(_)
            | BrokerError::StreamKeeps(_)
            | BrokerError::Quota(_)
            | BrokerError::TooManyQueues
            | BrokerError::Nowhere(_)
            | BrokerError::Unavailable { cause: Unavailable::DiskFull, .. } => {
                OperationError::Conflict(refusal.to_string())
            }
            BrokerError::Unavailable { .. } => OperationError::Unavailable(refusal.to_string()),
            other => OperationError::Bad(other.to_string()),
        }
    }
}

impl From<InternalError> for OperationError {
    fn from(error: InternalError) -> OperationError {
        match error {
            InternalError::Broker(refusal) => refusal.into(),
            InternalError::Ended(_) => OperationError::Ended,
            InternalError::TooMany => OperationError::Unavailable(error.to_string()),
            other => OperationError::Bad(other.to_string()),
        }
    }
}

impl From<ArgumentError> for OperationError {
    fn from(error: ArgumentError) -> OperationError {
        OperationError::Bad(error.to_string())
    }
}

impl From<ExchangeError> for OperationError {
    fn from(error: ExchangeError) -> OperationError {
        OperationError::Bad(error.to_string())
    }
}

impl From<NameError> for OperationError {
    fn from(error: NameError) -> OperationError {
        match error {
            NameError::Reserved => OperationError::NotPermitted(error.to_string()),
            NameError::Empty | NameError::LineEnd => OperationError::Bad(error.to_string()),
        }
    }
}
