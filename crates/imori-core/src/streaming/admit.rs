//! The checks of a message before it enters a stream.

use crate::message::{MessageView, Publication, StreamPublish};
use crate::policy::Overflow;
use crate::queue::Queue;
use crate::stream::{Stream, StreamRefusal, StreamSettings, header_bytes, stored_bytes};

impl Queue {
    /// Checks whether a stream takes a message, which is not in it yet.
    ///
    /// # Errors
    /// [`StreamRefusal`].
    pub(crate) fn stream_admits(
        &self,
        publication: &Publication<'_>,
        subject: &[u8],
    ) -> Result<(), StreamRefusal> {
        self.stream_admits_behind(publication, subject, 0)
    }

    /// Checks a message as [`Queue::stream_admits`] does, behind this many of its batch that are not in the stream yet.
    ///
    /// # Errors
    /// [`StreamRefusal`].
    pub(crate) fn stream_admits_behind(
        &self,
        publication: &Publication<'_>,
        subject: &[u8],
        before: u64,
    ) -> Result<(), StreamRefusal> {
        let Some(stream) = &self.stream else { return Ok(()) };
        let none = StreamPublish::default();
        let asked = publication.asks().unwrap_or(&none);
        let view = publication.view();
        if stream.settings.is_sealed || stream.is_restoring {
            return Err(StreamRefusal::Sealed);
        }
        check_increment(&stream.settings, asked, !view.body.is_empty())?;
        self.check_place(stream, asked)?;
        check_schedule(stream, asked, subject)?;
        if asked.rollup.is_some() && !stream.settings.allows_rollup {
            return Err(StreamRefusal::RollupDenied);
        }
        if stream.settings.is_counter && asked.increment.is_none() {
            return Err(StreamRefusal::IncrementMissing);
        }
        self.check_expectations(stream, asked, subject)?;
        self.check_size(stream, &view, subject, before)
    }

    /// Checks that the publisher means this stream, and a message that it may have.
    fn check_place(&self, stream: &Stream, asked: &StreamPublish<'_>) -> Result<(), StreamRefusal> {
        if asked.stream.as_deref().is_some_and(|name| name != self.name().as_bytes()) {
            return Err(StreamRefusal::WrongStream);
        }
        if asked.has_ttl && !stream.settings.allows_ttl {
            return Err(StreamRefusal::TtlDenied);
        }
        Ok(())
    }

    /// Checks what the publisher expects of the last messages.
    fn check_expectations(
        &self,
        stream: &Stream,
        asked: &StreamPublish<'_>,
        subject: &[u8],
    ) -> Result<(), StreamRefusal> {
        let index = &stream.index;
        if let Some((expected, of)) = &asked.last_of_subject {
            let last = index.last_of(of.as_deref().unwrap_or(subject)).unwrap_or(0);
            if last != *expected {
                return Err(StreamRefusal::WrongLastOfSubject(last));
            }
        }
        if asked.last_sequence.is_some_and(|expected| expected != self.last_sequence()) {
            return Err(StreamRefusal::WrongLastSequence(self.last_sequence()));
        }
        if let Some(expected) = asked.last_id.as_deref() {
            let last = stream.last_id.as_deref().unwrap_or_default();
            if last != expected {
                return Err(StreamRefusal::WrongLastId(Box::from(last)));
            }
        }
        Ok(())
    }

    /// Checks the limits of a stream that refuses what is beyond them, and the size of the message.
    fn check_size(
        &self,
        stream: &Stream,
        view: &MessageView<'_>,
        subject: &[u8],
        before: u64,
    ) -> Result<(), StreamRefusal> {
        let (settings, index) = (&stream.settings, &stream.index);
        let bytes = (header_bytes(view) + view.body.len()) as u64;
        if settings.message_bytes_max.is_some_and(|max| bytes > max) {
            return Err(StreamRefusal::TooLarge);
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
        if self.settings.length_max.is_some_and(|max| index.len() + before >= max && !replaces) {
            return Err(StreamRefusal::MaximumMessages);
        }
        let stored = u64::from(stored_bytes(subject, view));
        let replaced = index.first_of(subject).filter(|_| replaces).and_then(|first| index.size(first));
        let after = index.bytes() + stored - u64::from(replaced.unwrap_or(0)).min(index.bytes());
        if self.settings.length_bytes_max.is_some_and(|max| after > max) {
            return Err(StreamRefusal::MaximumBytes);
        }
        Ok(())
    }
}

/// Checks an increment, which the stream has to count, and which expects nothing.
fn check_increment(
    settings: &StreamSettings,
    asked: &StreamPublish<'_>,
    has_body: bool,
) -> Result<(), StreamRefusal> {
    if asked.increment.is_none() {
        return Ok(());
    }
    let expects = asked.stream.is_some()
        || asked.last_id.is_some()
        || asked.last_sequence.is_some()
        || asked.last_of_subject.is_some();
    match () {
        () if !settings.is_counter => Err(StreamRefusal::IncrementDenied),
        () if has_body => Err(StreamRefusal::IncrementBody),
        () if expects || asked.rollup.is_some() => Err(StreamRefusal::IncrementInvalid),
        () => Ok(()),
    }
}

/// Checks a schedule, or the end of one, in a message to `subject`.
fn check_schedule(stream: &Stream, asked: &StreamPublish<'_>, subject: &[u8]) -> Result<(), StreamRefusal> {
    let settings = &stream.settings;
    if let Some(schedule) = &asked.schedule {
        if !settings.allows_schedules {
            return Err(StreamRefusal::ScheduleDenied);
        }
        if schedule.ttl.is_some() && !settings.allows_ttl {
            return Err(StreamRefusal::TtlDenied);
        }
        let is_own = |other: &[u8]| other != subject && settings.subjects.takes(other);
        if !is_own(schedule.target.as_bytes()) {
            return Err(StreamRefusal::ScheduleTarget);
        }
        if schedule.source.as_ref().is_some_and(|source| !is_own(source.as_bytes())) {
            return Err(StreamRefusal::ScheduleSource);
        }
    }
    let Some(ended) = asked.ended_schedule.as_deref() else { return Ok(()) };
    if ended == subject {
        return Err(StreamRefusal::NoSchedule);
    }
    if !settings.allows_schedules {
        return Err(StreamRefusal::ScheduleDenied);
    }
    let is_schedule =
        |sequence| stream.roles.scheduled(sequence).is_some_and(|scheduled| scheduled.due.is_some());
    match stream.index.last_of(ended) {
        Some(last) if !is_schedule(last) => Err(StreamRefusal::NoSchedule),
        _ => Ok(()),
    }
}
