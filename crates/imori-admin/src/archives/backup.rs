//! The archive of a stream as the body of a response.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use hyper::body::Frame;
use imori_core::name::Name;
use imori_server::{StreamSnapshot, TransferError};
use tokio::sync::mpsc;

use crate::objects::operation_error::OperationError;
use crate::operations::vhost_operator::VhostOperator;

/// A body that has the archive of a stream. It breaks off if the archive cannot be completed.
pub(crate) struct Backup(mpsc::Receiver<Result<Vec<u8>, TransferError>>);

/// Begins the archive of a stream.
///
/// # Errors
/// [`OperationError`]; the user needs the right to read the stream.
pub(crate) async fn back_up(
    operator: &VhostOperator,
    name: &str,
    has_consumers: bool,
) -> Result<Backup, OperationError> {
    operator.stream(name)?;
    let (client, stream) = (operator.client().await?, Name::from(name));
    let mut snapshot =
        StreamSnapshot::begin(&operator.broker, client, operator.vhost, &stream, has_consumers).await?;
    let (pieces, written) = mpsc::channel(1);
    tokio::spawn(async move {
        while let Some(piece) = snapshot.read().await.transpose() {
            let is_last = piece.is_err();
            // The reader may be gone.
            if pieces.send(piece).await.is_err() || is_last {
                return;
            }
        }
    });
    Ok(Backup(written))
}

impl HttpBody for Backup {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.0.poll_recv(context).map(|piece| {
            Some(match piece? {
                Ok(piece) => Ok(Frame::data(Bytes::from(piece))),
                Err(error) => Err(io::Error::other(error.to_string())),
            })
        })
    }
}
