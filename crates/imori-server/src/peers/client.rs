//! The facts about the client of a connection and its traffic. The connection's own cell writes them, the
//! monitor reads them.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use imori_core::id::VhostId;
use imori_core::time::Time;
use imori_core::turn::ClientFacts;

use crate::config::{ProtocolName, Spoken};

/// The client of a connection.
#[derive(Debug)]
pub(crate) struct Client {
    /// The number of its connection, which no other has as long as the broker runs.
    pub(crate) number: u64,
    /// `None` until it is agreed on.
    pub(crate) protocol: Option<ProtocolName>,
    /// The version that the client chose of a protocol that has several.
    pub(crate) chosen: Option<Spoken>,
    pub(crate) source: SocketAddr,
    /// The address that it connected to.
    pub(crate) local: SocketAddr,
    pub(crate) since: Time,
    /// The facts that the client gave of itself, once it has logged in.
    pub(crate) facts: ClientFacts,
    /// When bytes were last written to it.
    pub(crate) written_at: Time,
    pub(crate) traffic: Arc<Traffic>,
}

impl Client {
    /// A client inside the process, in this vhost.
    pub(crate) fn internal(now: Time, vhost: VhostId) -> Client {
        Client {
            number: 0,
            protocol: None,
            chosen: None,
            source: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            local: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            since: now,
            facts: ClientFacts { vhost: Some(vhost), ..ClientFacts::default() },
            written_at: now,
            traffic: Arc::default(),
        }
    }

    /// The protocol that it speaks; `None` before one is agreed on.
    pub(crate) fn spoken(&self) -> Option<Spoken> {
        self.chosen.or_else(|| Spoken::of(self.protocol?))
    }
}

/// The traffic that came from a client. Its connection's task alone writes it, once a turn, so that counting
/// costs no more than a few plain stores.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    messages: AtomicU64,
    bytes: AtomicU64,
    read_at: AtomicU64,
}

impl Traffic {
    /// Counts what a turn read, and the messages that were in it.
    pub(crate) fn count(&self, messages: u64, bytes: u64, now: Time) {
        add(&self.messages, messages);
        add(&self.bytes, bytes);
        if bytes > 0 {
            self.read_at.store(now.0, Ordering::Relaxed);
        }
    }

    /// Messages that it published.
    pub(crate) fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed)
    }

    /// Bytes that were read from it.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// When something was last read from it.
    pub(crate) fn read_at(&self) -> Time {
        Time(self.read_at.load(Ordering::Relaxed))
    }
}

/// Adds where nobody else writes.
fn add(sum: &AtomicU64, more: u64) {
    if more > 0 {
        sum.store(sum.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_reads_nothing_is_no_activity() {
        let traffic = Traffic::default();
        traffic.count(2, 100, Time(7));
        traffic.count(1, 0, Time(9));
        assert_eq!((traffic.messages(), traffic.bytes(), traffic.read_at()), (3, 100, Time(7)));
    }
}
