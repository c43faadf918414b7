//! How a protocol writes deliveries.

use std::fmt;

use crate::delivery::{About, Delivery};
use crate::message::Publication;
use crate::name::Name;

/// Why the broker ends a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CutReason {
    /// It reads more slowly than others write, and the limit of unsent bytes is reached.
    TooSlow {
        /// The limit, in bytes.
        unsent_max: usize,
    },
    /// It takes nothing of what waits for it, while memory is short.
    Stalled {
        /// The bytes that wait.
        unsent: usize,
        /// For how long it has taken nothing, in seconds.
        seconds: u64,
    },
    /// A queue that it reads from was deleted.
    QueueDeleted {
        /// The queue.
        queue: Name,
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
            CutReason::QueueDeleted { queue } => {
                write!(f, "queue `{queue}` was deleted; subscribe again to declare it")
            }
            CutReason::ShuttingDown => f.write_str("the broker is shutting down; connect again later"),
            CutReason::Fault => f.write_str("an internal fault ended this connection; see the broker's log"),
        }
    }
}

/// What follows when the broker takes a reader's queue away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterCancel {
    /// The connection goes on without the reader.
    GoOn,
    /// The connection ends.
    End,
}

/// Writes a protocol's deliveries. A delivery is a head, which names the reader and the
/// number; headers, which are the same for all receivers of one kind; and the body.
pub trait Encoder: Send {
    /// Encoders of one kind write the same headers.
    fn kind(&self) -> u16;

    /// Tells whether some messages have no form in its protocol; [`Encoder::has_form`] says which.
    fn is_choosy(&self) -> bool {
        false
    }

    /// Tells whether a live delivery has a form in its protocol, which depends on nothing but what
    /// [`Encoder::headers`] depends on.
    fn has_form(&self, _: &Delivery<'_>) -> bool {
        true
    }

    /// Writes what is particular to one receiver. `label` is the reader's, as the protocol made it;
    /// `number` is that of the delivery in its session.
    fn head(
        &mut self,
        out: &mut Vec<u8>,
        label: &[u8],
        number: u64,
        needs_settle: bool,
        delivery: &Delivery<'_>,
    );

    /// Writes what depends on nothing but the address, the headers, the length of the body, the deaths
    /// and whether it is redelivered.
    fn headers(&mut self, out: &mut Vec<u8>, delivery: &Delivery<'_>);

    /// Writes the rest.
    fn body(&mut self, out: &mut Vec<u8>, delivery: &Delivery<'_>);

    /// Writes the first deliveries of messages that differ in nothing but their bodies, which are of one length.
    /// The first of them has the number `first`; `headers` are what [`Encoder::headers`] writes for each.
    fn run(
        &mut self,
        out: &mut Vec<u8>,
        label: &[u8],
        first: u64,
        run: &[Publication<'_>],
        about: About<'_>,
        headers: &[u8],
    ) {
        for (publication, number) in run.iter().zip(first..) {
            let delivery = about.fresh(publication.view());
            self.head(out, label, number, false, &delivery);
            out.extend_from_slice(headers);
            self.body(out, &delivery);
        }
    }

    /// Says that the broker took a reader's queue away.
    fn cancelled(&mut self, out: &mut Vec<u8>, label: &[u8], queue: &Name) -> AfterCancel;

    /// Says why the connection ends.
    fn cut(&mut self, out: &mut Vec<u8>, reason: &CutReason);
}

/// The headers of a message's deliveries, kept while the message goes to many, or while its
/// publisher sends others like it.
#[derive(Debug, Default)]
pub struct SharedHeaders {
    receivers: usize,
    is_kept: bool,
    kind: Option<u16>,
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

    pub(super) fn append(&mut self, encoder: &mut dyn Encoder, out: &mut Vec<u8>, delivery: &Delivery<'_>) {
        match self.of(encoder, delivery) {
            Some(headers) => out.extend_from_slice(headers),
            None => encoder.headers(out, delivery),
        }
    }

    /// The headers as this encoder writes them, if they are kept.
    pub(super) fn of(&mut self, encoder: &mut dyn Encoder, delivery: &Delivery<'_>) -> Option<&[u8]> {
        if !self.is_kept {
            return None;
        }
        let kind = encoder.kind();
        if self.kind != Some(kind) {
            // Where the encoder panics, nobody gets what it has written by then.
            self.kind = None;
            self.bytes.clear();
            encoder.headers(&mut self.bytes, delivery);
            self.kind = Some(kind);
        }
        Some(&self.bytes)
    }
}
