//! Archives of streams over HTTP: written to a response, and taken from the bodies of several requests.

mod backup;
mod restores;

pub(crate) use backup::back_up;
pub(crate) use restores::{Piece, Restores};

use imori_server::TransferError;

use crate::objects::operation_error::OperationError;

impl From<TransferError> for OperationError {
    fn from(error: TransferError) -> OperationError {
        match error {
            TransferError::Broker(error) => error.into(),
            TransferError::Exists => {
                OperationError::Conflict(String::from("there is a queue of this name; delete it first"))
            }
            TransferError::Gone => OperationError::Ended,
            TransferError::Unreadable | TransferError::NoForm => {
                OperationError::Unavailable(error.to_string())
            }
            TransferError::Archive(_) | TransferError::Configuration(_) | TransferError::Stalled(_) => {
                OperationError::Bad(error.to_string())
            }
        }
    }
}
