//! Bugs planted in what a restart reads. No client sees them at once: only the comparison with a restart does.

use std::borrow::Cow;

use imori_core::delivery::{DedupEntry, DeliveryCount};
use imori_core::record::{
    RecordError, StreamRecord, decode_counts, decode_dedup_entries, encode_counts, encode_dedup_entries,
};
use imori_core::time::Time;

use crate::planted::Bug;

/// A record of delivery counts, as a restart reads it.
pub(super) fn read_counts(bug: Option<Bug>, payload: &[u8]) -> Result<Cow<'_, [u8]>, RecordError> {
    if bug != Some(Bug::FailuresForgotten) {
        return Ok(Cow::Borrowed(payload));
    }
    let mut counts = Vec::new();
    decode_counts(payload, &mut |count| counts.push(DeliveryCount { failures: 0, ..count }))?;
    Ok(Cow::Owned(encode_counts(&counts)))
}

/// A record of a stream, as a restart reads it.
pub(super) fn read_stream(bug: Option<Bug>, payload: &[u8]) -> Result<Cow<'_, [u8]>, RecordError> {
    if !matches!(bug, Some(Bug::FloorOneTooLow | Bug::DeliveryUncounted)) {
        return Ok(Cow::Borrowed(payload));
    }
    let StreamRecord::Consumer(queue, mut state) = StreamRecord::decode(payload)? else {
        return Ok(Cow::Borrowed(payload));
    };
    if bug == Some(Bug::FloorOneTooLow) {
        state.floor.stream = state.floor.stream.saturating_sub(1);
    } else {
        state.pending.iter_mut().for_each(|(.., deliveries)| *deliveries = deliveries.saturating_sub(1));
    }
    Ok(Cow::Owned(StreamRecord::Consumer(queue, state).record().payload))
}

/// A record of ids, as a restart reads it.
pub(super) fn read_ids(bug: Option<Bug>, payload: &[u8]) -> Result<Cow<'_, [u8]>, RecordError> {
    if bug != Some(Bug::IdsLater) {
        return Ok(Cow::Borrowed(payload));
    }
    let (mut ids, mut of) = (Vec::new(), None);
    decode_dedup_entries(payload, &mut |queue, id| {
        of = Some(queue);
        ids.push(DedupEntry { time: Time(id.time.0 + 1), ..id });
    })?;
    Ok(of.map_or(Cow::Borrowed(payload), |queue| Cow::Owned(encode_dedup_entries(queue, &ids))))
}
