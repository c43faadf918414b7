//! Ids of messages that a queue has recently accepted, recorded again so that the records of these messages
//! can be freed.
//!
//! `version u8, queue u64`, then `time u64, id short` for each id. In version 2, which streams need, the sequence number
//! of the message follows as `u64`.

use std::sync::Arc;

use super::fields::{Fields, RecordError, push_short};
use crate::delivery::DedupEntry;
use crate::id::DurableQueueId;
use crate::time::Time;

const VERSION: u8 = 1;
const NUMBERED_VERSION: u8 = 2;

/// Encodes the ids that a queue has accepted.
#[must_use]
pub fn encode_dedup_entries(queue: DurableQueueId, seen: &[DedupEntry]) -> Vec<u8> {
    let is_numbered = seen.iter().any(|seen| seen.sequence != 0);
    let mut out = vec![if is_numbered { NUMBERED_VERSION } else { VERSION }];
    out.extend_from_slice(&queue.0.to_le_bytes());
    for DedupEntry { id, time, sequence } in seen {
        out.extend_from_slice(&time.0.to_le_bytes());
        push_short(&mut out, id);
        if is_numbered {
            out.extend_from_slice(&sequence.to_le_bytes());
        }
    }
    out
}

/// Calls `visit` with each id and the queue.
///
/// # Errors
/// [`RecordError`]; the ids before the fault were visited.
pub fn decode_dedup_entries(
    payload: &[u8],
    visit: &mut dyn FnMut(DurableQueueId, DedupEntry),
) -> Result<(), RecordError> {
    let is_numbered = payload.first() == Some(&NUMBERED_VERSION);
    let mut fields = Fields::of(payload, if is_numbered { NUMBERED_VERSION } else { VERSION })?;
    let queue = DurableQueueId(fields.u64()?);
    while !fields.is_empty() {
        let time = Time(fields.u64()?);
        let id = Arc::from(fields.short()?);
        let sequence = if is_numbered { fields.u64()? } else { 0 };
        visit(queue, DedupEntry { id, time, sequence });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(payload: &[u8]) -> Result<Vec<(DurableQueueId, DedupEntry)>, RecordError> {
        let mut all = Vec::new();
        decode_dedup_entries(payload, &mut |queue, seen| all.push((queue, seen))).map(|()| all)
    }

    #[test]
    fn decode_after_encode_is_identity() {
        for (sequence, ends) in [(0, [9, 9 + 11, 9 + 11 + 10]), (7, [9, 9 + 19, 9 + 19 + 18])] {
            let seen = [(5, "a"), (6, ""), (u64::MAX, "order-77")].map(|(time, id)| DedupEntry {
                id: Arc::from(id.as_bytes()),
                time: Time(time),
                sequence,
            });
            let queue = DurableQueueId(9);
            let bytes = encode_dedup_entries(queue, &seen);
            let expected: Vec<_> = seen.iter().map(|seen| (queue, seen.clone())).collect();
            assert_eq!(read(&bytes), Ok(expected));
            for len in 0..bytes.len() {
                assert_eq!(read(&bytes[..len]).is_ok(), ends.contains(&len), "{len} bytes");
            }
        }
        assert_eq!(read(&[3]), Err(RecordError::Version(3)));
    }
}
