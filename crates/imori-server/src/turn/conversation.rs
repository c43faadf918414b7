//! The inbound half of a connection as its task sees it, whatever protocol it speaks.

use std::sync::Arc;

use bytes::Bytes;
use imori_core::authorize::Renewal;
use imori_core::certificate::Certificate;
use imori_core::inbound::Inbound;
use imori_core::login::Verdict;
use imori_core::time::Time;
use imori_core::turn::SessionDetails;
use imori_core::turn::{ClientFacts, Next, Notice, Received};

use super::host::Host;
use super::link::Wire as _;
use crate::protocol::Protocol;

/// An inbound half that a [`Task`](super::Task) feeds. Each method does as the one of [`Inbound`] of its name.
///
/// The server's connections are of one type, [`Protocol`]. A protocol that is in no listener's table has a task all
/// the same, as the simulator's own have.
pub trait Conversation {
    /// Notes that the peer has begun TLS, and the certificate that it showed.
    fn secured(&mut self, certificate: Option<Arc<Certificate>>);

    /// Speaks first, in a protocol where the broker does.
    fn greet<H: Host>(&mut self, host: &H);

    /// Works through the frames at the head of `input`, for as long as a turn takes.
    fn receive<H: Host>(&mut self, host: &H, input: &[u8], shared: Option<&Bytes>) -> Received;

    /// Says that the client has logged in.
    fn is_logged_in(&self) -> bool;

    /// Tells the monitor about the client's program.
    fn client(&self) -> ClientFacts;

    /// Shows the sessions with their links; `None` in a protocol that has no links.
    fn details<H: Host>(&self, host: &H) -> Option<Vec<SessionDetails>>;

    /// Gives the last notice once, for the log.
    fn take_notice(&mut self) -> Option<Notice>;

    /// Says that frames are parked.
    fn has_parked(&self) -> bool;

    /// Bytes of the frames that are parked.
    fn parked_bytes(&self) -> usize;

    /// Says that a frame waits for a queue.
    fn waits_for_queue(&self) -> bool;

    /// Says that parked frames wait for the end of an alarm.
    fn waits_for_alarm(&self) -> bool;

    /// Says that a frame of so many bytes would be parked in an alarm, so that what comes behind it can be read.
    fn has_place_to_park<H: Host>(&self, host: &H, frame_bytes: usize) -> bool;

    /// Bytes that the messages will have of which a part has been taken, once `free_bytes` have come.
    fn gathered_bytes(&self, free_bytes: usize) -> usize;

    /// Notes that a part of a long frame came.
    fn came(&mut self, now: Time);

    /// Notes that nothing is read for now.
    fn pause(&mut self);

    /// When [`Conversation::tick`] is to be called.
    fn next_deadline(&self) -> Option<Time>;

    /// Sees to the deadlines that have passed.
    fn tick<H: Host>(&mut self, host: &H) -> Next;

    /// Replays what is parked, as an alarm is over.
    fn alarm_ended<H: Host>(&mut self, host: &H) -> Next;

    /// Replays what is parked, as the queue that it waited for is shorter, or gone.
    fn unthrottled<H: Host>(&mut self, host: &H) -> Next;

    /// Goes on with a login whose check took longer than a turn.
    fn verified(&mut self, verdict: Verdict) -> Next;

    /// Takes a change of a user, if that is the client's. Says whether the connection has ended.
    #[must_use]
    fn renew<H: Host>(&mut self, host: &H, renewal: &Renewal) -> bool;

    /// Tells the client that the broker begins to stop.
    fn stopping<H: Host>(&mut self, host: &H);

    /// Gives back what a client had whose transport is gone, and keeps what it sent. Says whether that was all.
    #[must_use]
    fn detach<H: Host>(&mut self, host: &H) -> bool;

    /// Gives back all that a client had whose transport is gone. Says whether that was all.
    #[must_use]
    fn disconnect<H: Host>(&mut self, host: &H) -> bool;
}

/// All methods but `receive`, as those of another type or trait.
macro_rules! as_of {
    ($($of:tt)+) => {
        fn greet<H: Host>(&mut self, host: &H) {
            $($of)+::greet(self, host);
        }

        fn secured(&mut self, certificate: Option<Arc<Certificate>>) {
            $($of)+::secured(self, certificate);
        }

        fn is_logged_in(&self) -> bool {
            $($of)+::is_logged_in(self)
        }

        fn client(&self) -> ClientFacts {
            $($of)+::client(self)
        }

        fn details<H: Host>(&self, host: &H) -> Option<Vec<SessionDetails>> {
            $($of)+::details(self, host)
        }

        fn take_notice(&mut self) -> Option<Notice> {
            $($of)+::take_notice(self)
        }

        fn has_parked(&self) -> bool {
            $($of)+::has_parked(self)
        }

        fn parked_bytes(&self) -> usize {
            $($of)+::parked_bytes(self)
        }

        fn waits_for_queue(&self) -> bool {
            $($of)+::waits_for_queue(self)
        }

        fn waits_for_alarm(&self) -> bool {
            $($of)+::waits_for_alarm(self)
        }

        fn has_place_to_park<H: Host>(&self, host: &H, frame_bytes: usize) -> bool {
            $($of)+::has_place_to_park(self, host, frame_bytes)
        }

        fn gathered_bytes(&self, free_bytes: usize) -> usize {
            $($of)+::gathered_bytes(self, free_bytes)
        }

        fn came(&mut self, now: Time) {
            $($of)+::came(self, now);
        }

        fn pause(&mut self) {
            $($of)+::pause(self);
        }

        fn next_deadline(&self) -> Option<Time> {
            $($of)+::next_deadline(self)
        }

        fn tick<H: Host>(&mut self, host: &H) -> Next {
            $($of)+::tick(self, host)
        }

        fn alarm_ended<H: Host>(&mut self, host: &H) -> Next {
            $($of)+::alarm_ended(self, host)
        }

        fn unthrottled<H: Host>(&mut self, host: &H) -> Next {
            $($of)+::unthrottled(self, host)
        }

        fn verified(&mut self, verdict: Verdict) -> Next {
            $($of)+::verified(self, verdict)
        }

        fn renew<H: Host>(&mut self, host: &H, renewal: &Renewal) -> bool {
            $($of)+::renew(self, host, renewal)
        }

        fn stopping<H: Host>(&mut self, host: &H) {
            $($of)+::stopping(self, host);
        }

        fn detach<H: Host>(&mut self, host: &H) -> bool {
            $($of)+::detach(self, host)
        }

        fn disconnect<H: Host>(&mut self, host: &H) -> bool {
            $($of)+::disconnect(self, host)
        }
    };
}

impl Conversation for Protocol {
    as_of!(Protocol);

    #[inline]
    fn receive<H: Host>(&mut self, host: &H, input: &[u8], shared: Option<&Bytes>) -> Received {
        if let Some((id, version)) = self.decide(host, input) {
            host.with_link(id, |link| link.wire.chosen(version));
        }
        let mut budget = host.cell_scratch().budget(host.now());
        let scratch = &mut host.cell_scratch().scratch.borrow_mut();
        Protocol::receive(self, host, scratch, input, shared, &mut budget)
    }
}

impl<I: Inbound> Conversation for I {
    as_of!(<I as Inbound>);

    fn receive<H: Host>(&mut self, host: &H, input: &[u8], shared: Option<&Bytes>) -> Received {
        let mut budget = host.cell_scratch().budget(host.now());
        Inbound::receive(self, host, &mut I::Scratch::default(), input, shared, &mut budget)
    }
}
