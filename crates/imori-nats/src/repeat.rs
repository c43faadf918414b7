//! A publisher mostly repeats itself: a PUB whose control line is that of the one before need not be read again.
//!
//! A line that was seen twice in a row is remembered with the route it took and the headers that its
//! receivers got, and those that follow each other are published together. It is left out where more
//! belongs to a message than its body: a reply, headers, an answer.

use imori_core::broker::{self, PublishReport, Repetition};
use imori_core::message::{Address, BODY_SHARED_MIN, Head, Publication};
use imori_core::outbound::INBOX_PREFIX;
use imori_core::turn::Budget;
use imori_core::world::World;

use crate::address::{address, has_empty_token, is_literal};
use crate::operation::Publish;
use crate::session::Session;
use crate::text::PLAIN;

/// Bytes of a line that is remembered. A longer one is read each time.
const LINE_BYTES_MAX: usize = 512;

/// What is remembered of the last PUBs.
#[derive(Debug, Default)]
pub(crate) struct Repeat {
    /// The last line, seen once.
    last: Vec<u8>,
    known: Option<Box<Known>>,
}

/// What was published without being read.
#[derive(Debug)]
pub(crate) struct Sent {
    /// Bytes of the operations.
    pub(crate) bytes: usize,
    /// How many operations that were.
    pub(crate) operations: usize,
    /// What became of them.
    pub(crate) report: PublishReport,
}

/// A line that was seen again, and what was read of it.
#[derive(Debug)]
struct Known {
    /// The control line with its end.
    line: Vec<u8>,
    body_len: usize,
    address: Address,
    head: Head,
    repetition: Repetition,
}

impl Repeat {
    /// Publishes the operations that the input begins with, as far as their lines are the known one, they are
    /// whole and the turn has room for them. None where there are no such operations, or where they have to
    /// be read after all, as they are refused or have to wait.
    #[inline]
    pub(crate) fn send<W: World>(
        &mut self,
        session: &Session,
        world: &W,
        input: &[u8],
        budget: &Budget,
    ) -> Option<Sent> {
        let known = self.known.as_mut()?;
        let (first, mut rest) = known.body(input)?;
        if known.repetition.is_pressed(world) {
            return None;
        }
        let not_to = (!session.options.echo).then_some(session.connection);
        let mut run = vec![Publication::new(&known.head, b"", first).not_to(not_to)];
        let run_max = budget.messages_to(known.repetition.live_receivers());
        while run.len() < run_max
            && let Some((body, after)) = known.body(rest)
        {
            run.push(Publication::new(&known.head, b"", body).not_to(not_to));
            rest = after;
        }
        let (operations, bytes) = (run.len(), input.len() - rest.len());
        match broker::publish_again(world, &session.actor(), &known.address, &run, &mut known.repetition) {
            Ok(report) => Some(Sent { bytes, operations, report }),
            Err(_) => {
                self.known = None;
                None
            }
        }
    }

    /// Notes a message that was read and published.
    #[inline]
    pub(crate) fn note(&mut self, session: &Session, publish: &Publish<'_>, bytes: &[u8]) {
        let is_plain = publish.headers.is_none() && publish.reply.is_none() && !session.options.verbose;
        if !is_plain || publish.payload.len() >= BODY_SHARED_MIN {
            return;
        }
        let line_len = bytes.len().saturating_sub(publish.payload.len() + 2);
        let line = bytes.get(..line_len).unwrap_or_default();
        if line.len() > LINE_BYTES_MAX {
            return;
        }
        if self.last == line {
            self.known = Known::read(session, publish, line).map(Box::new);
        } else {
            self.last.clear();
            self.last.extend_from_slice(line);
        }
    }

    /// Forgets everything, because the client has changed its options.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Known {
    /// The body of the operation that the input begins with, and what follows the operation.
    #[inline]
    fn body<'a>(&self, input: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let (body, rest) = input.strip_prefix(&*self.line)?.split_at_checked(self.body_len)?;
        // Without its end it is no operation, which the decoder says better.
        Some((body, rest.strip_prefix(b"\r\n")?))
    }

    #[cold]
    fn read(session: &Session, publish: &Publish<'_>, line: &[u8]) -> Option<Self> {
        let (exchange, subject) = address(publish.subject);
        // A pedantic client is told of each wrong subject, nobody hears one with an empty token, and an
        // inbox has no route to remember.
        let is_told = session.options.pedantic && !is_literal(publish.subject);
        if is_told || has_empty_token(publish.subject) || subject.starts_with(INBOX_PREFIX) {
            return None;
        }
        Some(Self {
            line: line.to_vec(),
            body_len: publish.payload.len(),
            address: Address::new(&exchange, &subject),
            head: Head::new(session.settings.origins.origin(PLAIN)),
            repetition: Repetition::default(),
        })
    }
}
