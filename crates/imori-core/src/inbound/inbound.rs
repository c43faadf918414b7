//! The trait that a protocol's connection implements.

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;

use crate::broker::{self, Actor};
use crate::id::ConnectionId;
use crate::outbound::{CutReason, Encoder};
use crate::time::Time;
use crate::turn::{Budget, ClientFacts, Next, Peer, Received, Refusal};
use crate::world::World;

/// The inbound half of a connection: bytes in, commands to the broker, answers into the outbound half.
///
/// An implementation reads no socket and no clock. One caller feeds it, one turn at a time, and does what
/// each [`Next`] asks for.
pub trait Inbound: Debug + Sized {
    /// Settings of a listener, which its connections share.
    type Settings;

    /// Memory that reading frames needs during a turn; a cell lends its own to each of its connections.
    type Scratch: Debug + Default;

    /// Makes the inbound half of a connection that was accepted at `now`.
    fn new(settings: Arc<Self::Settings>, id: ConnectionId, peer: Peer, now: Time) -> Self;

    /// Makes the encoder of a connection that has not logged in.
    fn encoder(settings: &Self::Settings) -> Box<dyn Encoder>;

    /// Names on whose behalf the broker acts.
    fn actor(&self) -> Actor<'_>;

    /// Speaks first, in a protocol where the broker does. The connection is registered by then.
    fn greet<W: World>(&mut self, _world: &W) {}

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
    ) -> Received;

    /// Says that the client has logged in.
    fn is_logged_in(&self) -> bool;

    /// Tells the monitor about the client's program.
    fn client(&self) -> ClientFacts {
        ClientFacts::default()
    }

    /// Gives the last refusal once, for the log.
    fn take_refusal(&mut self) -> Option<Refusal>;

    /// Says that frames are parked: they were read and wait for the end of an alarm or for a queue. Reading may
    /// go on meanwhile.
    fn has_parked(&self) -> bool;

    /// Bytes of the frames that are parked.
    fn parked_bytes(&self) -> usize;

    /// Says that a frame waits for a queue, parked or still in the input. The world's `relieve` then says when
    /// to call [`Inbound::relieved`].
    fn waits_for_queue(&self) -> bool;

    /// Says that parked frames wait for the end of an alarm. The caller then sees to it that
    /// [`Inbound::alarm_ended`] is called.
    fn waits_for_alarm(&self) -> bool {
        self.has_parked() && !self.waits_for_queue()
    }

    /// When [`Inbound::tick`] is to be called.
    fn next_deadline(&self) -> Option<Time>;

    /// Sees to the deadlines that have passed.
    fn tick<W: World>(&mut self, world: &W) -> Next;

    /// Replays what is parked, as an alarm of memory or disk is over. After [`Next::Again`] the caller comes back
    /// with [`Inbound::receive`] and the rest of the input.
    fn alarm_ended<W: World>(&mut self, world: &W) -> Next;

    /// Replays what is parked, as the queue that it waited for is shorter, or gone. [`Next`] means the same as
    /// after [`Inbound::alarm_ended`].
    fn relieved<W: World>(&mut self, world: &W) -> Next;

    /// Tells the client that the broker begins to stop. By default the connection is cut.
    fn stopping<W: World>(&mut self, world: &W) {
        world.with_outbound(self.actor().connection, |outbound| outbound.cut(CutReason::ShuttingDown));
    }

    /// Gives back deliveries, readers and inboxes of a client whose transport is gone, and keeps what it sent:
    /// parked frames and the input are worked off later. Says whether that was all; if not, the caller comes back
    /// after others had their turn.
    #[must_use]
    fn detach<W: World>(&mut self, world: &W) -> bool {
        broker::disconnect(world, &self.actor())
    }

    /// Gives back all that the client had, as its transport is gone. Says whether that was all; if not, the caller
    /// comes back after others had their turn.
    #[must_use]
    fn disconnect<W: World>(&mut self, world: &W) -> bool;
}
