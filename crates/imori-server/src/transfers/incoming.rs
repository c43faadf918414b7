//! Makes a stream of the archive that a client sends in pieces, each of which is answered.
//!
//! The dialogue is that of nats-server: an empty answer asks for the next piece, an empty piece ends the archive, and
//! the answer to it, or to a piece that fails, is that of STREAM.CREATE.

use imori_core::internal::IncomingMessage;
use imori_core::message::Property;
use imori_core::name::Name;
use imori_streams::DeclaredStream;
use tokio::time::timeout;

use super::error::TransferError;
use super::line::Line;
use super::restore::StreamRestore;
use crate::internal::Subscription;
use crate::limits::RESTORE_PIECE_PATIENCE;

/// What a client of a restore wants.
pub(super) struct Offered {
    pub(super) reply: Option<Name>,
    /// The answer if the restore begins.
    pub(super) answer: Vec<u8>,
    pub(super) deliver_subject: Name,
    pub(super) configuration: Box<[u8]>,
}

/// Makes a stream of what a client sends.
pub(super) async fn take_restore(line: Line, offered: Offered) {
    let begun = async {
        let client = line.broker.connect_operator(line.identity.clone(), line.vhost).await?;
        let pieces = line.receive(&offered.deliver_subject.to_string()).await?;
        let declared = DeclaredStream::checked(&offered.configuration);
        let declared = declared.map_err(|error| TransferError::Configuration(error.to_string()))?;
        let restore = StreamRestore::begin(&line.broker, client, line.vhost, declared).await?;
        Ok::<_, TransferError>((pieces, restore))
    };
    let (pieces, restore) = match begun.await {
        Ok(begun) => begun,
        Err(error) => {
            let refused = line.words.refused(true, &error.to_string());
            return line.answer(offered.reply.as_ref(), refused).await;
        }
    };
    line.answer(offered.reply.as_ref(), offered.answer).await;
    let (outcome, bytes) = receive(&line, pieces, restore).await;
    let error = outcome.err().map(|error| error.to_string());
    line.tell(Some(bytes), error).await;
}

async fn receive(
    line: &Line,
    mut pieces: Subscription,
    mut restore: StreamRestore,
) -> (Result<(), TransferError>, u64) {
    let mut bytes = 0;
    loop {
        let piece = match timeout(RESTORE_PIECE_PATIENCE, pieces.recv()).await {
            Ok(Ok(piece)) => piece,
            Ok(Err(_)) => {
                restore.give_up().await;
                return (Err(TransferError::Gone), bytes);
            }
            Err(_) => {
                restore.give_up().await;
                return (Err(TransferError::Stalled("the restore is stalled")), bytes);
            }
        };
        let reply = reply_to(&piece);
        let (outcome, rest) = match piece.body.is_empty() {
            true => (restore.finish().await, None),
            false => match restore.write(&piece.body).await {
                Ok(()) => (Ok(()), Some(restore)),
                Err(error) => {
                    restore.give_up().await;
                    (Err(error), None)
                }
            },
        };
        bytes += piece.body.len() as u64;
        let answer = match (&outcome, &rest) {
            (Ok(()), Some(_)) => Vec::new(),
            (Ok(()), None) => restored(line).unwrap_or_default(),
            (Err(error), _) => line.words.piece_refused(&error.to_string()),
        };
        line.answer(reply.as_ref(), answer).await;
        match rest {
            Some(next) => restore = next,
            None => return (outcome, bytes),
        }
    }
}

/// The subject to which a piece is answered.
fn reply_to(piece: &IncomingMessage) -> Option<Name> {
    piece.property(Property::ReplyTo).filter(|reply| !reply.is_empty()).map(Name::new)
}

fn restored(line: &Line) -> Option<Vec<u8>> {
    let id = line.broker.table().queue(line.vhost, line.stream.as_bytes())?;
    let now = line.broker.now();
    line.broker.with_queue(id, |queue| line.words.restored(queue, now))
}
