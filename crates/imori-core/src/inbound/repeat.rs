//! A publisher mostly repeats itself: frames whose heads are equal byte for byte need not be read again.
//!
//! A head that was seen twice in a row is remembered with its meaning and its route. Measured, that halves the
//! work for a small message. A protocol remembers only frames that do nothing but publish: no receipt, no
//! transaction, no inbox.

use crate::broker::{self, Actor, PublishReport, Repetition};
use crate::error::BrokerError;
use crate::id::ConnectionId;
use crate::message::{Address, Properties, Publication};
use crate::turn::Budget;
use crate::world::World;

/// Publishing frames of a connection, as far as they repeat each other.
#[derive(Debug, Default)]
pub struct Repeat {
    /// The last head, seen once.
    last: Vec<u8>,
    known: Option<Box<RepeatedHead>>,
}

/// A head that was seen again, and its meaning.
#[derive(Debug)]
pub struct RepeatedHead {
    /// Bytes of the frame before its body.
    pub head: Vec<u8>,
    /// Bytes of the body.
    pub body_len: usize,
    /// Bytes of the frame behind its body.
    pub end: &'static [u8],
    /// Properties of the message.
    pub properties: Properties,
    /// Header block of the message.
    pub text: Vec<u8>,
    /// Exchange and subject.
    pub address: Address,
    /// The connection that the message is not delivered to.
    pub not_to: Option<ConnectionId>,
    /// A queue is declared where there is none, or the client is told so, which takes reading the frame.
    pub declares: bool,
    /// Route and headers of the last message.
    pub repetition: Repetition,
}

/// Frames that were published without being read.
#[derive(Debug)]
pub struct Repeated<R> {
    /// Bytes of the frames.
    pub bytes: usize,
    /// Number of frames.
    pub frames: usize,
    /// Result of publishing them: of all together, or of each.
    pub report: R,
}

impl Repeat {
    /// Publishes the frames at the head of `input` that begin with the known head, as far as they are whole and the
    /// turn has room.
    ///
    /// `None` where there are no such frames, or where they have to be read after all: they have no queue, are not
    /// allowed, or have to wait.
    #[inline]
    pub fn publish<W: World>(
        &mut self,
        world: &W,
        actor: &Actor<'_>,
        input: &[u8],
        budget: &Budget,
    ) -> Option<Repeated<PublishReport>> {
        // What a full queue refused was published, and is perhaps a dead letter by now.
        let reaches = |report: &PublishReport| !report.is_unroutable();
        self.publish_run((world, actor), input, budget, reaches, |address, run, repetition| {
            broker::publish_again(world, actor, address, run, repetition)
        })
    }

    /// Publishes frames as [`Repeat::publish`] does, and gives the result of each.
    #[inline]
    pub fn publish_each<W: World>(
        &mut self,
        world: &W,
        actor: &Actor<'_>,
        input: &[u8],
        budget: &Budget,
    ) -> Option<Repeated<Vec<PublishReport>>> {
        let reaches = |reports: &Vec<PublishReport>| !reports.iter().any(PublishReport::is_unroutable);
        self.publish_run((world, actor), input, budget, reaches, |address, run, repetition| {
            broker::publish_each(world, actor, address, run, repetition)
        })
    }

    #[inline]
    fn publish_run<W: World, R>(
        &mut self,
        (world, actor): (&W, &Actor<'_>),
        input: &[u8],
        budget: &Budget,
        reaches: impl FnOnce(&R) -> bool,
        publish: impl FnOnce(&Address, &[Publication<'_>], &mut Repetition) -> Result<R, BrokerError>,
    ) -> Option<Repeated<R>> {
        let known = self.known.as_mut()?;
        let (first, mut rest) = known.body(input)?;
        if known.repetition.is_throttled(world, actor) {
            return None;
        }
        let (properties, text, not_to) = (&known.properties, &*known.text, known.not_to);
        let publication = |body| Publication::new(properties, text, body).not_to(not_to);
        let run_max = budget.messages_to(known.repetition.live_receivers());
        // All frames are as long as the first.
        let whole = if run_max > 1 { input.len() / (input.len() - rest.len()).max(1) } else { 1 };
        let mut run = Vec::with_capacity(whole.min(run_max).max(1));
        run.push(publication(first));
        while run.len() < run_max
            && let Some((body, after)) = known.body(rest)
        {
            run.push(publication(body));
            rest = after;
        }
        let (frames, bytes) = (run.len(), input.len() - rest.len());
        match publish(&known.address, &run, &mut known.repetition) {
            Ok(report) if !known.declares || reaches(&report) => Some(Repeated { bytes, frames, report }),
            _ => {
                self.known = None;
                None
            }
        }
    }

    /// Notes the head of a frame that was read and published. `read` gives its meaning once it comes a second time in
    /// a row; `None` where the frame does more than publish.
    #[inline]
    pub fn note(&mut self, head: &[u8], read: impl FnOnce() -> Option<RepeatedHead>) {
        if self.last == head {
            self.known = read().map(Box::new);
        } else {
            self.last.clear();
            self.last.extend_from_slice(head);
        }
    }

    /// Tells whether a head is known, so that frames like it need not be read.
    #[inline]
    pub fn is_known(&self) -> bool {
        self.known.is_some()
    }

    /// Forgets everything, because the client has changed its options.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

impl RepeatedHead {
    /// The body of the frame at the head of `input`, and the bytes behind the frame.
    #[inline]
    fn body<'a>(&self, input: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let (body, rest) = input.strip_prefix(&*self.head)?.split_at_checked(self.body_len)?;
        // Without its end it is no frame, which the decoder says better. An end has one or two bytes, so that a match
        // takes less than a call that compares memory.
        match (self.end, rest) {
            ([end], [byte, rest @ ..]) if end == byte => Some((body, rest)),
            ([end, last], [byte, next, rest @ ..]) if end == byte && last == next => Some((body, rest)),
            ([_] | [_, _], _) => None,
            (end, rest) => Some((body, rest.strip_prefix(end)?)),
        }
    }
}
