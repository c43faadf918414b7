//! The trait that a protocol's connection implements, and the loop that feeds it frames.

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;

use super::intake::Intake;
use super::parking::Line;
use super::unread::Unread;
use crate::authorize::{Action, Identity, Object, Renewal, authorize};
use crate::broker::{self, Actor, Revoked};
use crate::certificate::Certificate;
use crate::id::ConnectionId;
use crate::login::{Credentials, Verdict};
use crate::outbound::{CutReason, Encoder, SessionId};
use crate::room::Room;
use crate::time::Time;
use crate::turn::SessionDetails;
use crate::turn::{Budget, ClientFacts, Next, Notice, Peer, Received};
use crate::world::World;

/// The inbound half of a connection: decodes bytes, performs commands on the broker, and puts
/// answers into the outbound half.
///
/// An implementation reads no socket and no clock. One caller feeds it, one turn at a time, and
/// carries out the returned [`Next`]. The protocol implements the first group of methods. The
/// caller uses the second group, which has default bodies for every protocol.
pub trait Inbound: Debug + Sized {
    /// The settings of a listener, shared by its connections.
    type Settings;

    /// Memory for decoding frames during a turn; a cell lends its own to each of its connections.
    type Scratch: Debug + Default;

    /// A parked frame. Its bytes are charged to the memory gauge.
    type Parked: AsRef<[u8]> + Debug;

    /// Creates the inbound half of a connection that was accepted at `now`.
    fn new(settings: Arc<Self::Settings>, id: ConnectionId, peer: Peer, now: Time) -> Self;

    /// Creates the encoder of a connection that has not logged in.
    fn encoder(settings: &Self::Settings) -> Box<dyn Encoder>;

    /// The state that connections of every protocol have.
    fn intake(&self) -> &Intake<Self::Parked>;

    /// Mutable access to that state.
    fn intake_mut(&mut self) -> &mut Intake<Self::Parked>;

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

    /// The sessions with their links, for monitoring; `None` in a protocol without links.
    fn details<W: World>(&self, _world: &W) -> Option<Vec<SessionDetails>> {
        None
    }

    /// Records that the peer has started TLS, and the certificate it presented.
    fn secured(&mut self, certificate: Option<Arc<Certificate>>) {
        let peer = &mut self.intake_mut().peer;
        peer.is_encrypted = true;
        peer.may_send_password = true;
        peer.certificate = certificate;
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
        frame: &Self::Parked,
        budget: &mut Budget,
    ) -> Performed;

    /// Called when the last parked frame of a session has been replayed.
    fn replayed(&mut self, session: SessionId);

    /// Completes work collected from several frames, at the end of a turn.
    fn finish_turn<W: World>(&mut self, _world: &W) {}

    /// Whether parked frames must stay parked because of an alarm.
    #[inline]
    fn must_wait<W: World>(world: &W) -> bool {
        world.is_alarmed() || world.room().is_alarmed()
    }

    /// Whether reading on may free memory, because the client does more than publish.
    fn does_more_than_publish<W: World>(&self, world: &W) -> bool {
        let reads = |outbound: &mut crate::outbound::Outbound| {
            outbound.readers_len() > 0 || outbound.unsettled_len() > 0
        };
        world.with_outbound(self.actor().connection, reads) == Some(true)
    }

    /// Whether the client has unsettled deliveries.
    fn has_unsettled<W: World>(&self, world: &W) -> bool {
        world.with_outbound(self.actor().connection, |outbound| outbound.unsettled_len() > 0) == Some(true)
    }

    /// Closes the connection of a client that has not logged in in time.
    fn login_timed_out<W: World>(&mut self, _world: &W) {
        self.close();
    }

    /// The time at which to call [`Inbound::keep_alive`].
    fn keepalive_deadline(&self) -> Option<Time>;

    /// Handles the protocol's own deadlines: sends heart-beats and detects a silent client.
    fn keep_alive<W: World>(&mut self, world: &W);

    /// Tells the client that the broker is shutting down. By default the connection is cut.
    fn stopping<W: World>(&mut self, world: &W) {
        world.with_outbound(self.actor().connection, |outbound| outbound.cut(CutReason::ShuttingDown));
    }

    // The rest is for the caller and for protocols.

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

    /// Resumes a login with the verdict of a check that took longer than a turn. After
    /// [`Next::Again`] the caller continues with [`Inbound::receive`] and the rest of the input.
    fn verified(&mut self, verdict: Verdict) -> Next {
        if self.phase() == Phase::Closed {
            return Next::Close;
        }
        self.intake_mut().decided(verdict);
        Next::Again
    }

    /// Applies a change of a user, if it concerns this client. Readers that are no longer allowed
    /// end, and parked frames are decided by the new rights. The connection ends if the user may no
    /// longer be in its vhost.
    ///
    /// Returns whether the connection has ended; [`Next::Close`] follows.
    #[must_use]
    fn renew<W: World>(&mut self, world: &W, renewal: &Renewal) -> bool {
        self.intake_mut().renew(renewal);
        let actor = self.actor();
        if self.phase() == Phase::Closed || !renewal.concerns(actor.identity) {
            return false;
        }
        match renewal.identity.clone() {
            Some(identity) => self.change_identity(world, identity),
            None => self.revoke(world),
        }
        self.phase() == Phase::Closed
    }

    /// Switches to another identity of the same user, or ends the connection if that one may not be
    /// in its vhost.
    fn change_identity<W: World>(&mut self, world: &W, identity: Identity) {
        let vhost = self.actor().vhost;
        if self.is_logged_in() && authorize(&identity, Action::Enter, vhost, Object::Vhost).is_err() {
            return self.revoke(world);
        }
        self.set_identity(identity);
        let revoked = broker::recheck_readers(world, &self.actor());
        if !revoked.is_empty() {
            self.readers_revoked(world, revoked);
        }
    }

    /// Ends the connection because its user was removed or may no longer be in its vhost.
    fn revoke<W: World>(&mut self, world: &W) {
        let user = self.actor().identity.user.clone();
        self.end_login(world, "login revoked", CutReason::Revoked { user });
    }

    /// Ends the connection and logs the reason.
    fn end_login<W: World>(&mut self, world: &W, kind: &'static str, reason: CutReason) {
        self.intake_mut().notice = Some(Notice::refused(kind, reason.to_string()));
        world.with_outbound(self.actor().connection, |outbound| outbound.cut(reason));
        self.close();
    }

    /// The expiry of the client's access token, if it logged in with one.
    fn token_ends(&self) -> Option<Time> {
        self.actor().identity.rights.valid_until()
    }

    /// Takes the last notice, for the log.
    fn take_notice(&mut self) -> Option<Notice> {
        self.intake_mut().take_notice()
    }

    /// Whether frames are parked, that is, decoded but waiting for the end of an alarm or for a
    /// queue. Reading may continue meanwhile.
    fn has_parked(&self) -> bool {
        self.intake().parking.has_parked()
    }

    /// The size of the parked frames in bytes.
    fn parked_bytes(&self) -> usize {
        self.intake().parking.bytes()
    }

    /// Whether a frame waits for a queue, parked or still in the input. The world's `unthrottle`
    /// then tells when to call [`Inbound::unthrottled`].
    fn waits_for_queue(&self) -> bool {
        self.intake().parking.waits_for_queue()
    }

    /// Whether parked frames wait for the end of an alarm. The caller must then call
    /// [`Inbound::alarm_ended`] when it is over.
    fn waits_for_alarm(&self) -> bool {
        self.intake().parking.waits_for_alarm()
    }

    /// Whether an alarm would park a frame of this size, so that the frames behind it, which may
    /// free memory, can be read.
    fn has_place_to_park<W: World>(&self, world: &W, frame_bytes: usize) -> bool {
        self.intake().has_place_for(frame_bytes) && self.does_more_than_publish(world)
    }

    /// The total size of partly received messages, once at least `free_bytes` of them have arrived;
    /// 0 before that.
    #[inline]
    fn gathered_bytes(&self, free_bytes: usize) -> usize {
        let _ = free_bytes;
        0
    }

    /// Notes that part of a long frame has arrived, which [`Inbound::receive`] sees only when
    /// complete.
    fn came(&mut self, now: Time) {
        self.intake_mut().reading.received(now);
    }

    /// Notes that reading is paused, for lack of memory for a long frame.
    fn pause(&mut self) {
        self.intake_mut().reading.pause();
    }

    /// The time at which to call [`Inbound::tick`].
    fn next_deadline(&self) -> Option<Time> {
        if self.phase() == Phase::Closed {
            return None;
        }
        let login_until = self.intake().reading.login_until();
        [login_until, self.keepalive_deadline(), self.token_ends()].into_iter().flatten().min()
    }

    /// Handles the deadlines that have passed.
    fn tick<W: World>(&mut self, world: &W) -> Next {
        if self.phase() == Phase::Closed {
            return Next::Close;
        }
        if self.token_ends().is_some_and(|end| end <= world.now()) {
            let user = self.actor().identity.user.clone();
            self.end_login(world, "token expired", CutReason::TokenExpired { user });
            return Next::Close;
        }
        // SECURITY LIM-02: trickling bytes does not extend the time to log in.
        match self.intake().reading.login_until() {
            Some(until) if until <= world.now() => self.login_timed_out(world),
            _ => self.keep_alive(world),
        }
        match self.phase() {
            Phase::Closed => Next::Close,
            _ if self.intake().reading.is_paused() => Next::Parked,
            _ => Next::More { frame_bytes: None },
        }
    }

    /// Replays the parked frames after an alarm of memory or disk. After [`Next::Again`] the caller
    /// continues with [`Inbound::receive`] and the rest of the input.
    fn alarm_ended<W: World>(&mut self, world: &W) -> Next {
        if self.waits_for_queue() && !self.waits_for_alarm() {
            // Input behind the waiting frames may be free to proceed.
            return if self.intake().reading.is_paused() { Next::Parked } else { Next::Again };
        }
        self.intake_mut().reading.received(world.now());
        let next = replay_all(self, world, &mut Self::Scratch::default(), &mut Budget::default());
        next.unwrap_or(Next::Again)
    }

    /// Replays the parked frames when the queue they waited for is shorter, or gone. Returns the
    /// same as [`Inbound::alarm_ended`].
    fn unthrottled<W: World>(&mut self, world: &W) -> Next {
        self.intake_mut().parking.queue_is_shorter();
        self.alarm_ended(world)
    }

    /// Releases deliveries, readers and inboxes of a client that has lost its transport. Parked
    /// frames and input stay, and are processed later.
    ///
    /// Returns whether everything was released. If not, call again after other connections had a
    /// turn.
    #[must_use]
    fn detach<W: World>(&mut self, world: &W) -> bool {
        broker::disconnect(world, &self.actor())
    }

    /// Releases everything that the client had, after its transport was lost.
    ///
    /// Returns whether everything was released. If not, call again after other connections had a
    /// turn.
    #[must_use]
    fn disconnect<W: World>(&mut self, world: &W) -> bool {
        self.close();
        broker::disconnect(world, &self.actor())
    }

    // For protocols.

    /// Replaces the access token that the client logged in with; returns whether the new one is
    /// accepted. The user must stay the same. A client that did not log in with a token keeps its
    /// identity.
    ///
    /// Returns `None` if the check takes longer, as [`Intake::verify`] does. If the new rights
    /// exclude this vhost, the connection is cut, as [`Inbound::phase`] then shows.
    fn renew_token<W: World>(&mut self, world: &W, token: &[u8]) -> Option<bool> {
        let Actor { identity, connection, .. } = self.actor();
        if identity.rights.valid_until().is_none() {
            return Some(true);
        }
        let user = identity.user.clone();
        let credentials = Credentials::password(Some(user.as_bytes()), Some(token));
        match self.intake_mut().verify(world, connection, credentials)? {
            // SECURITY AUTH-10: the token of another user needs a connection of its own.
            Verdict::Granted(identity) if identity.user == user => self.change_identity(world, identity),
            _ => return Some(false),
        }
        Some(true)
    }

    /// Makes a publishing frame wait.
    ///
    /// The frame is parked if reading on may free memory, and the frames behind it are read.
    /// Otherwise it stays in the input, and the next step is returned.
    #[cold]
    fn park<W: World>(
        &mut self,
        world: &W,
        session: SessionId,
        frame: impl FnOnce() -> Self::Parked,
    ) -> Option<Next> {
        if !self.does_more_than_publish(world) {
            return Some(pause(self));
        }
        self.intake_mut().parking.push(session, frame(), world.gauge());
        None
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
    if inbound.phase() == Phase::Open && world.room().must_settle_wait() && inbound.has_unsettled(world) {
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
    while !I::must_wait(world)
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
    line: &mut Line<I::Parked>,
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
        if I::must_wait(world) {
            return None;
        }
    }
    None
}

/// Pauses reading, so that the client is not blamed for silence.
fn pause<I: Inbound>(inbound: &mut I) -> Next {
    inbound.intake_mut().reading.pause();
    Next::Parked
}
