//! The protocol's state of a channel; the core's session has the rest.

use std::collections::BTreeMap;

use imori_core::id::ReaderId;

use crate::codec::method::MethodId;
use crate::content::Unfinished;
use crate::protocol_error::ProtocolError;
use crate::transaction::Transaction;

/// A channel.
///
/// ```text
///        channel.open         an exception              told by channel.close
///  none ──────────────► Open ──────────────► Ending ──────────────────────► Told
///   ▲                    │ channel.close, answered                          │ channel.close-ok
///   └────────────────────┴──────────────────────────────────────────────────┘
/// ```
#[derive(Debug, Default)]
pub(crate) struct Channel {
    /// Set while the broker closes the channel; its other frames are ignored.
    pub(crate) closing: Option<Closing>,
    /// The consumers by tag.
    pub(crate) consumers: BTreeMap<Box<str>, ReaderId>,
    /// Number of the last publish, if publishes are confirmed.
    pub(crate) confirms: Option<u64>,
    /// The consumer of direct reply-to, if any.
    pub(crate) replies: Option<ReplyConsumer>,
    /// The open transaction, if the channel is transactional.
    pub(crate) transaction: Option<Transaction>,
    /// Prefetch count of future consumers; 0 means unlimited.
    pub(crate) prefetch_count: u16,
    /// The unsettled deliveries of the whole channel are limited.
    pub(crate) is_windowed: bool,
    /// The last delivery of a settle command that is done only in part.
    pub(crate) settles_through: Option<u64>,
    /// The queue that the channel declared last, which an empty queue name refers to.
    pub(crate) last_queue: Box<str>,
    /// The message that has arrived only in part.
    pub(crate) unfinished: Option<Unfinished>,
}

impl Channel {
    /// Whether a publish can be routed at once: the channel is open, has no partial message and no
    /// transaction.
    #[inline]
    pub(crate) fn only_publishes(&self) -> bool {
        self.closing.is_none() && self.unfinished.is_none() && self.transaction.is_none()
    }
}

/// The progress of a channel that the broker closes.
#[derive(Debug)]
pub(crate) enum Closing {
    /// The session's deliveries are being given back, over several turns. Then `channel.close`
    /// reports this exception.
    Ending(Refusal),
    /// The client was told, and has to confirm.
    Told,
}

/// An exception, and the method that caused it.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) error: ProtocolError,
    pub(crate) id: MethodId,
}

/// The consumer of direct reply-to: its tag, and the address that replaces its name for other
/// clients.
#[derive(Debug)]
pub(crate) struct ReplyConsumer {
    pub(crate) tag: Box<str>,
    /// The routing key of the inbox.
    pub(crate) key: Box<[u8]>,
}
