//! Why an operator's request was not done, before it is put into the words of either admin API.

use imori_core::error::BrokerError;

use crate::access::AccessError;

/// Why a request was not done.
#[derive(Debug)]
pub(crate) enum OperationError {
    /// There is no such object: its kind and name.
    Missing(&'static str, String),
    /// The user has no right to it, in words that give nothing away.
    NotPermitted(String),
    /// The request contradicts itself, or asks for something that cannot be.
    Bad(String),
    /// The request does not fit what is there now.
    Conflict(String),
    /// The broker cannot do it now.
    Unavailable(String),
    /// The broker has come to its end.
    Ended,
    /// The reply text of an exception of AMQP, as of [`Operator`](imori_amqp091::operator::Operator).
    InWords(String),
}

impl OperationError {
    /// There is no vhost of this name that the user may see.
    pub(crate) fn no_vhost(name: &str) -> OperationError {
        OperationError::Missing("vhost", name.to_owned())
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
            BrokerError::Refused(_) => OperationError::NotPermitted(refusal.to_string()),
            BrokerError::Locked(_)
            | BrokerError::ConsumedExclusively(_)
            | BrokerError::InUse(_)
            | BrokerError::NotEmpty(_)
            | BrokerError::Inequivalent { .. }
            | BrokerError::QueueFull(_)
            | BrokerError::Nowhere(_)
            | BrokerError::DiskFull(_) => OperationError::Conflict(refusal.to_string()),
            other => OperationError::Bad(other.to_string()),
        }
    }
}
