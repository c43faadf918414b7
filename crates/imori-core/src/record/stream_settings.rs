//! The settings of a stream, as a part of its declaration's record.

use super::fields::{Fields, RecordError};
use super::optional::{OptionalReader, OptionalWriter};
use crate::index::{Filter, SubjectMap};
use crate::name::Name;
use crate::stream::{Retention, StreamSettings};

const VERSION: u8 = 1;

const RETENTIONS: [Retention; 3] = [Retention::Limits, Retention::Interest, Retention::WorkQueue];

/// Writes the settings of a stream.
pub(super) fn push_stream_settings(out: &mut Vec<u8>, settings: &StreamSettings) {
    let StreamSettings {
        retention,
        per_subject_max,
        refuses_per_subject,
        message_bytes_max,
        first_sequence,
        consumers_max,
        is_sealed,
        denies_delete,
        denies_purge,
        allows_rollup,
        allows_ttl,
        marker_ttl,
        is_counter,
        allows_schedules,
        allows_batches,
        subjects,
        stored_as,
        republished_to,
        republishes_headers,
        is_silent,
        allows_direct,
        max_age,
        consumer_inactive_max,
        consumer_pending_max,
        has_own_declaration,
        maker,
        note,
    } = settings;
    let mut fields = OptionalWriter::new(VERSION);
    fields.flag(*has_own_declaration);
    let retention = RETENTIONS.iter().position(|known| known == retention).unwrap_or_default();
    fields.number(Some(retention as u64).filter(|number| *number > 0));
    fields.number(*per_subject_max);
    fields.flag(*refuses_per_subject);
    fields.number(*message_bytes_max);
    fields.number(Some(*first_sequence).filter(|first| *first > 0));
    fields.number(consumers_max.map(|max| max as u64));
    fields.flag(*is_sealed);
    fields.flag(*denies_delete);
    fields.flag(*denies_purge);
    fields.flag(*allows_rollup);
    fields.flag(*allows_ttl);
    fields.duration(*marker_ttl);
    fields.flag(*is_counter);
    fields.flag(*allows_schedules);
    fields.flag(*allows_batches);
    fields.names(subjects.texts().map(Name::as_bytes));
    push_map(&mut fields, stored_as.as_ref());
    push_map(&mut fields, republished_to.as_ref());
    fields.flag(*republishes_headers);
    fields.flag(*is_silent);
    fields.flag(*allows_direct);
    fields.bytes(max_age.as_deref());
    fields.duration(*consumer_inactive_max);
    fields.number(*consumer_pending_max);
    fields.bytes(maker.as_ref().map(Name::as_bytes));
    fields.bytes(Some(&**note).filter(|note| !note.is_empty()));
    fields.finish(out);
}

/// Reads the settings of a stream.
///
/// # Errors
/// [`RecordError`].
pub(super) fn stream_settings(fields: &mut Fields<'_>) -> Result<StreamSettings, RecordError> {
    let mut fields = OptionalReader::new("stream", fields, VERSION)?;
    let has_own_declaration = fields.flag();
    let retention = usize::try_from(fields.number()?.unwrap_or(0)).unwrap_or(usize::MAX);
    let settings = StreamSettings {
        has_own_declaration,
        retention: *RETENTIONS.get(retention).ok_or(RecordError::Unknown("retention of a stream"))?,
        per_subject_max: fields.number()?,
        refuses_per_subject: fields.flag(),
        message_bytes_max: fields.number()?,
        first_sequence: fields.number()?.unwrap_or(0),
        consumers_max: fields.number()?.map(|max| usize::try_from(max).unwrap_or(usize::MAX)),
        is_sealed: fields.flag(),
        denies_delete: fields.flag(),
        denies_purge: fields.flag(),
        allows_rollup: fields.flag(),
        allows_ttl: fields.flag(),
        marker_ttl: fields.duration()?,
        is_counter: fields.flag(),
        allows_schedules: fields.flag(),
        allows_batches: fields.flag(),
        subjects: filter(&fields.names()?)?,
        stored_as: map(&mut fields)?,
        republished_to: map(&mut fields)?,
        republishes_headers: fields.flag(),
        is_silent: fields.flag(),
        allows_direct: fields.flag(),
        max_age: fields.bytes()?.map(Box::from),
        consumer_inactive_max: fields.duration()?,
        consumer_pending_max: fields.number()?,
        maker: fields.bytes()?.map(Name::new),
        note: fields.bytes()?.map(Box::from).unwrap_or_default(),
    };
    fields.finish()?;
    Ok(settings)
}

/// The filter of these patterns.
pub(super) fn filter(texts: &[&[u8]]) -> Result<Filter, RecordError> {
    Filter::of(texts).map_err(|_| RecordError::Unknown("subject"))
}

fn push_map(fields: &mut OptionalWriter, map: Option<&SubjectMap>) {
    let (source, destination) = map.map(SubjectMap::texts).unwrap_or_default();
    let texts = [source.as_bytes(), destination.as_bytes()];
    fields.names(texts.into_iter().filter(|_| map.is_some()));
}

fn map(fields: &mut OptionalReader<'_, '_>) -> Result<Option<SubjectMap>, RecordError> {
    const UNKNOWN: RecordError = RecordError::Unknown("change of subjects");
    let texts = fields.names()?;
    let [source, destination] = *texts else {
        return if texts.is_empty() { Ok(None) } else { Err(UNKNOWN) };
    };
    let text = |bytes| str::from_utf8(bytes).map_err(|_| UNKNOWN);
    SubjectMap::new(text(source)?, text(destination)?).map_err(|_| UNKNOWN)
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::*;

    /// Settings that differ from the default in each field.
    pub(in crate::record) fn every_setting() -> StreamSettings {
        StreamSettings {
            retention: Retention::WorkQueue,
            per_subject_max: Some(5),
            refuses_per_subject: true,
            message_bytes_max: Some(1_000),
            first_sequence: 900,
            consumers_max: Some(3),
            is_sealed: true,
            denies_delete: true,
            denies_purge: true,
            allows_rollup: true,
            allows_ttl: true,
            marker_ttl: Some(Duration::from_secs(5)),
            is_counter: true,
            allows_schedules: true,
            allows_batches: true,
            subjects: Filter::of(&[b"a.>", b">"]).unwrap(),
            stored_as: SubjectMap::new("a.*", "b.$1").unwrap(),
            republished_to: SubjectMap::new("", "all.>").unwrap(),
            republishes_headers: true,
            is_silent: true,
            allows_direct: true,
            max_age: Some(Box::from(*b"7D")),
            consumer_inactive_max: Some(Duration::from_nanos(1)),
            consumer_pending_max: Some(9),
            has_own_declaration: true,
            maker: Some(Name::from("7 u")),
            note: Box::from(*b"{}"),
        }
    }

    #[test]
    fn settings_are_read_as_written() {
        for settings in [StreamSettings::default(), every_setting()] {
            let mut bytes = vec![1];
            push_stream_settings(&mut bytes, &settings);
            let read = |bytes: &[u8]| stream_settings(&mut Fields::of(bytes, 1)?);
            assert_eq!(read(&bytes), Ok(settings));
            assert!((1..bytes.len()).all(|len| read(&bytes[..len]).is_err()));
        }
        let mut bytes = vec![1];
        push_stream_settings(&mut bytes, &StreamSettings::default());
        assert_eq!(bytes, [1, VERSION, 0], "defaults take no room");
    }
}
