//! Limits on connections, in all and before login.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use imori_core::id::ConnectionId;
use imori_core::time::Time;
use rustix::process::{Resource, getrlimit};
use tokio::sync::Notify;
use tracing::warn;

use crate::config::Limits;
use crate::limits::DESCRIPTORS_KEPT;
use crate::slots::unpoisoned;

/// Age at which a connection that has not logged in may be evicted to make room (SECURITY LIM-03).
const GRACE: Duration = Duration::from_secs(1);

/// The limits of admission.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AdmissionLimits {
    pub(crate) connections_max: usize,
    pub(crate) unauthenticated_max: usize,
    pub(crate) unauthenticated_per_source_max: usize,
}

impl AdmissionLimits {
    /// The limits that a configuration sets.
    pub(crate) fn of(limits: &Limits) -> AdmissionLimits {
        AdmissionLimits {
            connections_max: limits.connections as usize,
            unauthenticated_max: limits.unauthenticated as usize,
            unauthenticated_per_source_max: limits.unauthenticated_per_source as usize,
        }
    }
}

/// Counts connections and decides about new ones.
#[derive(Debug)]
pub(crate) struct Admission {
    counts: Mutex<Counts>,
    /// A connection closed or logged in.
    pub(crate) freed: Notify,
}

#[derive(Debug)]
struct Counts {
    limits: AdmissionLimits,
    connections: usize,
    /// Whether it was logged that file descriptors, not the configuration, limit connections.
    has_told_of_descriptors: bool,
    next_ticket: u64,
    /// Connections before login, oldest first.
    waiting: BTreeMap<u64, Waiting>,
    per_source: HashMap<IpAddr, usize>,
}

#[derive(Debug)]
struct Waiting {
    since: Time,
    source: IpAddr,
    connection: Option<ConnectionId>,
}

/// Permission to be connected; returned by [`Admission::leave`].
#[derive(Debug)]
pub(crate) struct Ticket(u64);

impl Ticket {
    /// The number of the admitted connection; the first is 1.
    pub(crate) fn number(&self) -> u64 {
        self.0 + 1
    }
}

/// The decision about an accepted socket.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The connection is admitted.
    Admit(Ticket),
    /// There is no room; the given connection, if any, is evicted.
    Full(Option<ConnectionId>),
    /// The source has too many connections before login.
    Refuse,
}

impl Admission {
    pub(crate) fn new(limits: AdmissionLimits) -> Admission {
        let counts = Counts {
            limits,
            connections: 0,
            has_told_of_descriptors: false,
            next_ticket: 0,
            waiting: BTreeMap::new(),
            per_source: HashMap::new(),
        };
        Admission { counts: Mutex::new(counts), freed: Notify::new() }
    }

    /// Changes the limits. Admitted connections stay; sockets that wait for room are decided again.
    pub(crate) fn limit(&self, limits: AdmissionLimits) {
        unpoisoned(self.counts.lock()).limits = limits;
        self.freed.notify_waiters();
    }

    /// Decides about a new connection.
    pub(crate) fn knock(&self, source: IpAddr, now: Time) -> Verdict {
        let mut counts = unpoisoned(self.counts.lock());
        let descriptors_max = descriptors_max();
        if counts.connections >= counts.limits.connections_max.min(descriptors_max) {
            if descriptors_max < counts.limits.connections_max && !counts.has_told_of_descriptors {
                counts.has_told_of_descriptors = true;
                warn!(
                    connections = counts.connections,
                    "connections cannot be accepted: the process may not open more files; raise its limit (`ulimit -n`)"
                );
            }
            return Verdict::Full(None);
        }
        if counts.waiting.len() >= counts.limits.unauthenticated_max {
            let oldest = counts.waiting.values().find(|waiting| waiting.connection.is_some());
            let gives_way = oldest.filter(|waiting| now.since(waiting.since) >= GRACE);
            return Verdict::Full(gives_way.and_then(|waiting| waiting.connection));
        }
        let of_source = counts.per_source.get(&source).copied().unwrap_or(0);
        if !source.is_loopback() && of_source >= counts.limits.unauthenticated_per_source_max {
            return Verdict::Refuse;
        }
        counts.connections += 1;
        *counts.per_source.entry(source).or_default() += 1;
        let ticket = counts.next_ticket;
        counts.next_ticket += 1;
        counts.waiting.insert(ticket, Waiting { since: now, source, connection: None });
        Verdict::Admit(Ticket(ticket))
    }

    /// Number of connections ever admitted.
    pub(crate) fn admitted(&self) -> u64 {
        unpoisoned(self.counts.lock()).next_ticket
    }

    /// Notes the connection of a ticket, so that it can be evicted.
    pub(crate) fn seat(&self, ticket: &Ticket, connection: ConnectionId) {
        if let Some(waiting) = unpoisoned(self.counts.lock()).waiting.get_mut(&ticket.0) {
            waiting.connection = Some(connection);
        }
    }

    /// Moves a ticket to the source that its proxy reports; false if that source has too many connections before
    /// login.
    pub(crate) fn moved(&self, ticket: &Ticket, source: IpAddr) -> bool {
        let mut counts = unpoisoned(self.counts.lock());
        let of_source = counts.per_source.get(&source).copied().unwrap_or_default();
        if !source.is_loopback() && of_source >= counts.limits.unauthenticated_per_source_max {
            return false;
        }
        let Some(waiting) = counts.waiting.get_mut(&ticket.0) else { return true };
        let before = std::mem::replace(&mut waiting.source, source);
        counts.leave_source(before);
        *counts.per_source.entry(source).or_default() += 1;
        true
    }

    /// Notes that the connection has logged in.
    pub(crate) fn logged_in(&self, ticket: &Ticket) {
        unpoisoned(self.counts.lock()).no_longer_waiting(ticket);
        self.freed.notify_one();
    }

    /// Notes that the connection is closed.
    pub(crate) fn leave(&self, ticket: &Ticket) {
        let mut counts = unpoisoned(self.counts.lock());
        counts.no_longer_waiting(ticket);
        counts.connections = counts.connections.saturating_sub(1);
        drop(counts);
        self.freed.notify_one();
    }
}

/// Connections that leave enough file descriptors for the journal, segments and monitor.
pub(crate) fn descriptors_max() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    limit.saturating_sub(DESCRIPTORS_KEPT).max(1)
}

impl Counts {
    fn no_longer_waiting(&mut self, ticket: &Ticket) {
        let Some(waiting) = self.waiting.remove(&ticket.0) else {
            return;
        };
        self.leave_source(waiting.source);
    }

    fn leave_source(&mut self, source: IpAddr) {
        if let Some(count) = self.per_source.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                self.per_source.remove(&source);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REMOTE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn admission(connections_max: usize, unauthenticated_max: usize, per_source: usize) -> Admission {
        Admission::new(AdmissionLimits {
            connections_max,
            unauthenticated_max,
            unauthenticated_per_source_max: per_source,
        })
    }

    fn ticket(verdict: Verdict) -> Ticket {
        match verdict {
            Verdict::Admit(ticket) => ticket,
            other => panic!("not admitted: {other:?}"),
        }
    }

    /// SECURITY LIM-03.
    #[test]
    fn the_oldest_silent_one_gives_way_after_a_second() {
        let admission = admission(10, 2, 10);
        let start = Time(1_000_000);
        let first = ticket(admission.knock(REMOTE, start));
        let oldest = ConnectionId { cell: 0, slot: 7, generation: 0 };
        admission.seat(&first, oldest);
        let _second = ticket(admission.knock(REMOTE, start));
        assert!(matches!(admission.knock(REMOTE, start), Verdict::Full(None)), "not within the second");
        let later = start.after(GRACE);
        assert!(matches!(admission.knock(REMOTE, later), Verdict::Full(Some(id)) if id == oldest));
        admission.logged_in(&first);
        ticket(admission.knock(REMOTE, later));
    }

    /// SECURITY LIM-03.
    #[test]
    fn one_source_cannot_take_every_place_but_loopback_may() {
        let admission = admission(10, 10, 2);
        let now = Time(0);
        let first = ticket(admission.knock(REMOTE, now));
        let _second = ticket(admission.knock(REMOTE, now));
        assert!(matches!(admission.knock(REMOTE, now), Verdict::Refuse));
        for _ in 0..3 {
            ticket(admission.knock(LOCAL, now));
        }
        admission.leave(&first);
        ticket(admission.knock(REMOTE, now));
    }

    /// SECURITY LIM-03: clients behind a proxy count by their own source.
    #[test]
    fn a_client_behind_a_proxy_has_the_limit_of_its_own_source() {
        let admission = admission(10, 10, 2);
        let (now, other) = (Time(0), IpAddr::from([203, 0, 113, 9]));
        let tickets = [0, 1].map(|_| ticket(admission.knock(REMOTE, now)));
        assert!(matches!(admission.knock(REMOTE, now), Verdict::Refuse));
        assert!(tickets.iter().all(|ticket| admission.moved(ticket, other)));
        let third = ticket(admission.knock(REMOTE, now));
        assert!(!admission.moved(&third, other), "it has two already");
        tickets.iter().for_each(|ticket| admission.leave(ticket));
        assert!(admission.moved(&third, other));
        admission.leave(&third);
        assert!(unpoisoned(admission.counts.lock()).per_source.is_empty());
    }

    #[test]
    fn connections_are_limited_also_after_login() {
        let admission = admission(1, 10, 10);
        let only = ticket(admission.knock(LOCAL, Time(0)));
        admission.logged_in(&only);
        assert!(matches!(admission.knock(LOCAL, Time(9)), Verdict::Full(None)));
        admission.leave(&only);
        ticket(admission.knock(LOCAL, Time(9)));
    }
}
