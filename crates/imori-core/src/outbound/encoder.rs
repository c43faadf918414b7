//! How a protocol writes deliveries.

use std::fmt;

use crate::delivery::{About, Delivery};
use crate::id::SessionId;
use crate::message::Publication;
use crate::name::Name;

/// Why the broker ends a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CutReason {
    /// The connection reads more slowly than others write, and reached its limit of unsent bytes.
    TooSlow {
        /// The limit, in bytes.
        unsent_max: usize,
    },
    /// The connection takes none of its waiting bytes, while memory is short.
    Stalled {
        /// The bytes that wait.
        unsent: usize,
        /// For how long it has taken nothing, in seconds.
        seconds: u64,
    },
    /// The connection sends no more of a long frame, while others wait for the memory of it.
    Unfinished {
        /// For how long it has sent nearly nothing, in seconds.
        seconds: u64,
    },
    /// A queue that it reads from was deleted.
    QueueDeleted {
        /// The queue.
        queue: Name,
    },
    /// An operator closed it.
    ClosedByOperator {
        /// The operator's reason.
        reason: Box<str>,
    },
    /// Its user was taken away, or the right to enter the vhost.
    Revoked {
        /// The user.
        user: Name,
    },
    /// The token that it logged in by has run out.
    TokenExpired {
        /// The user.
        user: Name,
    },
    /// The broker stops.
    ShuttingDown,
    /// A fault in the broker's own code was met on this connection.
    Fault,
}

impl fmt::Display for CutReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CutReason::TooSlow { unsent_max } => write!(
                f,
                "more than {unsent_max} bytes wait to be read by this connection; read faster, or use a queue with a prefetch count"
            ),
            CutReason::Stalled { unsent, seconds } => write!(
                f,
                "memory is short, {unsent} bytes wait for this connection and it has read none for {seconds} s; keep reading, or use a queue with a prefetch count"
            ),
            CutReason::Unfinished { seconds } => write!(
                f,
                "next to nothing came of a large message for {seconds} s, and others wait for the memory that is kept for it; send it without pauses, or in smaller ones"
            ),
            CutReason::QueueDeleted { queue } => {
                write!(f, "queue `{queue}` was deleted; subscribe again to declare it")
            }
            CutReason::ClosedByOperator { reason } => f.write_str(reason),
            CutReason::Revoked { user } => {
                write!(
                    f,
                    "the login of user `{user}` was revoked; log in again or ask for the right to this vhost"
                )
            }
            CutReason::TokenExpired { user } => {
                write!(f, "the access token of user `{user}` has expired; log in with a new one")
            }
            CutReason::ShuttingDown => f.write_str("the broker is shutting down; connect again later"),
            CutReason::Fault => f.write_str("an internal fault ended this connection; see the broker's log"),
        }
    }
}

/// The consequence for a connection when the broker takes a reader's queue away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterCancel {
    /// The connection goes on without the reader.
    GoOn,
    /// The connection ends.
    End,
}

/// The reader or inbox that a delivery goes to, as its frame has to name it.
#[derive(Debug, Clone, Copy)]
pub struct Recipient<'a> {
    /// The session in which the delivery is numbered.
    pub session: SessionId,
    /// The receiver's own bytes, made by its protocol when it subscribed or asked for the inbox.
    pub label: &'a [u8],
    /// The delivery's number in the session, rising by one.
    pub number: u64,
    /// The receiver settles the delivery.
    pub settles: bool,
}

/// A reader that got all that there is in its queue.
#[derive(Debug, Clone, Copy)]
pub struct Drained<'a> {
    /// The session in which its deliveries are numbered.
    pub session: SessionId,
    /// The reader's own bytes, as in its deliveries.
    pub label: &'a [u8],
    /// Its queue.
    pub queue: &'a Name,
    /// The serial number behind the credit that it had.
    pub used: u32,
    /// The serial numbers of the session's frames.
    pub frames: FrameNumbers,
}

/// Writes a protocol's deliveries to one connection.
///
/// One call writes all frames of a delivery, so that the encoder alone decides their order, their lengths
/// in front and the channel in each of them.
/// The part that is equal for all receivers is written once: the encoder takes it from [`SharedHeaders`].
pub trait Encoder: Send {
    /// Tells whether some messages have no form in its protocol; [`Encoder::has_form`] says which.
    fn is_choosy(&self) -> bool {
        false
    }

    /// Tells whether a live delivery has a form in its protocol, which depends on nothing but what the
    /// shared part of a delivery depends on.
    fn has_form(&self, _: &Delivery<'_>) -> bool {
        true
    }

    /// Appends one delivery. A part taken from `shared` may depend on nothing but the kind of the encoder,
    /// the address, the headers, the length of the body, the deaths and whether it is redelivered.
    fn deliver(
        &mut self,
        out: &mut Vec<u8>,
        recipient: &Recipient<'_>,
        delivery: &Delivery<'_>,
        shared: &mut SharedHeaders,
    );

    /// The bytes behind bodies of this length, where a delivery is headers, the body and these, and a run differs in no
    /// more than bodies and what [`Encoder::renumber`] changes. `None` where it differs in more.
    fn run_end(&self, _body_len: usize) -> Option<&'static [u8]> {
        None
    }

    /// Turns the headers of a delivery into those of the next one of its run; false where these are longer.
    fn renumber(&mut self, _headers: &mut [u8], _recipient: &Recipient<'_>) -> bool {
        false
    }

    /// Appends deliveries of messages that differ in nothing but their bodies, which are of one length, until
    /// `room` bytes are appended; returns how many deliveries that was.
    /// `recipient` has the number of the first; `shared` serves all of them.
    fn deliver_run(
        &mut self,
        out: &mut Vec<u8>,
        mut recipient: Recipient<'_>,
        run: &[Publication<'_>],
        about: About<'_>,
        shared: &mut SharedHeaders,
        room: usize,
    ) -> usize {
        let start = out.len();
        let Some((first, rest)) = run.split_first() else { return 0 };
        self.deliver(out, &recipient, &about.fresh(first.view()), shared);
        // The others are about as long, so that the room for them is made once.
        out.reserve(((out.len() - start) * rest.len()).min(room));
        let body_len = first.view().body.len();
        let end = self.run_end(body_len);
        let behind_headers = body_len + end.map_or(0, <[u8]>::len);
        let mut headers = start..out.len().saturating_sub(behind_headers);
        for (delivered, publication) in (1..).zip(rest) {
            let next = out.len();
            if next - start >= room {
                return delivered;
            }
            recipient.number += 1;
            let view = publication.view();
            if let Some(end) = end {
                out.extend_from_within(headers.clone());
                if out.get_mut(next..).is_some_and(|headers| self.renumber(headers, &recipient)) {
                    out.extend_from_slice(view.body);
                    out.extend_from_slice(end);
                    continue;
                }
                out.truncate(next);
            }
            self.deliver(out, &recipient, &about.fresh(view), shared);
            headers = next..out.len().saturating_sub(behind_headers);
        }
        run.len()
    }

    /// The first of the frames that it wrote, where the frames of a session are counted.
    fn next_frame(&self, written: &[u8]) -> FramePart {
        FramePart { bytes: written.len(), is_counted: true }
    }

    /// Says that a reader got all that there is, and gave up the credit that it had left.
    fn drained(&mut self, _out: &mut Vec<u8>, _drained: &Drained<'_>) {}

    /// Answers one publish, or several of a session at once, as [`Outbound::confirm`] and [`Outbound::refuse`] tell.
    /// A protocol whose answers are text of its own promises with [`Outbound::promise`] and has nothing to write here.
    ///
    /// [`Outbound::confirm`]: super::Outbound::confirm
    /// [`Outbound::refuse`]: super::Outbound::refuse
    /// [`Outbound::promise`]: super::Outbound::promise
    fn confirmed(&mut self, _out: &mut Vec<u8>, _confirmed: Confirmed) {}

    /// Says that the broker took a reader's queue away.
    fn cancelled(&mut self, out: &mut Vec<u8>, label: &[u8], queue: &Name) -> AfterCancel;

    /// Says that a reader's client has the reader elsewhere now, under the same name.
    fn taken_over(&mut self, _out: &mut Vec<u8>, _label: &[u8]) {}

    /// Says why the connection ends.
    fn cut(&mut self, out: &mut Vec<u8>, reason: &CutReason);
}

/// The encoder of a connection that has no protocol yet, to which nothing is sent.
#[derive(Debug, Clone, Copy)]
pub struct Mute;

impl Encoder for Mute {
    fn deliver(
        &mut self,
        _out: &mut Vec<u8>,
        _recipient: &Recipient<'_>,
        _delivery: &Delivery<'_>,
        _shared: &mut SharedHeaders,
    ) {
    }

    fn cancelled(&mut self, _out: &mut Vec<u8>, _label: &[u8], _queue: &Name) -> AfterCancel {
        AfterCancel::End
    }

    fn cut(&mut self, _out: &mut Vec<u8>, _reason: &CutReason) {}
}

/// The serial numbers of a session's next frames.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct FrameNumbers {
    /// The number of the next frame to the peer.
    pub next: u32,
    /// The number of the next frame from the peer, as the peer was told last.
    pub awaited: u32,
}

/// A frame among those that an encoder wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FramePart {
    /// Its bytes.
    pub bytes: usize,
    /// The window of its session counts it.
    pub is_counted: bool,
}

/// The answer to one publish, or to several whose numbers follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confirmed {
    /// The session that published.
    pub session: SessionId,
    /// The number of the first publish, counted by the protocol in each session.
    pub first: u64,
    /// The number of the last publish.
    pub last: u64,
    /// All publishes before the first are answered, where the protocol counts from 1 and leaves no number out.
    pub is_in_order: bool,
    /// The broker does not take responsibility.
    pub is_refused: bool,
}

/// A kind of encoders: those of one kind write the same shared part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncoderKind(u16);

/// The kinds of encoders of one protocol: consecutive numbers that no other protocol of the broker has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncoderKinds {
    first: u16,
}

impl EncoderKinds {
    /// Kinds that one protocol can tell apart.
    pub const MAX: u8 = u8::MAX;

    /// The kinds of the protocol with this number; protocols with different numbers share none.
    pub const fn of_protocol(number: u8) -> EncoderKinds {
        EncoderKinds { first: (number as u16) << 8 }
    }

    /// The kind with this number within the protocol.
    pub const fn kind(self, kind: u8) -> EncoderKind {
        EncoderKind(self.first | kind as u16)
    }
}

/// The part of a message's deliveries that is equal for all receivers of one kind, kept while the message goes
/// to many, or while its publisher sends others like it.
#[derive(Debug, Default)]
pub struct SharedHeaders {
    receivers: usize,
    is_kept: bool,
    kind: Option<EncoderKind>,
    bytes: Vec<u8>,
}

impl SharedHeaders {
    /// For a message that goes to this many receivers; for one, nothing is kept.
    pub fn for_receivers(receivers: usize) -> SharedHeaders {
        SharedHeaders { receivers, is_kept: receivers > 1, ..SharedHeaders::default() }
    }

    /// For messages of one address that are alike but for their bodies' bytes.
    pub fn for_repetition(receivers: usize) -> SharedHeaders {
        SharedHeaders { receivers, is_kept: true, ..SharedHeaders::default() }
    }

    /// Tells whether a message has more than one receiver.
    pub(super) fn is_shared(&self) -> bool {
        self.receivers > 1
    }

    /// Appends the shared part, which `write` writes, to `out`.
    #[inline]
    pub fn append(&mut self, kind: EncoderKind, out: &mut Vec<u8>, write: impl Fn(&mut Vec<u8>)) {
        match self.part(kind, &write) {
            Some(part) => out.extend_from_slice(part),
            None => write(out),
        }
    }

    /// The shared part as encoders of this kind write it, for a caller that has to know its length first. `None`
    /// where it is not kept, and the caller writes it itself.
    #[inline]
    pub fn part(&mut self, kind: EncoderKind, write: impl FnOnce(&mut Vec<u8>)) -> Option<&[u8]> {
        if !self.is_kept {
            return None;
        }
        if self.kind != Some(kind) {
            // Where the encoder panics, nobody gets the half that it has written by then.
            self.kind = None;
            self.bytes.clear();
            write(&mut self.bytes);
            self.kind = Some(kind);
        }
        Some(&self.bytes)
    }
}
