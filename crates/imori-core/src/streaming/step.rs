//! What a consumer of a stream does next, decided from the state alone; `consume.rs` does it.

use super::remove::Whereabouts;
use crate::entries::{Entry, PageId};
use crate::name::Name;
use crate::queue::Queue;
use crate::stream::{NextMessage, Start, Stream, StreamConsumer};
use crate::time::Time;

/// Bytes of a delivery besides subject, headers and body, as a request's limit of bytes counts them.
const DELIVERY_BYTES: usize = 64;

/// How far a consumer got.
pub(super) enum Progress {
    /// It has nothing to do now.
    Idle,
    /// No message is left for it.
    AtEnd,
    /// It waits for a page.
    OnDisk(PageId),
    /// It has used up its share of the round.
    Busy,
}

/// The next step of a consumer.
pub(super) enum Step {
    /// Waits until something changes.
    Stop(Progress),
    /// Waits for acknowledgements, and asks its reader for them.
    AskForAcks,
    /// Passes over a message that was acknowledged before the last restart.
    SkipAcknowledged(u64),
    /// Passes over a message that is gone, or older than those it starts with.
    Skip(NextMessage, u64),
    /// Gives up on a message that was delivered as often as it may be.
    GiveUp(u64),
    /// Offers a message to the reader whose turn it is.
    Offer(Offer),
}

/// A message that a consumer may deliver.
pub(super) struct Offer {
    pub(super) next: NextMessage,
    pub(super) entry: Entry,
}

/// Who may have an offered message.
pub(super) enum Recipient {
    /// The readers of this subject.
    Readers(Name),
    /// Nobody reads.
    Nobody,
    /// Nobody before this time, by the consumer's pace.
    Later(Time),
    /// The request whose turn it is has no room for it.
    FullRequest,
}

impl Queue {
    /// Decides what a consumer does next.
    pub(super) fn next_step(&self, stream: &Stream, consumer: &StreamConsumer) -> Step {
        let has_reader = consumer.settings.push.is_some() || !consumer.requests.is_empty();
        if !has_reader || consumer.pace.as_ref().is_some_and(|pace| pace.is_stalled()) {
            return Step::Stop(Progress::Idle);
        }
        let Some(next) = consumer.next_message() else { return Step::AskForAcks };
        let is_visible = |sequence: &u64| *sequence < stream.visible_end;
        let sequence = match next {
            NextMessage::Redelivery(sequence) => Some(sequence),
            NextMessage::Initial(sequence) => Some(sequence).filter(is_visible),
            NextMessage::From(start) => {
                stream.index.next(&consumer.settings.filter, start).filter(is_visible)
            }
        };
        let Some(sequence) = sequence else { return Step::Stop(Progress::AtEnd) };
        if consumer.is_done(sequence) {
            return Step::SkipAcknowledged(sequence);
        }
        if matches!(next, NextMessage::Redelivery(_)) && consumer.is_spent(sequence) {
            return Step::GiveUp(sequence);
        }
        let entry = match self.whereabouts(sequence) {
            Whereabouts::Disk(page) => return Step::Stop(Progress::OnDisk(page)),
            Whereabouts::Memory => self.in_memory(sequence),
            Whereabouts::Nowhere => None,
        };
        match entry.map(|entry| Offer { next, entry }) {
            Some(offer) if !offer.is_before_start(consumer) => Step::Offer(offer),
            _ => Step::Skip(next, sequence),
        }
    }
}

impl Offer {
    pub(super) fn sequence(&self) -> u64 {
        self.entry.envelope.sequence
    }

    /// When the message was stored.
    pub(super) fn stored(&self) -> Time {
        self.entry.envelope.since
    }

    /// Its bytes, as limits of requests and rates count them.
    pub(super) fn bytes(&self) -> u64 {
        let view = self.entry.message.view();
        (view.text.len() + view.body.len() + DELIVERY_BYTES) as u64
    }

    /// Whether the message is older than those that the consumer starts with.
    fn is_before_start(&self, consumer: &StreamConsumer) -> bool {
        matches!(self.next, NextMessage::From(_))
            && matches!(consumer.settings.start, Start::Time(time) if self.stored() < time)
    }

    /// Decides who may have the message now.
    pub(super) fn recipient(&self, consumer: &StreamConsumer, now: Time) -> Recipient {
        let (bytes, request) = (self.bytes(), consumer.requests.front());
        if request.and_then(|request| request.bytes_left).is_some_and(|left| left < bytes) {
            return Recipient::FullRequest;
        }
        let pace = consumer.pace.as_ref();
        if let Some(due) = pace.and_then(|pace| pace.due(self.sequence(), bytes, self.stored(), now)) {
            return Recipient::Later(due);
        }
        match (&consumer.settings.push, request) {
            (Some(push), _) => Recipient::Readers(push.subject.clone()),
            (None, Some(request)) => Recipient::Readers(request.reply.clone()),
            (None, None) => Recipient::Nobody,
        }
    }
}

#[cfg(test)]
mod tests;
