//! The readers of connections: live subscriptions, and consumers of queues.

use std::ops::ControlFlow;

use imori_core::id::{ConnectionId, QueueId};
use imori_core::message::TOPIC_EXCHANGE;
use imori_core::outbound::{Source, Subscription};
use imori_core::route::pattern::{Pattern, is_match};
use serde::Serialize;

use super::monitor_state::MonitorState;

/// Readers processed per lock of a connection, which blocks publishers meanwhile.
const PIECE: usize = 256;

/// A subscription in a response, without its client's id and its message count, which are not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct SubscriptionDetail {
    pub(super) subject: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) qgroup: Option<String>,
    /// The connection's number.
    pub(super) cid: u64,
}

/// The source of a reader's messages.
pub enum ListedSource {
    /// A live subscription.
    Live(Box<Subscription>),
    /// A queue.
    Queue(QueueId),
}

impl ListedSource {
    /// Describes the source. A pattern of the shared topic exchange is shown as is, a pattern of another exchange
    /// after its name, and a queue by its name. `None` if the queue was just deleted.
    pub(super) fn detail(&self, state: &MonitorState, cid: u64) -> Option<SubscriptionDetail> {
        match self {
            ListedSource::Live(subscription) => {
                let (exchange, text) = (&subscription.exchange, &subscription.key.text);
                let subject = match exchange.as_bytes() {
                    TOPIC_EXCHANGE => text.to_string(),
                    _ => format!("{exchange}/{text}"),
                };
                let qgroup = subscription.group.as_ref().map(ToString::to_string);
                Some(SubscriptionDetail { subject, qgroup, cid })
            }
            ListedSource::Queue(id) => {
                let subject = state.broker.with_queue(*id, |queue| queue.name().to_string())?;
                Some(SubscriptionDetail { subject, qgroup: None, cid })
            }
        }
    }

    /// Whether a message with this subject on the shared topic exchange would be delivered live.
    pub fn hears(&self, subject: &[u8]) -> bool {
        match self {
            ListedSource::Live(subscription) if subscription.exchange.as_bytes() == TOPIC_EXCHANGE => {
                let key = &subscription.key;
                Pattern::parse(key.syntax, &key.text).is_ok_and(|pattern| is_match(&pattern, subject))
            }
            ListedSource::Live(_) | ListedSource::Queue(_) => false,
        }
    }
}

/// Calls `show` for everything a connection reads, until it breaks.
pub(super) fn each_heard(
    state: &MonitorState,
    id: ConnectionId,
    mut show: impl FnMut(&ListedSource) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut from = 0;
    loop {
        // Queues are locked before connections, never after, so names are looked up outside this lock.
        let piece = state.broker.with_connection(id, |connection| {
            let readers = connection.outbound().readers_from(from).take(PIECE);
            readers.map(|(slot, spec)| (slot, listed(&spec.source))).collect::<Vec<_>>()
        });
        let Some((last, _)) = piece.as_ref().and_then(|piece| piece.last()) else {
            return ControlFlow::Continue(());
        };
        from = last + 1;
        for (_, heard) in piece.iter().flatten() {
            show(heard)?;
        }
    }
}

fn listed(source: &Source) -> ListedSource {
    match source {
        Source::Live(subscription) => ListedSource::Live(subscription.clone()),
        Source::Queue(id) => ListedSource::Queue(*id),
    }
}
