//! The state of a channel that is the protocol's own. All else of it is a session of the core.

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
    /// The broker closes it. Nothing else on it counts.
    pub(crate) closing: Option<Closing>,
    /// The consumers by their tags.
    pub(crate) consumers: BTreeMap<Box<str>, ReaderId>,
    /// The number of the last publish, where publishes are confirmed.
    pub(crate) confirms: Option<u64>,
    /// The consumer of direct reply-to, if there is one.
    pub(crate) replies: Option<ReplyConsumer>,
    /// Publishes and settlements that wait for their commit, where the channel has transactions.
    pub(crate) transaction: Option<Transaction>,
    /// Prefetch count of the consumers to come; 0 is unlimited.
    pub(crate) prefetch_count: u16,
    /// The last delivery that a command settles of which a part is done.
    pub(crate) settles_through: Option<u64>,
    /// The queue that it declared last, which an empty name stands for.
    pub(crate) last_queue: Box<str>,
    /// The message of which not all frames have come.
    pub(crate) unfinished: Option<Unfinished>,
}

impl Channel {
    /// Tells whether a publish on it is sent on at once: it is open, no message is half there, and no transaction gathers.
    #[inline]
    pub(crate) fn only_publishes(&self) -> bool {
        self.closing.is_none() && self.unfinished.is_none() && self.transaction.is_none()
    }
}

/// The end of a channel that the broker closes.
#[derive(Debug)]
pub(crate) enum Closing {
    /// Its session gives back what it has, a part a turn. Then the client is told this.
    Ending(Refusal),
    /// The client was told, and is to notice.
    Told,
}

/// An exception, and the method that it is about.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) error: ProtocolError,
    pub(crate) id: MethodId,
}

/// The consumer of direct reply-to: the tag under which replies come, and the address that stands for it elsewhere.
#[derive(Debug)]
pub(crate) struct ReplyConsumer {
    pub(crate) tag: Box<str>,
    /// The routing key of the inbox.
    pub(crate) key: Box<[u8]>,
}
