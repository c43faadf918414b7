//! The interface by which a protocol encodes deliveries.

use std::fmt;

use crate::delivery::{About, Delivery};
use crate::id::SessionId;
use crate::message::Publication;
use crate::name::Name;

/// The reason why the broker ends a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CutReason {
    /// The client reads more slowly than others publish, and reached the limit of unsent bytes.
    TooSlow {
        /// The limit, in bytes.
        unsent_max: usize,
    },
    /// The client reads none of its waiting bytes while memory is short.
    Stalled {
        /// The waiting bytes.
        unsent: usize,
        /// Seconds without any progress.
        seconds: u64,
    },
    /// The client does not continue a long frame while other connections wait for its memory.
    Unfinished {
        /// Seconds with hardly any progress.
        seconds: u64,
    },
    /// A queue that the client reads was deleted.
    QueueDeleted {
        /// The name that the queue had.
        queue: Name,
    },
    /// An operator closed the connection.
    ClosedByOperator {
        /// The operator's reason.
        reason: Box<str>,
    },
    /// The user was deleted, or lost the right to enter the vhost.
    Revoked {
        /// The name of the user of the connection.
        user: Name,
    },
    /// The access token of the login has expired.
    TokenExpired {
        /// The name of the user whom the token was for.
        user: Name,
    },
    /// The broker is shutting down.
    ShuttingDown,
    /// The broker's own code failed on this connection.
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

/// Whether a connection survives when the broker takes a reader's queue away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterCancel {
    /// The connection continues without the reader.
    GoOn,
    /// The connection ends.
    End,
}

/// The reader or inbox of a delivery, as the encoded frame has to name it.
#[derive(Debug, Clone, Copy)]
pub struct Recipient<'a> {
    /// The session that numbers the delivery.
    pub session: SessionId,
    /// The label that the protocol chose when the receiver subscribed or asked for the inbox.
    pub label: &'a [u8],
    /// The delivery's number in the session, which rises by one.
    pub number: u64,
    /// The receiver will settle the delivery.
    pub settles: bool,
}

/// A reader that has received every message in its queue.
#[derive(Debug, Clone, Copy)]
pub struct Drained<'a> {
    /// The session that numbers its deliveries.
    pub session: SessionId,
    /// The reader's label, as in its deliveries.
    pub label: &'a [u8],
    /// The reader's queue.
    pub queue: &'a Name,
    /// The serial number after the last delivery of the granted credit.
    pub used: u32,
    /// The serial numbers of the session's next frames.
    pub frames: FrameNumbers,
}

/// Encodes a protocol's deliveries to one connection.
///
/// One call writes all frames of a delivery, so that the encoder alone decides on their order, lengths and
/// channels. The part that is equal for all receivers is written once: the encoder takes it from
/// [`SharedHeaders`].
pub trait Encoder: Send {
    /// Whether the protocol has no form for some messages; [`Encoder::has_form`] says which.
    fn is_choosy(&self) -> bool {
        false
    }

    /// Measures written bytes, in an encoder that keeps deliveries elsewhere and writes tickets for them: the limits of
    /// unsent bytes and the memory gauge then count the deliveries behind the tickets. `None` if the written bytes are
    /// the deliveries.
    fn weight(&self) -> Option<fn(&[u8]) -> usize> {
        None
    }

    /// Whether the protocol has a form for a live delivery. The answer may depend only on the inputs of a delivery's
    /// shared part.
    fn has_form(&self, _: &Delivery<'_>) -> bool {
        true
    }

    /// Appends one delivery. A part taken from `shared` may depend only on the encoder's kind, the address,
    /// the headers, the length of the body, the deaths and whether the delivery is a redelivery.
    fn deliver(
        &mut self,
        out: &mut Vec<u8>,
        recipient: &Recipient<'_>,
        delivery: &Delivery<'_>,
        shared: &mut SharedHeaders,
    );

    /// The bytes after a body of this length, if a delivery consists of headers, body and these bytes, and the
    /// deliveries of a run differ only in bodies and in the fields that [`Encoder::renumber`] changes; otherwise
    /// `None`.
    fn run_end(&self, _body_len: usize) -> Option<&'static [u8]> {
        None
    }

    /// Turns the headers of a delivery into the headers of the next delivery in its run; `false` if these would be
    /// longer.
    fn renumber(&mut self, _headers: &mut [u8], _recipient: &Recipient<'_>) -> bool {
        false
    }

    /// Appends deliveries of messages that differ only in their bodies, which have the same length, until
    /// `room` bytes are appended; returns the number of deliveries. `recipient` has the number of the first;
    /// `shared` serves all of them.
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
        // The other deliveries take about as many bytes, so their room is reserved once.
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

    /// The first frame of `written`, for sessions with counted frames.
    fn next_frame(&self, written: &[u8]) -> FramePart {
        FramePart { bytes: written.len(), is_counted: true }
    }

    /// Tells the client that a reader has received every message in its queue and gave up its remaining credit.
    fn drained(&mut self, _out: &mut Vec<u8>, _drained: &Drained<'_>) {}

    /// Answers publishes of a session, after [`Outbound::confirm`] and [`Outbound::refuse`]. A protocol that
    /// answers with text of its own uses [`Outbound::promise`], and writes nothing here.
    ///
    /// [`Outbound::confirm`]: super::Outbound::confirm
    /// [`Outbound::refuse`]: super::Outbound::refuse
    /// [`Outbound::promise`]: super::Outbound::promise
    fn confirmed(&mut self, _out: &mut Vec<u8>, _confirmed: Confirmed) {}

    /// Tells the client that the broker took a reader's queue away.
    fn cancelled(&mut self, out: &mut Vec<u8>, label: &[u8], queue: &Name) -> AfterCancel;

    /// Tells the client that another of its readers, with the same name, has replaced this one.
    fn taken_over(&mut self, _out: &mut Vec<u8>, _label: &[u8]) {}

    /// Tells the client why the connection ends.
    fn cut(&mut self, out: &mut Vec<u8>, reason: &CutReason);
}

/// The encoder of a connection without a protocol yet, which writes nothing.
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
    /// The number of the next frame from the peer, as last told to the peer.
    pub awaited: u32,
}

/// The length of one frame that an encoder wrote, and whether it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FramePart {
    /// Length in bytes.
    pub bytes: usize,
    /// The session's window counts the frame.
    pub is_counted: bool,
}

/// The answer to one publish, or to consecutive ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confirmed {
    /// The session that published.
    pub session: SessionId,
    /// The number of the first publish; the protocol counts in each session.
    pub first: u64,
    /// The number of the last publish.
    pub last: u64,
    /// All publishes before the first have been answered, if the protocol counts from 1 without gaps.
    pub is_in_order: bool,
    /// The broker refuses responsibility for the publishes.
    pub is_refused: bool,
}

/// A kind of encoder. Encoders of the same kind write the same shared part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncoderKind(u16);

/// The encoder kinds of one protocol, as a range of numbers that no other protocol uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncoderKinds {
    first: u16,
}

impl EncoderKinds {
    /// Number of kinds that one protocol can have.
    pub const MAX: u8 = u8::MAX;

    /// The kinds of the protocol with this number; two protocols never share one.
    pub const fn of_protocol(number: u8) -> EncoderKinds {
        EncoderKinds { first: (number as u16) << 8 }
    }

    /// The kind with this number within the protocol.
    pub const fn kind(self, kind: u8) -> EncoderKind {
        EncoderKind(self.first | kind as u16)
    }
}

/// The part of a message's deliveries that is equal for all receivers of one kind. It is kept while the
/// message goes to many receivers, or while its publisher sends similar messages.
#[derive(Debug, Default)]
pub struct SharedHeaders {
    receivers: usize,
    is_kept: bool,
    kind: Option<EncoderKind>,
    bytes: Vec<u8>,
}

impl SharedHeaders {
    /// Creates headers for a message with this many receivers; with one receiver nothing is kept.
    pub fn for_receivers(receivers: usize) -> SharedHeaders {
        SharedHeaders { receivers, is_kept: receivers > 1, ..SharedHeaders::default() }
    }

    /// Creates headers for messages with one address that differ only in the bytes of their bodies.
    pub fn for_repetition(receivers: usize) -> SharedHeaders {
        SharedHeaders { receivers, is_kept: true, ..SharedHeaders::default() }
    }

    /// Whether the message has several receivers.
    pub(super) fn is_shared(&self) -> bool {
        self.receivers > 1
    }

    /// Appends the shared part to `out`; `write` writes it on first use.
    #[inline]
    pub fn append(&mut self, kind: EncoderKind, out: &mut Vec<u8>, write: impl Fn(&mut Vec<u8>)) {
        match self.part(kind, &write) {
            Some(part) => out.extend_from_slice(part),
            None => write(out),
        }
    }

    /// The shared part for encoders of this kind, for callers that need its length first. `None` if nothing
    /// is kept, and the caller has to write it.
    #[inline]
    pub fn part(&mut self, kind: EncoderKind, write: impl FnOnce(&mut Vec<u8>)) -> Option<&[u8]> {
        if !self.is_kept {
            return None;
        }
        if self.kind != Some(kind) {
            // If `write` panics, its partial output must never be used.
            self.kind = None;
            self.bytes.clear();
            write(&mut self.bytes);
            self.kind = Some(kind);
        }
        Some(&self.bytes)
    }
}
