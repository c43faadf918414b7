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

/// The inbound half of a connection: bytes in, commands to the broker, answers into the outbound half.
///
/// An implementation reads no socket and no clock. One caller feeds it, one turn at a time, and does what
/// each [`Next`] asks for. The first group of methods is the protocol's; the second, which the caller
/// uses, has bodies that hold for every protocol.
pub trait Inbound: Debug + Sized {
    /// Settings of a listener, which its connections share.
    type Settings;

    /// Memory that reading frames needs during a turn; a cell lends its own to each of its connections.
    type Scratch: Debug + Default;

    /// A parked frame. Its bytes are charged to the memory gauge.
    type Parked: AsRef<[u8]> + Debug;

    /// Makes the inbound half of a connection that was accepted at `now`.
    fn new(settings: Arc<Self::Settings>, id: ConnectionId, peer: Peer, now: Time) -> Self;

    /// Makes the encoder of a connection that has not logged in.
    fn encoder(settings: &Self::Settings) -> Box<dyn Encoder>;

    /// State that every protocol's connection has.
    fn intake(&self) -> &Intake<Self::Parked>;

    /// State that every protocol's connection has.
    fn intake_mut(&mut self) -> &mut Intake<Self::Parked>;

    /// Names on whose behalf the broker acts.
    fn actor(&self) -> Actor<'_>;

    /// How far the conversation has come.
    fn phase(&self) -> Phase;

    /// Ends the conversation: drops what is parked, and nothing that comes later counts.
    fn close(&mut self);

    /// Takes another identity of the same user.
    fn set_identity(&mut self, identity: Identity);

    /// Tells the client of readers that it has no longer, as its rights have changed.
    fn readers_revoked<W: World>(&mut self, world: &W, revoked: Vec<Revoked>);

    /// Says that the client has logged in.
    fn is_logged_in(&self) -> bool;

    /// Tells the monitor about the client's program.
    fn client(&self) -> ClientFacts {
        ClientFacts::default()
    }

    /// Shows the sessions with their links; `None` in a protocol that has no links.
    fn details<W: World>(&self, _world: &W) -> Option<Vec<SessionDetails>> {
        None
    }

    /// Notes that the peer has begun TLS, and the certificate that it showed.
    fn secured(&mut self, certificate: Option<Arc<Certificate>>) {
        let peer = &mut self.intake_mut().peer;
        peer.is_encrypted = true;
        peer.may_send_password = true;
        peer.certificate = certificate;
    }

    /// Speaks first, in a protocol where the broker does. The connection is registered by then.
    fn greet<W: World>(&mut self, _world: &W) {}

    /// Takes the next frame: obeys it, parks it or refuses it.
    fn take<W: World>(
        &mut self,
        world: &W,
        scratch: &mut Self::Scratch,
        unread: Unread<'_>,
        budget: &mut Budget,
    ) -> Taken;

    /// Obeys a frame that was parked.
    fn replay<W: World>(
        &mut self,
        world: &W,
        scratch: &mut Self::Scratch,
        frame: &Self::Parked,
        budget: &mut Budget,
    ) -> Performed;

    /// Notes that nothing of a session is parked any more.
    fn replayed(&mut self, session: SessionId);

    /// Does what was gathered from several frames, at the end of a turn.
    fn finish_turn<W: World>(&mut self, _world: &W) {}

    /// Says that parked frames have to stay where they are.
    #[inline]
    fn must_wait<W: World>(world: &W) -> bool {
        world.is_alarmed() || world.room().is_alarmed()
    }

    /// Says that reading on may free memory, as the client has more to say than publishes.
    fn does_more_than_publish<W: World>(&self, world: &W) -> bool {
        let reads = |outbound: &mut crate::outbound::Outbound| {
            outbound.readers_len() > 0 || outbound.unsettled_len() > 0
        };
        world.with_outbound(self.actor().connection, reads) == Some(true)
    }

    /// Says that the client has deliveries that it may settle.
    fn has_unsettled<W: World>(&self, world: &W) -> bool {
        world.with_outbound(self.actor().connection, |outbound| outbound.unsettled_len() > 0) == Some(true)
    }

    /// Ends the connection of a client that has not logged in in time.
    fn login_timed_out<W: World>(&mut self, _world: &W) {
        self.close();
    }

    /// When [`Inbound::keep_alive`] is to be called.
    fn keepalive_deadline(&self) -> Option<Time>;

    /// Sees to the protocol's own deadlines: shows that the broker is there, asks whether the client is.
    fn keep_alive<W: World>(&mut self, world: &W);

    /// Tells the client that the broker begins to stop. By default the connection is cut.
    fn stopping<W: World>(&mut self, world: &W) {
        world.with_outbound(self.actor().connection, |outbound| outbound.cut(CutReason::ShuttingDown));
    }

    // From here on: the caller's side.

    /// Works through the frames at the head of `input`, which begins where the last call's `consumed` ended.
    ///
    /// `shared`, when given, holds exactly `input`, so that a large body can be kept without a copy.
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

    /// Goes on with a login whose check took longer than a turn. After [`Next::Again`] the caller comes back with
    /// [`Inbound::receive`] and the rest of the input.
    fn verified(&mut self, verdict: Verdict) -> Next {
        if self.phase() == Phase::Closed {
            return Next::Close;
        }
        self.intake_mut().decided(verdict);
        Next::Again
    }

    /// Takes a change of a user, if that is the client's. Readers that are not allowed any more end, and what is parked
    /// is decided by the new rights. The connection ends where the user may not be in its vhost any more.
    ///
    /// Returns whether it has ended; [`Next::Close`] follows.
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

    /// Takes another identity of the client's user. The connection ends where that may not be in its vhost.
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

    /// Ends the connection, as its user was taken away or may not be in its vhost any more.
    fn revoke<W: World>(&mut self, world: &W) {
        let user = self.actor().identity.user.clone();
        self.end_login(world, "login revoked", CutReason::Revoked { user });
    }

    /// Ends the connection of a client that may not go on.
    fn end_login<W: World>(&mut self, world: &W, kind: &'static str, reason: CutReason) {
        self.intake_mut().notice = Some(Notice::refused(kind, reason.to_string()));
        world.with_outbound(self.actor().connection, |outbound| outbound.cut(reason));
        self.close();
    }

    /// When the token of the client's login runs out, if there is one.
    fn token_ends(&self) -> Option<Time> {
        self.actor().identity.rights.valid_until()
    }

    /// Gives the last notice once, for the log.
    fn take_notice(&mut self) -> Option<Notice> {
        self.intake_mut().take_notice()
    }

    /// Says that frames are parked: they were read and wait for the end of an alarm or for a queue. Reading may
    /// go on meanwhile.
    fn has_parked(&self) -> bool {
        self.intake().parking.has_parked()
    }

    /// Bytes of the frames that are parked.
    fn parked_bytes(&self) -> usize {
        self.intake().parking.bytes()
    }

    /// Says that a frame waits for a queue, parked or still in the input. The world's `unthrottle` then says when
    /// to call [`Inbound::unthrottled`].
    fn waits_for_queue(&self) -> bool {
        self.intake().parking.waits_for_queue()
    }

    /// Says that parked frames wait for the end of an alarm. The caller then sees to it that
    /// [`Inbound::alarm_ended`] is called.
    fn waits_for_alarm(&self) -> bool {
        self.intake().parking.waits_for_alarm()
    }

    /// Says that a frame of so many bytes would be parked in an alarm, so that the frames behind it can be read. Those
    /// may free memory.
    fn has_place_to_park<W: World>(&self, world: &W, frame_bytes: usize) -> bool {
        self.intake().has_place_for(frame_bytes) && self.does_more_than_publish(world)
    }

    /// Bytes that the messages will have of which the protocol has taken a part and awaits the rest. Nothing is said of
    /// them before `free_bytes` have come.
    #[inline]
    fn gathered_bytes(&self, free_bytes: usize) -> usize {
        let _ = free_bytes;
        0
    }

    /// Notes that a part of a long frame came, which is not shown to [`Inbound::receive`] before it is whole.
    fn came(&mut self, now: Time) {
        self.intake_mut().reading.received(now);
    }

    /// Notes that nothing is read for now, as there is no memory for a long frame.
    fn pause(&mut self) {
        self.intake_mut().reading.pause();
    }

    /// When [`Inbound::tick`] is to be called.
    fn next_deadline(&self) -> Option<Time> {
        if self.phase() == Phase::Closed {
            return None;
        }
        let login_until = self.intake().reading.login_until();
        [login_until, self.keepalive_deadline(), self.token_ends()].into_iter().flatten().min()
    }

    /// Sees to the deadlines that have passed.
    fn tick<W: World>(&mut self, world: &W) -> Next {
        if self.phase() == Phase::Closed {
            return Next::Close;
        }
        if self.token_ends().is_some_and(|end| end <= world.now()) {
            let user = self.actor().identity.user.clone();
            self.end_login(world, "token expired", CutReason::TokenExpired { user });
            return Next::Close;
        }
        // SECURITY LIM-02: whoever sends a byte now and then is no exception.
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

    /// Replays the parked frames, as an alarm of memory or disk is over. After [`Next::Again`] the caller comes back
    /// with [`Inbound::receive`] and the rest of the input.
    fn alarm_ended<W: World>(&mut self, world: &W) -> Next {
        if self.waits_for_queue() && !self.waits_for_alarm() {
            // There may be input behind what waits that need not wait.
            return if self.intake().reading.is_paused() { Next::Parked } else { Next::Again };
        }
        self.intake_mut().reading.received(world.now());
        let next = replay_all(self, world, &mut Self::Scratch::default(), &mut Budget::default());
        next.unwrap_or(Next::Again)
    }

    /// Replays the parked frames, as the queue that they waited for is shorter, or gone. The result means the same as
    /// that of [`Inbound::alarm_ended`].
    fn unthrottled<W: World>(&mut self, world: &W) -> Next {
        self.intake_mut().parking.queue_is_shorter();
        self.alarm_ended(world)
    }

    /// Gives back deliveries, readers and inboxes of a client whose transport is gone. Parked frames and the input
    /// stay, and are worked off later.
    ///
    /// Returns whether that was all. If not, the caller comes back after others had their turn.
    #[must_use]
    fn detach<W: World>(&mut self, world: &W) -> bool {
        broker::disconnect(world, &self.actor())
    }

    /// Gives back all that the client had, as its transport is gone.
    ///
    /// Returns whether that was all. If not, the caller comes back after others had their turn.
    #[must_use]
    fn disconnect<W: World>(&mut self, world: &W) -> bool {
        self.close();
        broker::disconnect(world, &self.actor())
    }

    // From here on: used by the protocol.

    /// Takes the successor of the token that the client logged in by; says whether that is good. Its user stays the same. A
    /// client that did not log in by a token stays what it is, whatever it sends.
    ///
    /// `None` where the check takes longer, as of [`Intake::verify`]. With rights that end in this vhost the connection is
    /// cut, and [`Inbound::phase`] says so.
    fn renew_token<W: World>(&mut self, world: &W, token: &[u8]) -> Option<bool> {
        let Actor { identity, connection, .. } = self.actor();
        if identity.rights.valid_until().is_none() {
            return Some(true);
        }
        let user = identity.user.clone();
        let credentials = Credentials::password(Some(user.as_bytes()), Some(token));
        match self.intake_mut().verify(world, connection, credentials)? {
            // SECURITY AUTH-10: somebody else's token is good for a connection of its own.
            Verdict::Granted(identity) if identity.user == user => self.change_identity(world, identity),
            _ => return Some(false),
        }
        Some(true)
    }

    /// Lets a publishing frame wait.
    ///
    /// The frame is parked where reading on may free memory; the frames behind it are then read. Otherwise it stays
    /// in the input, and the next step is returned.
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

/// How far a conversation has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Frames are taken.
    Open,
    /// The client has said goodbye, and parked frames are left. Nothing else is taken.
    Leaving,
    /// Nothing is taken any more.
    Closed,
}

/// Result of taking the next frame of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// So many bytes of the input are done with.
    Bytes(usize),
    /// The next frame is not whole.
    Incomplete {
        /// Bytes of the whole frame, where that is known.
        frame_bytes: Option<usize>,
    },
    /// The next frame stays in the input, and this follows.
    Left(Next),
}

/// Result of obeying a frame.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Performed {
    /// The frame is done with.
    #[default]
    Done,
    /// A part of it was done. The frame is to be obeyed again after others had their turns.
    Partly,
    /// Nothing was done, as a queue is too long. The world's `unthrottle` says when to try again.
    Held,
}

/// Takes frames until the turn is over, the input is, or something has to wait.
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

/// Obeys what is parked as far as alarms and queues allow; `None` where reading goes on.
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
        // While it is out, what its frames are answered need not wait behind it.
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
            // An alarm has begun meanwhile.
            false => return Some(pause(inbound)),
        }
    }
    let waits = inbound.has_parked() && (inbound.phase() == Phase::Leaving || inbound.intake().is_full());
    waits.then(|| pause(inbound))
}

/// Obeys the parked frames of a session until one has to wait.
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

/// Has the connection not read for now, so that silence is not the client's.
fn pause<I: Inbound>(inbound: &mut I) -> Next {
    inbound.intake_mut().reading.pause();
    Next::Parked
}
