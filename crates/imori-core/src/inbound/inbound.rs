//! The trait that a protocol's connection implements, and the loop that feeds it frames.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;

use super::intake::Intake;
use super::parking::Line;
use super::unread::Unread;
use crate::authorize::Identity;
use crate::broker::{Actor, Revoked};
use crate::id::ConnectionId;
use crate::outbound::{CutReason, Encoder, Outbound, SessionId};
use crate::room::Room;
use crate::time::Time;
use crate::turn::{Budget, ClientFacts, Next, Peer, Received};
use crate::world::World;

/// A protocol whose connections a listener can accept.
pub trait Accept: Inbound {
    /// The settings of a listener, shared by its connections.
    type Settings;

    /// Creates the inbound half of a connection that was accepted at `now`.
    fn new(settings: Arc<Self::Settings>, id: ConnectionId, peer: Peer, now: Time) -> Self;

    /// Creates the encoder of a connection that has not logged in.
    fn encoder(settings: &Self::Settings) -> Box<dyn Encoder>;
}

/// The inbound half of a connection: decodes bytes, performs commands on the broker, and puts
/// answers into the outbound half.
///
/// An implementation reads no socket and no clock. One caller feeds it, one turn at a time, and
/// carries out the returned [`Next`]. [`Intake`] and the functions of this module have the parts
/// common to all protocols.
pub trait Inbound: Debug + Sized {
    /// Memory for decoding frames during a turn; a cell lends its own to each of its connections.
    type Scratch: Debug + Default;

    /// The state that connections of every protocol have.
    fn intake(&self) -> &Intake;

    /// Mutable access to that state.
    fn intake_mut(&mut self) -> &mut Intake;

    /// The client on behalf of which the broker acts.
    fn actor(&self) -> Actor<'_>;

    /// The phase of the conversation.
    fn phase(&self) -> Phase;

    /// Ends the conversation: drops parked frames and ignores further input.
    fn close(&mut self);

    /// Replaces the identity by another one of the same user.
    fn set_identity(&mut self, identity: Identity);

    /// Tells the client about readers that were ended because its rights changed.
    fn readers_revoked<W: World>(&mut self, world: &W, revoked: Vec<Revoked>);

    /// Whether the client has logged in.
    fn is_logged_in(&self) -> bool;

    /// Facts that the client stated about its program, for monitoring.
    fn client(&self) -> ClientFacts {
        ClientFacts::default()
    }

    /// A description of the sessions, for monitoring by a caller that knows the protocol and its
    /// type; `None` if the protocol has none.
    fn details<W: World>(&self, _world: &W) -> Option<Box<dyn Any + Send>> {
        None
    }

    /// Sends the broker's greeting, in a protocol where the broker speaks first. The connection is
    /// already registered.
    fn greet<W: World>(&mut self, _world: &W) {}

    /// Takes the next frame: performs it, parks it or refuses it.
    fn take<W: World>(
        &mut self,
        world: &W,
        scratch: &mut Self::Scratch,
        unread: Unread<'_>,
        budget: &mut Budget,
    ) -> Taken;

    /// Performs a parked frame.
    fn replay<W: World>(
        &mut self,
        world: &W,
        scratch: &mut Self::Scratch,
        frame: &[u8],
        budget: &mut Budget,
    ) -> Performed;

    /// Called when the last parked frame of a session has been replayed.
    fn replayed(&mut self, _session: SessionId) {}

    /// Completes work collected from several frames, at the end of a turn.
    fn finish_turn<W: World>(&mut self, _world: &W) {}

    /// Whether there is work without further input: frames are parked, that is, decoded but waiting
    /// for the end of an alarm or for a queue. Reading may continue meanwhile.
    fn has_parked(&self) -> bool {
        self.intake().parking.has_parked()
    }

    /// Whether parked frames must stay parked because of an alarm.
    #[inline]
    fn must_wait<W: World>(&self, world: &W) -> bool {
        world.is_alarmed() || world.room().is_alarmed()
    }

    /// Whether reading on may free memory, because the client does more than publish.
    fn does_more_than_publish<W: World>(&self, world: &W) -> bool {
        let reads = |outbound: &mut Outbound| outbound.readers_len() > 0 || outbound.unsettled_len() > 0;
        world.with_outbound(self.actor().connection, reads) == Some(true)
    }

    /// The total size of partly received messages, once at least `free_bytes` of them have arrived;
    /// 0 before that.
    #[inline]
    fn gathered_bytes(&self, _free_bytes: usize) -> usize {
        0
    }

    /// Closes the connection of a client that has not logged in in time.
    fn login_timed_out<W: World>(&mut self, _world: &W) {
        self.close();
    }

    /// The time at which to call [`Inbound::keep_alive`].
    fn keepalive_deadline(&self) -> Option<Time> {
        None
    }

    /// Handles the protocol's own deadlines: sends heart-beats and detects a silent client.
    fn keep_alive<W: World>(&mut self, _world: &W) {}

    /// Tells the client that the broker is shutting down. By default the connection is cut.
    fn stopping<W: World>(&mut self, world: &W) {
        world.with_outbound(self.actor().connection, |outbound| outbound.cut(CutReason::ShuttingDown));
    }

    // No protocol overrides the rest. A type that stands for several of them does, to choose once a
    // turn.

    /// Works through the frames in `input`, which starts where the last call's `consumed` ended.
    ///
    /// `shared`, if given, holds exactly `input`, so that a large body can be kept without a copy.
    fn receive<W: World>(
        &mut self,
        world: &W,
        scratch: &mut Self::Scratch,
        input: &[u8],
        shared: Option<&Bytes>,
        budget: &mut Budget,
    ) -> Received {
        self.intake_mut().reading.received(world.now());
        if let Some(next) = replay_all(self, world, scratch, budget) {
            return Received { consumed: 0, next };
        }
        let received = work(self, world, scratch, input, shared, budget);
        self.finish_turn(world);
        match self.phase() {
            Phase::Closed => Received { consumed: input.len(), next: Next::Close },
            _ => received,
        }
    }

    /// The time at which to call [`tick`](super::tick).
    fn next_deadline(&self) -> Option<Time> {
        if self.phase() == Phase::Closed {
            return None;
        }
        let token_ends = self.actor().identity.rights.valid_until();
        let login_until = self.intake().reading.login_until();
        [login_until, self.keepalive_deadline(), token_ends].into_iter().flatten().min()
    }
}

/// The phase of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Frames are accepted.
    Open,
    /// The client has said goodbye, and parked frames remain. Nothing else is accepted.
    Leaving,
    /// Nothing is accepted any more.
    Closed,
}

/// The result of taking the next frame of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// This many bytes of the input are consumed.
    Bytes(usize),
    /// The next frame is incomplete.
    Incomplete {
        /// The size of the whole frame, if known.
        frame_bytes: Option<usize>,
    },
    /// The next frame stays in the input, and this step follows.
    Left(Next),
}

/// The result of performing a frame.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Performed {
    /// The frame is done.
    #[default]
    Done,
    /// Part of the frame is done. Perform it again after other connections had a turn.
    Partly,
    /// Nothing was done, because a queue is too long. The world's `unthrottle` tells when to retry.
    Held,
}

/// Takes frames until the budget or the input is used up, or something must wait.
fn work<I: Inbound, W: World>(
    inbound: &mut I,
    world: &W,
    scratch: &mut I::Scratch,
    input: &[u8],
    shared: Option<&Bytes>,
    budget: &mut Budget,
) -> Received {
    let mut consumed = 0;
    if inbound.phase() == Phase::Open && world.room().must_settle_wait() && has_unsettled(inbound, world) {
        return Received { consumed, next: Next::Later };
    }
    loop {
        match inbound.phase() {
            Phase::Closed => return Received { consumed: input.len(), next: Next::Close },
            Phase::Leaving => return Received { consumed: input.len(), next: Next::Parked },
            Phase::Open if budget.is_spent() => {
                return Received { consumed, next: budget.close(Next::Again) };
            }
            Phase::Open if inbound.intake().is_full() => return Received { consumed, next: pause(inbound) },
            Phase::Open => {}
        }
        match inbound.take(world, scratch, Unread::new(input, shared, consumed), budget) {
            Taken::Bytes(bytes) => consumed += bytes,
            Taken::Incomplete { frame_bytes } => {
                return Received { consumed, next: budget.close(Next::More { frame_bytes }) };
            }
            Taken::Left(next) => return Received { consumed, next },
        }
    }
}

/// Performs parked frames as far as alarms and queues allow; `None` if reading goes on.
fn replay_all<I: Inbound, W: World>(
    inbound: &mut I,
    world: &W,
    scratch: &mut I::Scratch,
    budget: &mut Budget,
) -> Option<Next> {
    if !inbound.has_parked() {
        return None;
    }
    let mut from = 0;
    while !inbound.must_wait(world)
        && let Some((at, mut line)) = inbound.intake_mut().parking.take_line(from)
    {
        // The line is taken out, so that answers to its own frames need not wait behind it.
        let next = replay_line(inbound, world, scratch, &mut line, budget);
        if inbound.phase() == Phase::Closed {
            return Some(Next::Close);
        }
        let (is_over, waits_for_queue) = (line.is_empty(), line.waits_for_queue());
        let session = line.session();
        inbound.intake_mut().parking.put_back(at, line);
        if next.is_some() {
            return next;
        }
        match is_over {
            true => inbound.replayed(session),
            false if waits_for_queue => from = at + 1,
            // An alarm has started meanwhile.
            false => return Some(pause(inbound)),
        }
    }
    let waits = inbound.has_parked() && (inbound.phase() == Phase::Leaving || inbound.intake().is_full());
    waits.then(|| pause(inbound))
}

/// Performs the parked frames of a session until one must wait.
fn replay_line<I: Inbound, W: World>(
    inbound: &mut I,
    world: &W,
    scratch: &mut I::Scratch,
    line: &mut Line,
    budget: &mut Budget,
) -> Option<Next> {
    while let Some(frame) = line.front() {
        match inbound.replay(world, scratch, frame, budget) {
            Performed::Done => {}
            Performed::Partly => return Some(budget.close(Next::Again)),
            Performed::Held => {
                line.wait_for_queue();
                return None;
            }
        }
        line.pop();
        if inbound.phase() == Phase::Closed || line.is_empty() {
            return None;
        }
        if budget.is_spent() {
            return Some(budget.close(Next::Again));
        }
        if inbound.must_wait(world) {
            return None;
        }
    }
    None
}

/// Whether the client has unsettled deliveries.
fn has_unsettled<I: Inbound, W: World>(inbound: &I, world: &W) -> bool {
    world.with_outbound(inbound.actor().connection, |outbound| outbound.unsettled_len() > 0) == Some(true)
}

/// Pauses reading, so that the client is not blamed for silence.
pub(super) fn pause<I: Inbound>(inbound: &mut I) -> Next {
    inbound.intake_mut().reading.pause();
    Next::Parked
}
