//! Ids of messages that a queue has recently accepted, recorded again so that the records of these messages
//! can be freed.
//!
//! `version u8, queue u64`, then `time u64, id short` for each id.

use std::sync::Arc;

use super::fields::{Fields, RecordError, push_short};
use crate::delivery::DedupEntry;
use crate::id::DurableQueueId;
use crate::time::Time;

const VERSION: u8 = 1;

/// Encodes the ids that a queue has accepted.
#[must_use]
pub fn encode_dedup_entries(queue: DurableQueueId, seen: &[DedupEntry]) -> Vec<u8> {
    let mut out = vec![VERSION];
    out.extend_from_slice(&queue.0.to_le_bytes());
    for DedupEntry { id, time } in seen {
        out.extend_from_slice(&time.0.to_le_bytes());
        push_short(&mut out, id);
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
    let mut fields = Fields::of(payload, VERSION)?;
    let queue = DurableQueueId(fields.u64()?);
    while !fields.is_empty() {
        let time = Time(fields.u64()?);
        visit(queue, DedupEntry { id: Arc::from(fields.short()?), time });
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
        let seen = [(5, "a"), (6, ""), (u64::MAX, "order-77")]
            .map(|(time, id)| DedupEntry { id: Arc::from(id.as_bytes()), time: Time(time) });
        let queue = DurableQueueId(9);
        let bytes = encode_dedup_entries(queue, &seen);
        let expected: Vec<_> = seen.iter().map(|seen| (queue, seen.clone())).collect();
        assert_eq!(read(&bytes), Ok(expected));
        let ends = [9, 9 + 11, 9 + 11 + 10];
        for len in 0..bytes.len() {
            assert_eq!(read(&bytes[..len]).is_ok(), ends.contains(&len), "{len} bytes");
        }
        assert_eq!(read(&[2]), Err(RecordError::Version(2)));
    }
}
