//! Begins the transfers that clients of NATS ask for.

use std::sync::Arc;

use imori_core::world::{StreamTransfer, TransferDirection};
use tokio::sync::{Semaphore, mpsc};

use super::incoming::{Offered, take_restore};
use super::line::Line;
use super::outgoing::{SnapshotRequest, send_snapshot};
use crate::broker::Broker;
use crate::limits::TRANSFERS_MAX;
use crate::protocols::transfer_words;

/// Serves transfers until the broker has stopped.
pub(crate) async fn serve(broker: Broker, mut requests: mpsc::Receiver<StreamTransfer>) {
    let Some(words) = transfer_words() else { return };
    let places = Arc::new(Semaphore::new(TRANSFERS_MAX));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await
        && let Some(request) = requests.recv().await
    {
        let line = Line::new(&broker, request.vhost, request.identity, request.stream, words);
        let (reply, answer) = (request.reply, request.answer);
        broker.runtime().spawn(async move {
            match request.direction {
                TransferDirection::Out { deliver_subject, piece_bytes, pieces_max, has_consumers } => {
                    let wanted = SnapshotRequest {
                        reply,
                        answer,
                        deliver_subject,
                        piece_bytes,
                        pieces_max,
                        has_consumers,
                    };
                    send_snapshot(line, wanted).await;
                }
                TransferDirection::In { deliver_subject, configuration } => {
                    take_restore(line, Offered { reply, answer, deliver_subject, configuration }).await;
                }
            }
            drop(place);
        });
    }
}
