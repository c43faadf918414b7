//! Facts about a connection's client, and its traffic. The connection's cell writes them, and the monitor reads them.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use imori_core::id::VhostId;
use imori_core::time::Time;
use imori_core::turn::ClientFacts;

use crate::config::Spoken;
use crate::peers::publisher_wait::PublisherWait;

/// The client of a connection.
#[derive(Debug)]
pub(crate) struct Client {
    /// The connection's number, unique while the broker runs; 0 for an internal client.
    pub(crate) number: u64,
    /// The protocol that it speaks; `None` until one is chosen.
    pub(crate) protocol: Option<Spoken>,
    pub(crate) source: SocketAddr,
    /// The local address of the connection.
    pub(crate) local: SocketAddr,
    pub(crate) since: Time,
    /// Facts that the client reported at login.
    pub(crate) facts: ClientFacts,
    /// When bytes were last written to the client.
    pub(crate) written_at: Time,
    pub(crate) traffic: Arc<Traffic>,
}

impl Client {
    /// An internal client in the given vhost.
    pub(crate) fn internal(now: Time, vhost: VhostId, traffic: Arc<Traffic>) -> Client {
        Client {
            number: 0,
            protocol: None,
            source: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            local: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            since: now,
            facts: ClientFacts { vhost: Some(vhost), ..ClientFacts::default() },
            written_at: now,
            traffic,
        }
    }
}

/// Traffic received from a client. Only the connection's task writes it, once per turn, with plain stores.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    messages: AtomicU64,
    bytes: AtomicU64,
    read_at: AtomicU64,
    /// A [`PublisherWait`], or 0.
    waits_for: AtomicU8,
}

impl Traffic {
    /// Adds the messages and bytes that a turn read.
    pub(crate) fn count(&self, messages: u64, bytes: u64, now: Time) {
        add(&self.messages, messages);
        add(&self.bytes, bytes);
        if bytes > 0 {
            self.read_at.store(now.0, Ordering::Relaxed);
        }
    }

    /// Notes what the client's next publish waits for.
    pub(crate) fn note_wait(&self, wait: Option<PublisherWait>) {
        self.waits_for.store(wait.map_or(0, |wait| wait as u8), Ordering::Relaxed);
    }

    /// What the client's next publish waits for.
    pub(crate) fn waits_for(&self) -> Option<PublisherWait> {
        let wait = self.waits_for.load(Ordering::Relaxed);
        PublisherWait::ALL.into_iter().find(|known| *known as u8 == wait)
    }

    /// Messages published by the client.
    pub(crate) fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed)
    }

    /// Bytes read from the client.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// When bytes were last read from the client.
    pub(crate) fn read_at(&self) -> Time {
        Time(self.read_at.load(Ordering::Relaxed))
    }
}

/// Adds to a counter that only this thread writes.
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
