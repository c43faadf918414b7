//! The arrival of a message in a stream.

use crate::confirm::{Confirm, Level, Lsn, Progress};
use crate::entries::Entry;
use crate::id::DurableQueueId;
use crate::message::{Property, Publication, Rollup, StreamPublish};
use crate::name::Name;
use crate::policy::Overflow;
use crate::queue::{Arrival, Effects, Published, Queue};
use crate::stream::{Answer, Answered, Stream, StreamRefusal, header_bytes, stored_bytes};

impl Queue {
    /// The part that makes the queue a stream.
    pub fn stream(&self) -> Option<&Stream> {
        self.stream.as_deref()
    }

    /// Whether the queue is a stream.
    pub fn is_stream(&self) -> bool {
        self.stream.is_some()
    }

    /// Gives the next message of a durable stream its sequence number, before it is recorded; `None` for other queues.
    pub(crate) fn reserve_sequence(&mut self) -> Option<(DurableQueueId, u64)> {
        let sequence = self.stream.as_mut()?.reserve(self.next_sequence);
        self.durability.map(|durability| (durability.id, sequence))
    }

    /// The sequence number of the last message that the stream ever had; 0 if it had none.
    pub fn last_sequence(&self) -> u64 {
        self.next_sequence - 1
    }

    /// Checks whether a stream takes a message, which is not in it yet.
    ///
    /// # Errors
    /// [`StreamRefusal`].
    pub(crate) fn stream_admits(
        &self,
        publication: &Publication<'_>,
        subject: &[u8],
    ) -> Result<(), StreamRefusal> {
        let Some(stream) = &self.stream else { return Ok(()) };
        let (settings, index) = (&stream.settings, &stream.index);
        let none = StreamPublish::default();
        let asked = publication.asks().unwrap_or(&none);
        let view = publication.view();
        if settings.is_sealed {
            return Err(StreamRefusal::Sealed);
        }
        if asked.stream.is_some_and(|name| name != self.name().as_bytes()) {
            return Err(StreamRefusal::WrongStream);
        }
        if asked.rollup.is_some() && !settings.allows_rollup {
            return Err(StreamRefusal::RollupDenied);
        }
        if asked.ttl.is_some() && !settings.allows_ttl {
            return Err(StreamRefusal::TtlDenied);
        }
        let bytes = (header_bytes(&view) + view.body.len()) as u64;
        if settings.message_bytes_max.is_some_and(|max| bytes > max) {
            return Err(StreamRefusal::TooLarge);
        }
        if let Some((expected, of)) = asked.last_of_subject {
            let last = index.last_of(of.unwrap_or(subject)).unwrap_or(0);
            if last != expected {
                return Err(StreamRefusal::WrongLastOfSubject(last));
            }
        }
        if asked.last_sequence.is_some_and(|expected| expected != self.last_sequence()) {
            return Err(StreamRefusal::WrongLastSequence(self.last_sequence()));
        }
        if let Some(expected) = asked.last_id {
            let last = stream.last_id.as_deref().unwrap_or_default();
            if last != expected {
                return Err(StreamRefusal::WrongLastId(Box::from(last)));
            }
        }
        if self.settings.overflow == Overflow::DropHead {
            return Ok(());
        }
        let per_subject = settings.per_subject_max.filter(|_| settings.refuses_per_subject);
        let of_subject = index.count_of(subject);
        if per_subject.is_some_and(|max| of_subject >= max) {
            return Err(StreamRefusal::MaximumPerSubject);
        }
        // A message that replaces one of its subject does not make the stream longer.
        let replaces = settings.per_subject_max.is_some_and(|max| of_subject >= max);
        if self.settings.length_max.is_some_and(|max| index.len() >= max && !replaces) {
            return Err(StreamRefusal::MaximumMessages);
        }
        let stored = u64::from(stored_bytes(subject, &view));
        let replaced = index.first_of(subject).filter(|_| replaces).and_then(|first| index.size(first));
        let after = index.bytes() + stored - u64::from(replaced.unwrap_or(0)).min(index.bytes());
        if self.settings.length_bytes_max.is_some_and(|max| after > max) {
            return Err(StreamRefusal::MaximumBytes);
        }
        Ok(())
    }

    /// Puts a message, which was recorded, at the end of a stream, and removes what is then beyond its limits.
    pub(crate) fn append(
        &mut self,
        publication: &Publication<'_>,
        arrival: &Arrival<'_>,
        effects: &mut Effects,
    ) -> Published {
        self.activity.published += 1;
        let entry = self.entry(publication, arrival);
        let (sequence, subject) = (entry.envelope.sequence, arrival.address.subject());
        let level = self.durability.map_or(Level::Memory, |durability| durability.level);
        let confirm = if arrival.lsn == Lsn::NONE { Confirm::NOW } else { Confirm::of(level, arrival.lsn) };
        let asked = publication.asks();
        self.index(&entry);
        if let Some(stream) = &mut self.stream {
            stream.note(sequence, confirm, asked.and_then(|asked| asked.answer_to));
            stream.reach(Progress::default());
            for consumer in stream.consumers.values_mut() {
                if consumer.settings.filter.takes(subject) {
                    consumer.unread += 1;
                }
            }
        }
        self.gauge.add(Entry::CHARGE);
        self.ready_end = self.next_sequence;
        self.ready.push(entry);
        match asked.and_then(|asked| asked.rollup) {
            Some(Rollup::All) => self.remove_before(sequence, effects),
            Some(Rollup::Subject) => self.keep_of_subject(subject, 1, effects),
            None => {}
        }
        self.enforce_on(subject, effects);
        // Nobody may want it.
        self.retain_by_interest(sequence, effects);
        Published::Waiting
    }

    /// Answers the publisher of a message that the stream refuses.
    pub(crate) fn refuse_in_stream(&mut self, publication: &Publication<'_>, refusal: StreamRefusal) {
        let to = publication.asks().and_then(|asked| asked.answer_to);
        if let (Some(stream), Some(to)) = (&mut self.stream, to) {
            stream.answers.push(Answer { to: Name::new(to), what: Answered::Refused(refusal) });
        }
    }

    /// Answers the publisher of a message whose id the stream has had before.
    pub(crate) fn answer_duplicate(&mut self, to: &[u8], id: &[u8]) {
        let sequence = self.dedup.as_ref().map_or(0, |dedup| dedup.sequence_of(id));
        if let Some(stream) = &mut self.stream {
            stream.answer_duplicate(to, sequence);
        }
    }

    /// Adds a message to the index of its stream.
    pub(crate) fn index(&mut self, entry: &Entry) {
        let Some(stream) = &mut self.stream else { return };
        let envelope = &entry.envelope;
        let view = entry.message.view();
        let subject = envelope.address.subject.as_bytes();
        stream.index.insert(envelope.sequence, subject, stored_bytes(subject, &view));
        if stream.index.len() == 1 {
            stream.first_time = envelope.since;
        }
        stream.last_time = envelope.since;
        stream.last_id = view.property(Property::MessageId).map(Box::from);
        if envelope.expiration_ms.is_some()
            && let Some(due) = envelope.deadline(None)
        {
            stream.ttls.insert((due, envelope.sequence));
        }
    }

    /// The progress of the journal that a stream waits for, unless its cell is already asked to tell.
    pub(crate) fn stream_awaits(&mut self) -> Option<Confirm> {
        self.stream.as_mut()?.awaits()
    }

    /// Notes that the journal has progressed.
    pub(crate) fn stream_progressed(&mut self, progress: Progress) {
        if let Some(stream) = &mut self.stream {
            stream.progressed(progress);
        }
    }
}
