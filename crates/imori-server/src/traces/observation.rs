//! What is observed of messages at present: spans for a collector, an operator's trace, measured calls.

use std::cell::RefCell;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use imori_core::delivery::{Outcome, QueuePosition};
use imori_core::id::{ConnectionId, VhostId};
use imori_core::queue::{DeadLetter, Queue};
use imori_core::time::Time;
use imori_core::world::Sent;

use super::calls::{Calls, RequestKey, ServiceFigures};
use super::message_trace::{Followed, MessageTrace, TraceFilter, TracedClient};
use super::traces::Traces;
use crate::limits::CALLS_LEASE;
use crate::protocols::header_reader;
use crate::slots::unpoisoned;

/// Measured calls.
#[derive(Debug)]
pub struct CallFigures {
    /// When the measurement began.
    pub from: Time,
    /// The services.
    pub services: Vec<ServiceFigures>,
    /// Requests that were not followed, because there were too many at once.
    pub not_followed: u64,
}

/// The observers of messages, which all cells share.
#[derive(Debug)]
pub(crate) struct Observation {
    /// Spans for a collector.
    pub(crate) spans: Traces,
    /// Whether messages are observed at all.
    is_on: AtomicBool,
    trace: Mutex<Option<MessageTrace>>,
    calls: Mutex<Option<MeasuredCalls>>,
}

#[derive(Debug)]
struct MeasuredCalls {
    from: Time,
    until: Time,
    calls: Calls,
}

/// The message that a cell is publishing.
#[derive(Debug, Default)]
pub(crate) struct CurrentMessage {
    followed: RefCell<Option<Followed>>,
    request: RefCell<Option<RequestKey>>,
}

impl Observation {
    /// Observes nothing but spans, if these are to be sent.
    pub(crate) fn new(spans: Traces) -> Observation {
        let is_on = AtomicBool::new(spans.is_on());
        Observation { spans, is_on, trace: Mutex::default(), calls: Mutex::default() }
    }

    /// Whether messages are observed.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Starts a trace, in the place of an earlier one.
    pub(crate) fn start_trace(&self, filter: TraceFilter, user: String, now: Time) {
        *self.trace() = Some(MessageTrace::new(filter, user, now));
        self.is_on.store(true, Ordering::Relaxed);
    }

    /// The latest trace.
    pub(crate) fn latest_trace(&self, now: Time) -> Option<MessageTrace> {
        self.stop_unless_needed(now);
        self.trace().clone()
    }

    /// Ends the trace and forgets it; returns whether there was one.
    pub(crate) fn end_trace(&self, now: Time) -> bool {
        let was = self.trace().take().is_some();
        self.stop_unless_needed(now);
        was
    }

    /// The calls since the measurement began, which goes on for [`CALLS_LEASE`] from now, or begins.
    pub(crate) fn measure_calls(&self, now: Time) -> CallFigures {
        let mut calls = self.calls();
        let measured =
            calls.get_or_insert_with(|| MeasuredCalls { from: now, until: now, calls: Calls::default() });
        measured.until = now.after(CALLS_LEASE);
        let (services, not_followed) = measured.calls.figures(now);
        let from = measured.from;
        drop(calls);
        self.is_on.store(true, Ordering::Relaxed);
        CallFigures { from, services, not_followed }
    }

    /// Stops observing once nothing is observed any more.
    fn stop_unless_needed(&self, now: Time) {
        self.calls().take_if(|measured| measured.until < now);
        let is_traced = self.trace().as_ref().is_some_and(|trace| now <= trace.until);
        let is_needed = self.spans.is_on() || is_traced || self.calls().is_some();
        self.is_on.store(is_needed, Ordering::Relaxed);
    }

    /// Messages are about to be routed. `client` finds the facts about a connection.
    pub(crate) fn publishing(
        &self,
        now: Time,
        current: &CurrentMessage,
        sent: &Sent<'_>,
        publisher: Option<ConnectionId>,
        client: impl FnOnce(ConnectionId) -> Option<TracedClient>,
    ) {
        let is_over = {
            let mut calls = self.calls();
            if let Some(measured) = calls.as_mut().filter(|measured| now <= measured.until) {
                let reply_address = header_reader(sent.first.properties.origin).reply_address(&sent.first);
                let request = measured.calls.publishing(now, sent, reply_address, publisher);
                *current.request.borrow_mut() = request;
            }
            calls.as_ref().is_some_and(|measured| measured.until < now)
        };
        let (followed, has_ended) = {
            let mut trace = self.trace();
            let followed = trace.as_mut().and_then(|trace| trace.publishing(now, sent, publisher));
            (followed, trace.as_ref().is_some_and(|trace| trace.until < now))
        };
        if followed.is_some()
            && let Some(publisher) = publisher
        {
            self.meet(publisher, client);
        }
        *current.followed.borrow_mut() = followed;
        if is_over || has_ended {
            self.stop_unless_needed(now);
        }
    }

    /// The messages that were about to be routed have been.
    pub(crate) fn published(&self, now: Time, current: &CurrentMessage, receivers: usize) {
        if let Some(request) = current.request.take()
            && let Some(measured) = self.calls().as_mut()
        {
            measured.calls.routed(&request, receivers);
        }
        if let Some(Followed::Message(index)) = current.followed.take()
            && let Some(trace) = self.trace().as_mut()
        {
            trace.routed(now, index, receivers);
        }
    }

    /// A queue is about to take the current message.
    pub(crate) fn enqueuing(&self, now: Time, current: &CurrentMessage, at: QueuePosition, queue: &Queue) {
        if queue.is_stream()
            && let Some(request) = current.request.take()
            && let Some(measured) = self.calls().as_mut()
        {
            measured.calls.withdraw(&request);
        }
        let followed = mem::take(&mut *current.followed.borrow_mut());
        if let Some(followed) = followed
            && let Some(trace) = self.trace().as_mut()
        {
            *current.followed.borrow_mut() = Some(trace.enqueuing(now, followed, at, queue));
        }
    }

    /// A connection has a message.
    pub(crate) fn delivered(
        &self,
        now: Time,
        current: &CurrentMessage,
        from: Option<QueuePosition>,
        to: ConnectionId,
        client: impl FnOnce(ConnectionId) -> Option<TracedClient>,
    ) {
        let index = match &*current.followed.borrow() {
            Some(Followed::Message(index)) => Some(*index),
            Some(Followed::Perhaps(_)) | None => None,
        };
        let is_followed = self.trace().as_mut().is_some_and(|trace| trace.delivered(now, index, from, to));
        if is_followed {
            self.meet(to, client);
        }
    }

    /// A consumer settles a delivery.
    pub(crate) fn settling(&self, now: Time, at: QueuePosition, by: ConnectionId, outcome: Outcome) {
        if let Some(trace) = self.trace().as_mut() {
            trace.settling(now, at, by, outcome);
        }
    }

    /// A dead letter is about to be routed, and is the current message from now on.
    pub(crate) fn dead_lettering(
        &self,
        now: Time,
        current: &CurrentMessage,
        vhost: VhostId,
        letter: &DeadLetter,
    ) {
        let index = self.trace().as_mut().and_then(|trace| trace.dead_lettering(now, vhost, letter));
        *current.followed.borrow_mut() = index.map(Followed::Message);
    }

    /// Notes the facts about a connection that appears in the trace. The trace is not locked while they are read,
    /// because a connection's lock comes before it.
    fn meet(&self, id: ConnectionId, client: impl FnOnce(ConnectionId) -> Option<TracedClient>) {
        if self.trace().as_ref().is_some_and(|trace| trace.clients.contains_key(&id)) {
            return;
        }
        if let Some(client) = client(id)
            && let Some(trace) = self.trace().as_mut()
        {
            trace.clients.insert(id, client);
        }
    }

    fn trace(&self) -> MutexGuard<'_, Option<MessageTrace>> {
        unpoisoned(self.trace.lock())
    }

    fn calls(&self) -> MutexGuard<'_, Option<MeasuredCalls>> {
        unpoisoned(self.calls.lock())
    }
}
