//! A connection's task: reads, runs the protocol, waits where it has to, and ends.

use std::sync::Arc;
use std::task::{Poll, ready};

use imori_core::broker;
use imori_core::certificate::Certificate;
use imori_core::id::ConnectionId;
use imori_core::inbound::{Inbound, Parking, disconnect, renew, tick, verified};
use imori_core::outbound::{CutReason, Outbound};
use imori_core::time::Time;
use imori_core::turn::{ClientFacts, Next, Notice};
use imori_core::world::Counter;

use super::cell_scratch::Lent;
use super::flush::{flush, flush_of_others};
use super::host::{Host, Transport};
use super::input::{Input, Read};
use super::signal::{Signal, Signals};
use crate::limits::{LINGER_MAX, LONG_FRAME_STALL_MAX, SETTLE_AGAIN, THROTTLE_MAX};
use crate::peers::publisher_wait::PublisherWait;
use crate::protocols::Protocol;

/// A connection, from its cell's point of view.
#[derive(Debug)]
pub struct Task<P = Protocol> {
    id: ConnectionId,
    signals: Arc<Signals>,
    protocol: P,
    state: State,
    input: Input,
    was_logged_in: bool,
    /// The connection is registered to be told of an alarm's end.
    waits_for_alarm: bool,
    /// When it may publish again, after it exceeded a publish rate.
    rate_wait: Option<Time>,
    /// Set once the peer is gone: its messages are published once the disk has room.
    detachment: Option<Detachment>,
    /// Bytes that the detached publisher was counted with.
    detached_bytes: usize,
}

/// The progress of detaching a publisher whose peer is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detachment {
    /// Deliveries and readers are released over several turns.
    Begun,
    /// Only the messages that the peer sent are left.
    Done,
}

/// The activity of the task.
///
/// ```text
///                  Again            SlowReader, Later
///            ┌──── Working ◄───┐  ┌──────► Throttled ─ Resume, or time is up ─► Working
///   worked   ▼                 │  │
///   off    Open ───────────────┴──┤ Parked
///            │                    └──────► Parked ── AlarmEnded, Unthrottled ─► as the replay asks
///            │                                       (also for a detached publisher)
///            │                                       (also at the end of a wait for a publish rate)
///            │ no room for a long frame
///            ├─────────► Parked ── Room ─► Open
///            │ Verify
///            ├─────────► Verifying ── Verified ─► Working
///            │ Close, or Ending
///            ▼
///          Draining ─── End ─► Lingering ─── the peer closes ─► over
/// ```
///
/// Close and Ending lead from every other state to Draining. The deadlines of Draining and Lingering end the task. So
/// does Broken, unless the publisher can be detached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Reading and working.
    Open,
    /// Frames that were already read wait for the next turn.
    Working,
    /// Waiting for a slow reader until this time at most, or until this time to settle again.
    Throttled(Time),
    /// Not reading until an alarm ends, a queue is shorter, or there is room for the long frame that has begun.
    Parked,
    /// Not reading until the verdict of the login is known.
    Verifying,
    /// Ending: the remaining bytes are written, until this time at most.
    Draining(Time),
    /// Everything is written and our side is closed. Waits for the peer to close its side, until this time at most.
    Lingering(Time),
}

/// The next step of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Continue.
    On,
    /// Start over, because something has changed.
    Again,
    /// End, because the connection is over.
    Over,
}

impl<P: Inbound<Scratch: Lent>> Task<P> {
    /// The task of a connection whose link is registered, and from which the bytes `first` were already read.
    pub fn new<H: Host>(
        host: &H,
        id: ConnectionId,
        signals: Arc<Signals>,
        mut protocol: P,
        first: &[u8],
    ) -> Task<P> {
        protocol.greet(host);
        Task {
            id,
            signals,
            protocol,
            state: if first.is_empty() { State::Open } else { State::Working },
            input: Input::new(first),
            was_logged_in: false,
            waits_for_alarm: false,
            rate_wait: None,
            detachment: None,
            detached_bytes: 0,
        }
    }

    /// The connection of this task.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Notes that the connection uses TLS now, and the certificate that the peer presented.
    pub fn secured(&mut self, certificate: Option<Arc<Certificate>>) {
        self.protocol.intake_mut().secured(certificate);
    }

    /// The facts that the client stated about its program.
    pub fn client(&self) -> ClientFacts {
        self.protocol.client()
    }

    /// What the client's next publish waits for.
    pub fn waits_for(&self) -> Option<PublisherWait> {
        match self.state {
            State::Throttled(_) => Some(PublisherWait::Reader),
            State::Open | State::Working | State::Parked => {
                let parking = self.parking();
                if parking.waits_for_alarm() {
                    return Some(PublisherWait::Alarm);
                }
                // Frames that wait for a rate are parked as those that wait for a queue.
                if self.rate_wait.is_some() {
                    return Some(PublisherWait::Rate);
                }
                parking.waits_for_queue().then_some(PublisherWait::Queue)
            }
            State::Verifying | State::Draining(_) | State::Lingering(_) => None,
        }
    }

    /// Runs a turn; ready once the transport is no longer needed. Then call [`Task::end`].
    pub fn poll<H: Host>(&mut self, host: &H, transport: &mut impl Transport) -> Poll<()> {
        host.cell_scratch().begin_turn_of(self.id, host.now());
        if self.state == State::Working {
            flush_of_others(host, self.id);
        }
        if self.detachment == Some(Detachment::Begun) {
            self.detach(host, transport);
        }
        loop {
            if self.signals.has_any() {
                match self.obey(host, transport) {
                    Step::On => {}
                    Step::Again => continue,
                    Step::Over => return Poll::Ready(()),
                }
            }
            match self.meet_deadline(host, transport) {
                Step::On => {}
                Step::Again => continue,
                Step::Over => return Poll::Ready(()),
            }
            match self.state {
                State::Open => {
                    if ready!(self.poll_read(host, transport)) == Step::Over {
                        if self.parking().waits_for_queue() || self.outlives(host) {
                            // Input from before the peer closed its side is published first, as it would be without
                            // throttling.
                            self.state = State::Parked;
                            continue;
                        }
                        // The peer may have closed only its own side, and may still read.
                        flush(host, self.id);
                        return Poll::Ready(());
                    }
                }
                State::Working => {
                    self.state = State::Open;
                    let next = self.input.work(host, self.id, &mut self.protocol);
                    self.follow(host, transport, next);
                }
                State::Throttled(_) if self.signals.take(Signal::Resume) => self.state = State::Working,
                State::Parked if self.detachment.is_some() => return Poll::Pending,
                State::Parked => {
                    ready!(transport.poll_gone());
                    // The memory that it holds may be what keeps a memory alarm raised.
                    if !self.detaches(host, transport) {
                        return Poll::Ready(());
                    }
                }
                State::Verifying => {
                    ready!(transport.poll_gone());
                    return Poll::Ready(());
                }
                State::Lingering(_) => return poll_closed(host, transport),
                State::Throttled(_) | State::Draining(_) => return Poll::Pending,
            }
            if self.state == State::Working {
                transport.come_back();
                return Poll::Pending;
            }
        }
    }

    /// Releases what the client had, or part of it; returns whether everything is released. If not, call again after
    /// other connections had a turn.
    pub fn end<H: Host>(&mut self, host: &H) -> bool {
        host.cell_scratch().begin_turn_of(self.id, host.now());
        flush_of_others(host, self.id);
        if self.detachment.take().is_some() {
            host.memory().detached().forget(self.detached_bytes);
        }
        self.input.clear(host, self.id);
        disconnect(&mut self.protocol, host)
    }

    /// Handles the signals that the task was given.
    fn obey<H: Host>(&mut self, host: &H, transport: &mut impl Transport) -> Step {
        let is_evicted = self.signals.take(Signal::Evict) && !self.was_logged_in;
        if is_evicted || self.is_broken(host, transport) {
            return Step::Over;
        }
        if self.detachment.is_some() && !self.is_ending() {
            // A detached publisher's outbound half was closed with its readers, so these signals are expected.
            self.signals.take(Signal::Ending);
            self.signals.take(Signal::End);
            if self.signals.take(Signal::Stopping) {
                return Step::Over;
            }
        }
        if self.signals.take(Signal::Stopping) {
            self.protocol.stopping(host);
        }
        if self.signals.take(Signal::Ending) && !self.is_ending() {
            self.drain(host);
            self.tell_of_cut(host, transport);
        }
        while self.signals.has(Signal::Write) {
            match transport.poll_writable() {
                Poll::Ready(true) => {
                    self.signals.take(Signal::Write);
                    flush(host, self.id);
                }
                Poll::Ready(false) => {
                    self.signals.take(Signal::Write);
                    self.signals.set(Signal::Broken);
                }
                Poll::Pending => break,
            }
        }
        if self.is_broken(host, transport) {
            return Step::Over;
        }
        if self.signals.take(Signal::End) {
            // Input is still read; otherwise the peer's system would discard the last bytes that we sent.
            transport.close();
            self.state = State::Lingering(host.now().after(LINGER_MAX));
        }
        if self.signals.take(Signal::Verified) {
            let verdict = host.with_link(self.id, |link| link.verdict.take()).flatten();
            if let Some(verdict) = verdict.filter(|_| self.state == State::Verifying) {
                let next = verified(&mut self.protocol, *verdict);
                self.follow(host, transport, next);
                return Step::Again;
            }
        }
        // A pending login may turn out to be the changed user's, so its verdict comes first.
        if self.state != State::Verifying && self.signals.take(Signal::Renewed) {
            let renewals = host.with_link(self.id, |link| link.take_renewals()).unwrap_or_default();
            let mut is_over = false;
            for renewal in renewals {
                is_over |= renew(&mut self.protocol, host, &renewal);
            }
            if is_over {
                self.follow(host, transport, Next::Close);
                return Step::Again;
            }
            self.tell_notice(transport);
        }
        if self.signals.take(Signal::Inspected) {
            let inspectors = host.with_link(self.id, |link| link.take_inspectors()).unwrap_or_default();
            inspectors.into_iter().for_each(|inspector| inspector(self.protocol.details(host)));
        }
        if self.signals.take(Signal::Room) && self.state == State::Parked && self.input.waits_for_room() {
            self.state = State::Open;
        }
        if matches!(self.state, State::Open | State::Working | State::Parked) {
            if self.signals.take(Signal::AlarmEnded) {
                self.waits_for_alarm = false;
                let next = self.protocol.intake().alarm_ended();
                self.follow(host, transport, next);
                return Step::Again;
            }
            if self.signals.take(Signal::Unthrottled) {
                let next = self.protocol.intake_mut().unthrottled();
                self.follow(host, transport, next);
                return Step::Again;
            }
        }
        Step::On
    }

    /// Tells whether the connection is broken and has to end. A publisher whose messages wait for the disk is detached
    /// instead.
    fn is_broken<H: Host>(&mut self, host: &H, transport: &mut impl Transport) -> bool {
        if !self.signals.has(Signal::Broken) {
            return false;
        }
        let is_over = self.detachment.is_none() && !self.detaches(host, transport);
        if !is_over {
            self.signals.take(Signal::Broken);
        }
        is_over
    }

    /// Tells whether the peer's messages wait for the disk and for nothing else. As far as the peer can know, they are
    /// published, and they take no memory that others wait for.
    fn outlives<H: Host>(&self, host: &H) -> bool {
        self.waits_for_alarm && !self.parking().waits_for_queue() && !host.memory().is_alarmed()
    }

    /// Detaches the publisher from its peer, which is gone; `false` if there is no reason to, or a limit is reached.
    fn detaches<H: Host>(&mut self, host: &H, transport: &mut impl Transport) -> bool {
        if self.is_ending() || !self.outlives(host) {
            return false;
        }
        self.detached_bytes = self.input.bytes() + self.parking().bytes();
        if !host.memory().detached().admit(self.detached_bytes) {
            return false;
        }
        // Only input that was already read is kept; the rest is read once the alarm has ended.
        self.state = State::Parked;
        self.detachment = Some(Detachment::Begun);
        self.detach(host, transport);
        true
    }

    /// Releases the readers and deliveries of the peer, which is gone. Its messages need only its identity.
    fn detach<H: Host>(&mut self, host: &H, transport: &mut impl Transport) {
        match broker::disconnect(host, &self.protocol.actor()) {
            true => self.detachment = Some(Detachment::Done),
            false => transport.come_back(),
        }
    }

    /// Waits for the next deadline, and handles it once it has passed.
    fn meet_deadline<H: Host>(&mut self, host: &H, transport: &mut impl Transport) -> Step {
        let deadline = match self.state {
            State::Draining(at) | State::Lingering(at) | State::Throttled(at) => Some(at),
            // A peer that is gone cannot be late; its messages may wait for a rate.
            State::Open | State::Working | State::Parked if self.detachment.is_some() => self.rate_wait,
            State::Verifying if self.detachment.is_some() => None,
            State::Open => {
                let deadlines = [self.protocol.next_deadline(), self.input.next_look(), self.rate_wait];
                deadlines.into_iter().flatten().min()
            }
            // The protocol knows that read time-outs do not run while nothing is read.
            State::Working | State::Parked => {
                [self.protocol.next_deadline(), self.rate_wait].into_iter().flatten().min()
            }
            State::Verifying => self.protocol.next_deadline(),
        };
        if deadline.is_none_or(|at| at > host.now()) {
            return match transport.poll_timer(deadline) {
                Poll::Ready(()) => Step::Again,
                Poll::Pending => Step::On,
            };
        }
        match self.state {
            State::Draining(_) | State::Lingering(_) => return Step::Over,
            State::Throttled(_) => self.state = State::Working,
            State::Open if self.input.next_look().is_some_and(|at| at <= host.now()) => {
                self.look_at_long_frame(host);
            }
            State::Open | State::Working | State::Parked
                if self.rate_wait.take_if(|at| *at <= host.now()).is_some() =>
            {
                let next = self.protocol.intake_mut().unthrottled();
                self.follow(host, transport, next);
            }
            State::Open | State::Working | State::Parked | State::Verifying => {
                let next = tick(&mut self.protocol, host);
                if next == Next::Close {
                    self.follow(host, transport, next);
                }
            }
        }
        Step::Again
    }

    fn poll_read<H: Host>(&mut self, host: &H, transport: &mut impl Transport) -> Poll<Step> {
        match ready!(self.input.poll_read(host, self.id, transport, &mut self.protocol)) {
            Read::Closed => return Poll::Ready(Step::Over),
            Read::Partial => {}
            Read::NoRoom => {
                self.protocol.intake_mut().reading.pause();
                self.state = State::Parked;
            }
            Read::Worked(next, has_more) => {
                self.follow(host, transport, next);
                if has_more && self.state == State::Open {
                    self.state = State::Working;
                }
            }
        }
        Poll::Ready(Step::On)
    }

    /// Cuts a connection whose long frame has stalled while others need its memory.
    fn look_at_long_frame<H: Host>(&mut self, host: &H) {
        if self.input.has_stalled(host) && host.memory().is_short_of_long_frames() {
            host.count(Counter::CutUnfinished);
            let seconds = LONG_FRAME_STALL_MAX.as_secs();
            host.with_outbound(self.id, |outbound| outbound.cut(CutReason::Unfinished { seconds }));
        }
    }

    /// Takes the next step that the protocol asks for.
    fn follow<H: Host>(&mut self, host: &H, transport: &mut impl Transport, next: Next) {
        if !self.was_logged_in && self.protocol.is_logged_in() {
            self.was_logged_in = true;
            transport.logged_in();
        }
        self.tell_notice(transport);
        if let Some(until) = host.cell_scratch().take_rate_wait() {
            self.rate_wait = Some(until);
        }
        if self.is_ending() {
            return;
        }
        match next {
            Next::More { .. } => self.state = State::Open,
            Next::Again => self.state = State::Working,
            Next::SlowReader(reader) => self.throttle(host, reader),
            Next::Later => {
                self.signals.take(Signal::Resume);
                self.state = State::Throttled(host.now().after(SETTLE_AGAIN));
            }
            Next::Parked => self.state = State::Parked,
            Next::Verify => self.state = State::Verifying,
            Next::Close => {
                host.with_outbound(self.id, Outbound::finish);
                self.drain(host);
            }
        }
        let waits = match self.state {
            // A queue gives the signal itself, regardless of alarms.
            State::Parked => self.parking().waits_for_alarm() || !self.parking().waits_for_queue(),
            State::Open => self.parking().waits_for_alarm(),
            // A task that continues reaches its parked frames by itself.
            _ => false,
        };
        if waits && !self.waits_for_alarm {
            self.waits_for_alarm = true;
            if !host.memory().park(self.id) {
                self.signals.set(Signal::AlarmEnded);
            }
        }
    }

    fn tell_notice(&mut self, transport: &mut impl Transport) {
        if let Some(notice) = self.protocol.intake_mut().take_notice() {
            transport.noticed(&notice);
        }
    }

    /// Waits for a slow reader, unless it has room again.
    fn throttle<H: Host>(&mut self, host: &H, reader: ConnectionId) {
        // A late signal from an earlier reader does not concern this one.
        self.signals.take(Signal::Resume);
        let waits = host.with_outbound(reader, |outbound| outbound.throttle(self.id)).unwrap_or(false);
        self.state = if waits { State::Throttled(host.now().after(THROTTLE_MAX)) } else { State::Working };
    }

    /// The frames that wait for the end of an alarm or for a queue.
    fn parking(&self) -> &Parking {
        &self.protocol.intake().parking
    }

    fn is_ending(&self) -> bool {
        matches!(self.state, State::Draining(_) | State::Lingering(_))
    }

    /// Lets the remaining bytes be written. If there are none, no flush gives the signal to end, so this does.
    fn drain<H: Host>(&mut self, host: &H) {
        self.input.clear(host, self.id);
        self.state = State::Draining(host.now().after(LINGER_MAX));
        if host.with_link(self.id, |link| link.outbound.is_over()).unwrap_or(true) {
            self.signals.set(Signal::End);
        }
    }

    /// Reports why the broker ends the connection, unless the broker is stopping.
    fn tell_of_cut<H: Host>(&self, host: &H, transport: &mut impl Transport) {
        let reason = host.with_link(self.id, |link| link.outbound.ended().cloned()).flatten();
        match reason {
            None | Some(CutReason::ShuttingDown) => {}
            Some(reason) => transport.noticed(&Notice::refused("connection cut", reason.to_string())),
        }
    }
}

/// Reads and discards input until the peer closes its side.
fn poll_closed<H: Host>(host: &H, transport: &mut impl Transport) -> Poll<()> {
    let mut buffer = host.cell_scratch().buffer.borrow_mut();
    while ready!(transport.poll_read(&mut buffer)) > 0 {}
    Poll::Ready(())
}
