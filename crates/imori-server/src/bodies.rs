//! The account of request bodies: the memory that all HTTP listeners hold for them.
//!
//! A body of known length is charged with all of it before more than its first bytes are read, so that each body that has
//! begun can come to its end; the others wait in their sockets, in line. No source has more than half of the share, and a
//! source that waits for its own bodies delays no other. Uncharged, 250 clients with 6 MB each held 1.5 GB at a mark of
//! 241 MiB.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use imori_core::memory::Gauge;
use tokio::sync::oneshot;

use crate::limits::BODIES_SOURCE_SHARE;
use crate::slots::unpoisoned;

/// The bytes charged for bodies, by source, and the bodies that wait for some.
#[derive(Debug)]
pub struct Bodies {
    gauge: Gauge,
    bytes_max: AtomicUsize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    bytes: usize,
    sources: HashMap<IpAddr, OfSource>,
    /// Sources with bodies that wait; each is here once.
    line: VecDeque<IpAddr>,
}

/// The bodies of one source.
#[derive(Debug, Default)]
struct OfSource {
    bytes: usize,
    waiting: VecDeque<Waiting>,
    /// The source is in the line.
    is_in_line: bool,
}

/// A body that waits for bytes.
#[derive(Debug)]
struct Waiting {
    bytes: usize,
    admitted: oneshot::Sender<Charge>,
}

impl Bodies {
    /// An account without bodies, which may have this share. What they hold is charged to the gauge.
    pub fn new(gauge: &Gauge, bytes_max: usize) -> Bodies {
        Bodies { gauge: gauge.clone(), bytes_max: AtomicUsize::new(bytes_max), held: Mutex::default() }
    }

    /// Sets a new share. Bodies that have begun are completed.
    pub(crate) fn limit(&self, bytes_max: usize) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// The bytes that are charged now.
    pub fn bytes(&self) -> usize {
        unpoisoned(self.held.lock()).bytes
    }

    /// Charges bytes that are there already, without waiting.
    pub(crate) fn charge_now(self: &Arc<Bodies>, source: IpAddr, bytes: usize) -> Charge {
        let source = network_of(source);
        let mut held = unpoisoned(self.held.lock());
        held.add(source, bytes);
        self.gauge.add(bytes);
        Charge { bodies: Arc::clone(self), source, bytes }
    }

    /// Charges bytes that are to come; the receiver gets the charge once there is room, which may be at once. Dropping the
    /// receiver gives up the wait. What is more than the whole share counts as the whole.
    pub(crate) fn charge(self: &Arc<Bodies>, source: IpAddr, bytes: usize) -> oneshot::Receiver<Charge> {
        let source = network_of(source);
        let bytes = bytes.min(self.source_max());
        let (admitted, receiver) = oneshot::channel();
        let mut held = unpoisoned(self.held.lock());
        let of_source = held.sources.entry(source).or_default();
        of_source.waiting.push_back(Waiting { bytes, admitted });
        let was_in_line = std::mem::replace(&mut of_source.is_in_line, true);
        if !was_in_line {
            held.line.push_back(source);
        }
        self.admit(&mut held);
        receiver
    }

    /// The bytes that one source may have.
    pub(crate) fn source_max(&self) -> usize {
        self.bytes_max.load(Ordering::Relaxed) / BODIES_SOURCE_SHARE
    }

    /// Admits what there is room for: one body of each source after the other. A source whose own share is used up
    /// is passed over.
    fn admit(self: &Arc<Bodies>, held: &mut Held) {
        let (bytes_max, source_max) = (self.bytes_max.load(Ordering::Relaxed), self.source_max());
        let mut passed_over = 0;
        while passed_over < held.line.len() {
            let Some(source) = held.line.pop_front() else { return };
            let Some(of_source) = held.sources.get_mut(&source) else { continue };
            // A receiver that is gone asks for nothing any more.
            while of_source.waiting.front().is_some_and(|waiting| waiting.admitted.is_closed()) {
                of_source.waiting.pop_front();
            }
            let Some(first) = of_source.waiting.front().map(|waiting| waiting.bytes) else {
                of_source.is_in_line = false;
                held.forget_idle(source);
                continue;
            };
            if of_source.bytes.saturating_add(first) > source_max {
                held.line.push_back(source);
                passed_over += 1;
                continue;
            }
            if held.bytes.saturating_add(first) > bytes_max {
                held.line.push_front(source);
                return;
            }
            let Some(waiting) = of_source.waiting.pop_front() else { return };
            held.line.push_back(source);
            passed_over = 0;
            held.add(source, first);
            self.gauge.add(first);
            let charge = Charge { bodies: Arc::clone(self), source, bytes: first };
            if let Err(mut unwanted) = waiting.admitted.send(charge) {
                // The lock is held, which giving back would take.
                held.sub(source, first);
                self.gauge.sub(first);
                unwanted.bytes = 0;
            }
        }
    }

    fn give_back(self: &Arc<Bodies>, source: IpAddr, bytes: usize) {
        let mut held = unpoisoned(self.held.lock());
        held.sub(source, bytes);
        self.gauge.sub(bytes);
        self.admit(&mut held);
    }
}

impl Held {
    fn add(&mut self, source: IpAddr, bytes: usize) {
        self.bytes += bytes;
        self.sources.entry(source).or_default().bytes += bytes;
    }

    fn sub(&mut self, source: IpAddr, bytes: usize) {
        self.bytes -= bytes;
        if let Some(of_source) = self.sources.get_mut(&source) {
            of_source.bytes -= bytes;
        }
        self.forget_idle(source);
    }

    fn forget_idle(&mut self, source: IpAddr) {
        if self.sources.get(&source).is_some_and(|of_source| of_source.bytes == 0 && !of_source.is_in_line) {
            self.sources.remove(&source);
        }
    }
}

/// The source that an address counts as: a client of IPv6 has a network of its own.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address @ IpAddr::V4(_) => address,
    }
}

/// Bytes that are charged until this is dropped.
pub struct Charge {
    bodies: Arc<Bodies>,
    source: IpAddr,
    bytes: usize,
}

impl Charge {
    /// The bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl fmt::Debug for Charge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Charge").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.bodies.give_back(self.source, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: usize = 100;

    fn bodies() -> Arc<Bodies> {
        Arc::new(Bodies::new(&Gauge::default(), SHARE))
    }

    fn source(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    /// The charges that have come.
    fn admitted(receivers: &mut [oneshot::Receiver<Charge>]) -> Vec<Option<Charge>> {
        receivers.iter_mut().map(|receiver| receiver.try_recv().ok()).collect()
    }

    #[test]
    fn bodies_share_what_there_is_and_wait_in_line() {
        let bodies = bodies();
        let mut asked: Vec<_> = (1..=4).map(|number| bodies.charge(source(number), 40)).collect();
        let mut held = admitted(&mut asked);
        assert_eq!(held.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, false, false]);
        assert_eq!(bodies.bytes(), 80);
        held.remove(0);
        assert!(asked.remove(2).try_recv().is_ok(), "the oldest that waits has the room");
        drop((held, asked));
        assert_eq!((bodies.bytes(), bodies.gauge.bytes()), (0, 0));
        assert!(unpoisoned(bodies.held.lock()).sources.is_empty());
    }

    #[test]
    fn a_source_has_half_and_delays_no_other() {
        let bodies = bodies();
        let mut many: Vec<_> = (0..10).map(|_| bodies.charge(source(1), 20)).collect();
        let held = admitted(&mut many);
        assert_eq!(held.iter().flatten().count(), 2, "two of 20 are within 50");
        let other = bodies.charge(source(2), 50).try_recv();
        assert!(other.is_ok(), "the other source does not wait for the first");
        assert!(bodies.charge(source(3), 20).try_recv().is_err(), "there is no more room");
        drop(other);
        assert_eq!(bodies.bytes(), 40, "the third has given up");
    }

    #[test]
    fn sources_take_turns() {
        let bodies = bodies();
        let whole: Vec<_> = (1..=2).map(|number| bodies.charge(source(number), 50).try_recv()).collect();
        let mut first: Vec<_> = (0..3).map(|_| bodies.charge(source(1), 20)).collect();
        let mut second = bodies.charge(source(2), 20);
        drop(whole);
        assert_eq!(admitted(&mut first).iter().flatten().count(), 2);
        assert!(second.try_recv().is_ok());
    }

    #[test]
    fn a_body_longer_than_the_share_comes_alone() {
        let bodies = bodies();
        let long = bodies.charge(source(1), 5 * SHARE).try_recv();
        assert!(long.is_ok());
        assert!(bodies.charge(source(1), 1).try_recv().is_err());
        let now = bodies.charge_now(source(1), 30);
        assert_eq!(
            (now.bytes(), bodies.bytes()),
            (30, 80),
            "what is there already is charged without a wait"
        );
        drop(long);
        assert!(bodies.charge(source(1), 20).try_recv().is_ok());
    }

    #[test]
    fn clients_of_one_ipv6_network_are_one_source() {
        let of = |text: &str| network_of(text.parse().expect("it is an address"));
        assert_eq!(of("2001:db8:1:2:aaaa::1"), of("2001:db8:1:2:bbbb::2"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    }
}
