//! Publishes frames with repeated headers without parsing them again.
//!
//! A frame's head that arrives twice in a row is stored with its meaning and route, which by
//! measurement halves the work for a small message. A protocol stores only heads of frames that do
//! nothing but publish: no receipt, no transaction, no inbox.

use crate::broker::{self, Actor, PublishReport, Repetition};
use crate::error::BrokerError;
use crate::id::ConnectionId;
use crate::message::{Address, Properties, Publication};
use crate::turn::Budget;
use crate::world::World;

/// The repeated head of a connection's publishing frames, if any.
#[derive(Debug, Default)]
pub struct Repeat {
    /// The last head, seen once.
    last: Vec<u8>,
    known: Option<Box<RepeatedHead>>,
}

/// A head that was seen twice, and its meaning.
#[derive(Debug)]
pub struct RepeatedHead {
    /// The bytes of the frame before its body.
    pub head: Vec<u8>,
    /// The length of the body.
    pub body_len: usize,
    /// The bytes of the frame after its body.
    pub end: &'static [u8],
    /// The properties of the message.
    pub properties: Properties,
    /// The header block of the message.
    pub text: Vec<u8>,
    /// Exchange and subject.
    pub address: Address,
    /// The connection that does not receive the message.
    pub not_to: Option<ConnectionId>,
    /// Whether an unroutable message needs the frame itself, to declare the queue or to tell the
    /// client.
    pub declares: bool,
    /// The route and headers of the last message.
    pub repetition: Repetition,
}

/// The result of publishing frames without parsing them.
#[derive(Debug)]
pub struct Repeated<R> {
    /// The total length of the frames.
    pub bytes: usize,
    /// How many frames these bytes were, each a message.
    pub frames: usize,
    /// The report of publishing, for all together or for each.
    pub report: R,
}

impl Repeat {
    /// Publishes the frames at the start of `input` that have the stored head, as far as they are
    /// complete and the turn's budget allows.
    ///
    /// Returns `None` if there are none, or if they must be parsed after all: they are unroutable,
    /// not allowed, or have to wait.
    #[inline]
    pub fn publish<W: World>(
        &mut self,
        world: &W,
        actor: &Actor<'_>,
        input: &[u8],
        budget: &Budget,
    ) -> Option<Repeated<PublishReport>> {
        // A message that a full queue refused was routed, and may be a dead letter by now.
        let reaches = |report: &PublishReport| !report.is_unroutable();
        self.publish_run((world, actor), input, budget, reaches, |address, run, repetition| {
            broker::publish_again(world, actor, address, run, repetition)
        })
    }

    /// Publishes frames as [`Repeat::publish`] does, with one report for each.
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

    /// Notes the head of a frame that was parsed and published. `read` supplies its meaning when
    /// the head repeats; `None` if the frame does more than publish.
    #[inline]
    pub fn note(&mut self, head: &[u8], read: impl FnOnce() -> Option<RepeatedHead>) {
        if self.last == head {
            self.known = read().map(Box::new);
        } else {
            self.last.clear();
            self.last.extend_from_slice(head);
        }
    }

    /// Whether a head is stored, so that frames like it need no parsing.
    #[inline]
    pub fn is_known(&self) -> bool {
        self.known.is_some()
    }

    /// Clears the state, because the client has changed its options.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

impl RepeatedHead {
    /// The body of the frame at the start of `input`, and the bytes after the frame.
    #[inline]
    fn body<'a>(&self, input: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let (body, rest) = input.strip_prefix(&*self.head)?.split_at_checked(self.body_len)?;
        // Leave a frame without its end to the decoder, which reports it better. An end has one or
        // two bytes, so a match is cheaper than a call to compare memory.
        match (self.end, rest) {
            ([end], [byte, rest @ ..]) if end == byte => Some((body, rest)),
            ([end, last], [byte, next, rest @ ..]) if end == byte && last == next => Some((body, rest)),
            ([_] | [_, _], _) => None,
            (end, rest) => Some((body, rest.strip_prefix(end)?)),
        }
    }
}
