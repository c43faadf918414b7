//! The arrival of a message in a stream.

use crate::confirm::{Confirm, Lsn, Progress};
use crate::entries::Entry;
use crate::message::{Property, Publication, Rollup};
use crate::name::Name;
use crate::queue::{Arrival, Effects, Published, Queue};
use crate::stream::{
    Answer, Answered, LengthLimits, Outgoing, Removals, Republished, Scheduled, Stream, StreamRefusal,
    stored_bytes,
};
use crate::time::Time;

impl Queue {
    /// The part that makes the queue a stream.
    pub fn stream(&self) -> Option<&Stream> {
        self.stream.as_deref()
    }

    /// Whether the queue is a stream.
    pub fn is_stream(&self) -> bool {
        self.stream.is_some()
    }

    /// Whether a stream appends a message apart from the other queues that get it.
    pub(crate) fn appends_apart(&self, publication: &Publication<'_>) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.appends_apart(publication.asks()))
    }

    /// Gives the next message its sequence number, before it is recorded, and decides which messages leave with it.
    /// `None` for a queue that is no stream.
    pub(crate) fn reserve_sequence(&mut self, publication: &Publication<'_>, subject: &[u8]) -> Option<u64> {
        let limits = LengthLimits {
            messages: self.settings.length_max,
            bytes: self.settings.length_bytes_max,
            per_subject: self.stream.as_ref()?.settings.per_subject_max,
        };
        let bytes = stored_bytes(subject, publication.viewed());
        let (next, stream) = (self.next_sequence, self.stream.as_mut()?);
        Some(stream.arrivals.add((next, &stream.index), limits, (subject, bytes), publication.asks()))
    }

    /// Gives up the sequence numbers of messages that will not come.
    pub(crate) fn give_up_sequences(&mut self) {
        if let Some(stream) = &mut self.stream {
            stream.arrivals.give_up();
        }
    }

    /// The messages that leave with the message that was given the last number, if any do.
    pub(crate) fn reserved_removals(&self) -> Option<&Removals> {
        self.stream.as_ref()?.arrivals.removals_of_last()
    }

    /// The sequence number of the last message that the stream ever had; 0 if it had none.
    pub fn last_sequence(&self) -> u64 {
        self.next_sequence - 1
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
        let level = self.level();
        let lsn = publication.through().unwrap_or(arrival.lsn);
        let confirm = if arrival.lsn == Lsn::NONE { Confirm::NOW } else { Confirm::of(level, lsn) };
        self.note_republished(&entry, arrival.now);
        self.index(&entry);
        let Some(stream) = &mut self.stream else { return Published::Waiting };
        if let Some(schedule) = publication.asks().and_then(|asked| asked.schedule.clone()) {
            let due = schedule.times.next(arrival.now, arrival.now);
            let scheduled = Scheduled { schedule, last: arrival.now, due, recorded: arrival.lsn };
            stream.roles.schedule(sequence, scheduled);
        }
        let receipt = publication.receipt();
        stream.note(sequence, confirm, publication.answer_to().map(|to| (to, receipt)));
        stream.reach(Progress::default());
        for consumer in stream.consumers.values_mut() {
            if consumer.settings.filter.takes(subject) {
                consumer.unread += 1;
            }
        }
        let arriving = stream.arrivals.enter();
        self.gauge.add(Entry::CHARGE);
        self.ready_end = self.next_sequence;
        self.ready.push(entry);
        self.remove_for(sequence, subject, &arriving.removals);
        if let Some(stream) = &mut self.stream {
            stream.arrivals.reuse(arriving);
        }
        // Nobody may want it. The consumers of a restored stream come after its messages.
        if !self.is_restoring() {
            self.retain_by_interest(sequence, effects);
        }
        Published::Waiting
    }

    /// Removes the messages that leave with the arrival of another, whose record tells of them.
    fn remove_for(&mut self, sequence: u64, subject: &[u8], removals: &Removals) {
        let Removals { rollup, ended_schedule, dropped } = removals;
        match rollup {
            Some(Rollup::All) => self.forget_before(sequence, None),
            Some(Rollup::Subject) => self.forget_before(sequence, Some(subject)),
            None => {}
        }
        if let Some(ended) = ended_schedule {
            self.forget_before(sequence, Some(ended));
        }
        for sequence in dropped {
            self.forget(*sequence);
        }
    }

    /// The subject under which a stream stores a message; `None` for its own.
    pub(crate) fn stored_as(&self, subject: &[u8], now: Time) -> Option<Vec<u8>> {
        let map = self.stream.as_ref()?.settings.stored_as.as_ref()?;
        map.map(subject, any_number(now))
    }

    /// Notes that a message, which is not in the index yet, is to be published again.
    fn note_republished(&mut self, entry: &Entry, now: Time) {
        let Some(stream) = &mut self.stream else { return };
        let map = stream.settings.republished_to.as_ref().filter(|_| !stream.is_restoring);
        let Some(map) = map else { return };
        let subject = entry.envelope.address.subject.as_bytes();
        if let Some(to) = map.map(subject, any_number(now)) {
            let before = stream.index.last_of(subject).unwrap_or(0);
            stream.republished.push_back(Republished { entry: entry.clone(), to: Name::new(&to), before });
        }
    }

    /// Adds a message that a stream has for other queues.
    pub(crate) fn add_outgoing(&mut self, outgoing: Option<Outgoing>) {
        if let Some(stream) = &mut self.stream {
            stream.outbox.extend(outgoing);
        }
    }

    /// Takes the messages that a stream has for other queues, to be published once it is unlocked.
    pub(crate) fn take_outgoing(&mut self) -> Vec<Outgoing> {
        self.stream.as_mut().map(|stream| std::mem::take(&mut stream.outbox)).unwrap_or_default()
    }

    /// Answers the publisher of a message of a batch that is not committed.
    pub(crate) fn answer_staged(&mut self, to: &[u8]) {
        if let Some(stream) = self.stream.as_mut().filter(|stream| !stream.settings.is_silent) {
            stream.answers.push(Answer { to: Name::new(to), what: Answered::Staged });
        }
    }

    /// Answers the publisher of a message that the stream refuses.
    pub(crate) fn refuse_in_stream(&mut self, publication: &Publication<'_>, refusal: StreamRefusal) {
        if let (Some(stream), Some(to)) = (&mut self.stream, publication.answer_to()) {
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
        if let Some(ms) = envelope.expiration_ms {
            stream.note_ttl(envelope.sequence, envelope.since, ms);
        }
        stream.roles.note(envelope.sequence, view.properties);
        if view.properties.is_count && stream.settings.is_counter {
            stream.note_count(subject, envelope.sequence, Box::from(view.body));
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

/// A number for subjects with a random part.
fn any_number(now: Time) -> u32 {
    u32::try_from(now.0 % u64::from(u32::MAX)).unwrap_or_default()
}
