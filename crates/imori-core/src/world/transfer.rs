//! Requests of clients to copy a whole stream, which take longer than a turn.

use crate::authorize::Identity;
use crate::id::VhostId;
use crate::name::Name;

/// A client's request to send a stream to a subject, or to restore one from messages.
#[derive(Debug, Clone)]
pub struct StreamTransfer {
    /// The vhost of the stream.
    pub vhost: VhostId,
    /// The client's user and rights.
    pub identity: Identity,
    /// The name of the stream to send, or to restore.
    pub stream: Name,
    /// The subject of the answer.
    pub reply: Option<Name>,
    /// The answer if the transfer begins.
    pub answer: Vec<u8>,
    /// Whether the stream is sent or restored.
    pub direction: TransferDirection,
}

/// The direction of a transfer, and what it needs.
#[derive(Debug, Clone)]
pub enum TransferDirection {
    /// The stream is sent.
    Out {
        /// The subject of the pieces.
        deliver_subject: Name,
        /// The most bytes of one piece.
        piece_bytes: usize,
        /// Pieces that may be sent without an answer.
        pieces_max: usize,
        /// The consumers are sent too.
        has_consumers: bool,
    },
    /// A new stream is made of what the client sends.
    In {
        /// The subject of the pieces.
        deliver_subject: Name,
        /// The declaration of the stream, which was checked, as JSON.
        configuration: Box<[u8]>,
    },
}
