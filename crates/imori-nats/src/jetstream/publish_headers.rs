//! The headers of a publish that JetStream reads.

use imori_core::message::ScheduleTimes;
use imori_streams::duration::Nanos;
use imori_streams::error::ApiError;
use imori_streams::subject::is_valid_literal;

use crate::codec::headers::Headers;
use crate::codec::number::parse_u64;
use crate::jetstream::account::API_LEVEL;
use crate::jetstream::batch::AtomicBatch;
use crate::jetstream::schedule;

/// The headers of a publish that JetStream reads. The first of several with one name counts, and an
/// empty value is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublishHeaders<'a> {
    /// The id by which the stream recognizes a duplicate.
    pub message_id: Option<&'a [u8]>,
    /// The stream that the publisher expects.
    pub expected_stream: Option<&'a [u8]>,
    /// The id of the last message that the publisher expects.
    pub expected_last_message_id: Option<&'a [u8]>,
    /// The last sequence that the publisher expects. A value that is no number is one that no
    /// stream has.
    pub expected_last_sequence: Option<u64>,
    /// The last sequence of the subject that the publisher expects, likewise.
    pub expected_last_subject_sequence: Option<u64>,
    /// The subject of that sequence, instead of the message's.
    pub expected_last_subject: Option<&'a [u8]>,
    /// The earlier messages that this one replaces.
    pub rollup: Option<Rollup>,
    /// Time to live of the message.
    pub ttl: Option<Ttl>,
    /// Increment of a counter: an integer of any length, with or without a sign.
    pub increment: Option<&'a str>,
    /// The place in an atomic batch.
    pub batch: Option<AtomicBatch<'a>>,
    /// Schedule on which the message is published again.
    pub schedule: Option<ScheduledPublish<'a>>,
    /// The subject of the schedule that this message ends.
    pub ended_schedule: Option<&'a str>,
}

/// The earlier messages that a message replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rollup {
    /// Earlier messages of the same subject.
    Subject,
    /// All earlier messages of the stream.
    All,
}

/// Time to live of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ttl {
    /// A number of seconds, which overrides the stream's limit.
    Seconds(u64),
    /// For ever, whatever the limit of the stream is.
    Never,
}

/// A message that the stream publishes on a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledPublish<'a> {
    /// The times.
    pub times: ScheduleTimes,
    /// The subject to publish to.
    pub target: &'a str,
    /// The subject whose last message is published instead of this one.
    pub source: Option<&'a str>,
    /// Time to live of the published message.
    pub ttl: Option<Ttl>,
    /// The published message replaces those of its subject.
    pub is_rollup: bool,
}

/// The values as they are.
#[derive(Debug, Default)]
struct Values<'a> {
    message_id: Option<&'a [u8]>,
    expected_stream: Option<&'a [u8]>,
    expected_last_message_id: Option<&'a [u8]>,
    expected_last_sequence: Option<&'a [u8]>,
    expected_last_subject_sequence: Option<&'a [u8]>,
    expected_last_subject: Option<&'a [u8]>,
    rollup: Option<&'a [u8]>,
    ttl: Option<&'a [u8]>,
    increment: Option<&'a [u8]>,
    stream_source: Option<&'a [u8]>,
    required_level: Option<&'a [u8]>,
    batch_id: Option<&'a [u8]>,
    batch_sequence: Option<&'a [u8]>,
    batch_commit: Option<&'a [u8]>,
    schedule: Option<&'a [u8]>,
    schedule_time_zone: Option<&'a [u8]>,
    schedule_ttl: Option<&'a [u8]>,
    schedule_rollup: Option<&'a [u8]>,
    schedule_target: Option<&'a [u8]>,
    schedule_source: Option<&'a [u8]>,
    schedule_next: Option<&'a [u8]>,
    scheduler: Option<&'a [u8]>,
}

impl<'a> PublishHeaders<'a> {
    /// Reads a header block.
    ///
    /// # Errors
    ///
    /// Returns nats-server's error for the first value that is wrong in itself. nats-server names
    /// a feature that is disabled before a value that is wrong; here the value comes first.
    pub fn parse(block: &'a [u8]) -> Result<Self, ApiError> {
        let values = Values::of(block);
        let batch = match given(values.batch_id) {
            None => None,
            Some(id) => Some(AtomicBatch::parse(id, given(values.batch_sequence), values.batch_commit)?),
        };
        if batch.is_some() {
            check_level(given(values.required_level))?;
        }
        let increment = match given(values.increment) {
            None => None,
            Some(value) => Some(integer(value).ok_or(ApiError::MESSAGE_INCREMENT_INVALID)?),
        };
        let sequence = |value| given(value).map(|value| parse_u64(value).unwrap_or(u64::MAX));
        let expected_last_subject_sequence = sequence(values.expected_last_subject_sequence);
        let expected_last_subject = given(values.expected_last_subject);
        if expected_last_subject.is_some() && expected_last_subject_sequence.is_none() {
            return Err(ApiError::STREAM_EXPECTED_LAST_SEQUENCE_PER_SUBJECT_INVALID);
        }
        let schedule = values.scheduled_publish()?;
        let ended_schedule = values.ended_schedule()?;
        if given(values.stream_source).is_some() {
            return Err(ApiError::MESSAGE_SOURCE_HEADER_NOT_ALLOWED);
        }
        let rollup = values.rollup(schedule.is_some())?;
        let ttl = ttl(given(values.ttl)).map_err(|NotATtl| ApiError::MESSAGE_TTL_INVALID)?;
        Ok(Self {
            message_id: given(values.message_id),
            expected_stream: given(values.expected_stream),
            expected_last_message_id: given(values.expected_last_message_id),
            expected_last_sequence: sequence(values.expected_last_sequence),
            expected_last_subject_sequence,
            expected_last_subject,
            rollup,
            ttl,
            increment,
            batch,
            schedule,
            ended_schedule,
        })
    }
}

/// The headers of a stored message that its stream goes on to read. Values that are wrong are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredHeaders<'a> {
    /// Time to live of the message.
    pub ttl: Option<Ttl>,
    /// Schedule on which the message is published again.
    pub schedule: Option<ScheduledPublish<'a>>,
}

impl<'a> StoredHeaders<'a> {
    /// Reads a header block.
    pub fn parse(block: &'a [u8]) -> Self {
        let values = Values::of(block);
        Self {
            ttl: ttl(given(values.ttl)).ok().flatten(),
            schedule: values.scheduled_publish().ok().flatten(),
        }
    }
}

/// The time to live of what a schedule publishes, as its publisher wrote it.
pub fn schedule_ttl(block: &[u8]) -> Option<&[u8]> {
    given(Values::of(block).schedule_ttl)
}

/// Whether a message tells that its subject was deleted: a marker, or a purge of a key-value bucket.
pub fn is_marker(block: &[u8]) -> bool {
    Headers::new(block).any(|(name, value)| {
        name == b"Nats-Marker-Reason" && !value.is_empty() || name == b"KV-Operation" && value == b"PURGE"
    })
}

/// Checks the level of the API that a request requires, by the header block of the request.
///
/// # Errors
///
/// Returns 10185 for a level that this server does not have.
pub fn check_required_level(block: &[u8]) -> Result<(), ApiError> {
    check_level(given(Values::of(block).required_level))
}

fn check_level(value: Option<&[u8]>) -> Result<(), ApiError> {
    match value.map(|value| str::from_utf8(value).ok()?.parse::<i64>().ok()) {
        None => Ok(()),
        Some(Some(level)) if level <= i64::from(API_LEVEL) => Ok(()),
        Some(_) => Err(ApiError::REQUIRED_API_LEVEL),
    }
}

impl<'a> Values<'a> {
    fn of(block: &'a [u8]) -> Self {
        let mut values = Self::default();
        for (name, value) in Headers::new(block) {
            if let Some(place) = name.strip_prefix(b"Nats-").and_then(|name| values.place(name))
                && place.is_none()
            {
                *place = Some(value);
            }
        }
        values
    }

    fn place(&mut self, name: &[u8]) -> Option<&mut Option<&'a [u8]>> {
        Some(match name {
            b"Msg-Id" => &mut self.message_id,
            b"Expected-Stream" => &mut self.expected_stream,
            b"Expected-Last-Msg-Id" => &mut self.expected_last_message_id,
            b"Expected-Last-Sequence" => &mut self.expected_last_sequence,
            b"Expected-Last-Subject-Sequence" => &mut self.expected_last_subject_sequence,
            b"Expected-Last-Subject-Sequence-Subject" => &mut self.expected_last_subject,
            b"Rollup" => &mut self.rollup,
            b"TTL" => &mut self.ttl,
            b"Incr" => &mut self.increment,
            b"Stream-Source" => &mut self.stream_source,
            b"Required-Api-Level" => &mut self.required_level,
            b"Batch-Id" => &mut self.batch_id,
            b"Batch-Sequence" => &mut self.batch_sequence,
            b"Batch-Commit" => &mut self.batch_commit,
            b"Schedule" => &mut self.schedule,
            b"Schedule-Time-Zone" => &mut self.schedule_time_zone,
            b"Schedule-TTL" => &mut self.schedule_ttl,
            b"Schedule-Rollup" => &mut self.schedule_rollup,
            b"Schedule-Target" => &mut self.schedule_target,
            b"Schedule-Source" => &mut self.schedule_source,
            b"Schedule-Next" => &mut self.schedule_next,
            b"Scheduler" => &mut self.scheduler,
            _ => return None,
        })
    }

    fn scheduled_publish(&self) -> Result<Option<ScheduledPublish<'a>>, ApiError> {
        // Only the zone that needs no table of zones is known here.
        let is_zone_known = matches!(self.schedule_time_zone, None | Some(b"UTC" | b"Etc/UTC"));
        if !is_zone_known {
            return Err(ApiError::MESSAGE_SCHEDULES_TIME_ZONE_INVALID);
        }
        let Some(pattern) = given(self.schedule) else {
            return Ok(None);
        };
        let times = str::from_utf8(pattern).ok().and_then(schedule::parse);
        let times = match (times, self.schedule_time_zone) {
            (Some(times @ ScheduleTimes::Calendar(_)), _) | (Some(times), None) => times,
            (Some(_), Some(_)) | (None, _) => return Err(ApiError::MESSAGE_SCHEDULES_PATTERN_INVALID),
        };
        let ttl = ttl(given(self.schedule_ttl)).map_err(|NotATtl| ApiError::MESSAGE_SCHEDULES_TTL_INVALID)?;
        let is_rollup = match given(self.schedule_rollup) {
            None => false,
            Some(b"sub") => true,
            Some(_) => return Err(ApiError::MESSAGE_SCHEDULES_ROLLUP_INVALID),
        };
        let target = given(self.schedule_target).and_then(literal);
        let target = target.ok_or(ApiError::MESSAGE_SCHEDULES_TARGET_INVALID)?;
        let source = match given(self.schedule_source) {
            None => None,
            Some(source) => {
                let source = literal(source).filter(|source| *source != target);
                Some(source.ok_or(ApiError::MESSAGE_SCHEDULES_SOURCE_INVALID)?)
            }
        };
        Ok(Some(ScheduledPublish { times, target, source, ttl, is_rollup }))
    }

    /// Reads the two headers of a message that ends a schedule.
    fn ended_schedule(&self) -> Result<Option<&'a str>, ApiError> {
        match (given(self.schedule_next), given(self.scheduler)) {
            (None, None) => Ok(None),
            (Some(b"purge"), Some(scheduler)) => {
                literal(scheduler).map(Some).ok_or(ApiError::MESSAGE_SCHEDULES_SCHEDULER_INVALID)
            }
            _ => Err(ApiError::MESSAGE_SCHEDULES_SCHEDULER_INVALID),
        }
    }

    /// Reads the rollup. A schedule replaces the earlier one of its subject.
    fn rollup(&self, is_schedule: bool) -> Result<Option<Rollup>, ApiError> {
        let rollup = match given(self.rollup) {
            None => return Ok(is_schedule.then_some(Rollup::Subject)),
            Some(value) if value.eq_ignore_ascii_case(b"sub") => Rollup::Subject,
            Some(_) if is_schedule => return Err(ApiError::MESSAGE_SCHEDULES_ROLLUP_INVALID),
            Some(value) if value.eq_ignore_ascii_case(b"all") => Rollup::All,
            Some(value) => {
                let value = String::from_utf8_lossy(value).to_lowercase();
                return Err(ApiError::stream_rollup_failed(format_args!("rollup value invalid: {value:?}")));
            }
        };
        Ok(Some(rollup))
    }
}

/// A value that is neither a number of seconds nor a duration of at least one.
#[derive(Debug)]
struct NotATtl;

/// Reads `never`, a duration or a number of seconds.
fn ttl(value: Option<&[u8]>) -> Result<Option<Ttl>, NotATtl> {
    let Some(value) = value else {
        return Ok(None);
    };
    if value.eq_ignore_ascii_case(b"never") {
        return Ok(Some(Ttl::Never));
    }
    if let Some(duration) = str::from_utf8(value).ok().and_then(Nanos::parse) {
        let seconds = duration.duration().as_secs();
        return if seconds == 0 { Err(NotATtl) } else { Ok(Some(Ttl::Seconds(seconds))) };
    }
    match parse_u64(value) {
        None => Err(NotATtl),
        // A single 0 is a duration, which is too short.
        Some(0) => Ok(None),
        Some(seconds) => Ok(Some(Ttl::Seconds(seconds))),
    }
}

fn given(value: Option<&[u8]>) -> Option<&[u8]> {
    value.filter(|value| !value.is_empty())
}

/// Reads a subject to which a message can be published.
fn literal(value: &[u8]) -> Option<&str> {
    str::from_utf8(value).ok().filter(|subject| is_valid_literal(subject))
}

/// Reads an integer of any length.
fn integer(value: &[u8]) -> Option<&str> {
    let digits = value.strip_prefix(b"-").or_else(|| value.strip_prefix(b"+")).unwrap_or(value);
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    str::from_utf8(value).ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests;
