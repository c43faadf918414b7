//! All annotations that consumers added to a message of a durable queue.
//!
//! `version u8, queue u64, lsn u64`, then the annotations to the end, in the form of the protocol that has
//! annotations.

use super::fields::{Fields, RecordError};
use super::{NewRecord, RecordKind};
use crate::confirm::Lsn;
use crate::delivery::{AnnotatedMessage, RecordRef};
use crate::id::DurableQueueId;
use crate::limits::RECORD_SLACK_BYTES;

const VERSION: u8 = 1;

/// Encodes the annotations of a message.
#[must_use]
pub fn encode_annotations(message: &AnnotatedMessage) -> Vec<u8> {
    let mut out = vec![VERSION];
    out.extend_from_slice(&message.record_ref.queue.0.to_le_bytes());
    out.extend_from_slice(&message.record_ref.lsn.0.to_le_bytes());
    out.extend_from_slice(&message.annotations);
    out
}

/// Creates a record for each message's annotations.
#[must_use]
pub fn annotation_records(messages: &[AnnotatedMessage]) -> Vec<NewRecord> {
    messages
        .iter()
        .map(|message| NewRecord::new(RecordKind::Annotations, encode_annotations(message)))
        .collect()
}

/// The most bytes that a record with `len` bytes of annotations takes in the journal.
#[must_use]
pub fn annotations_bytes_max(len: usize) -> usize {
    1 + 8 + 8 + len + RECORD_SLACK_BYTES
}

/// Decodes the annotations of a message.
///
/// # Errors
/// [`RecordError`].
pub fn decode_annotations(payload: &[u8]) -> Result<AnnotatedMessage, RecordError> {
    let mut fields = Fields::of(payload, VERSION)?;
    let record_ref = RecordRef { queue: DurableQueueId(fields.u64()?), lsn: Lsn(fields.u64()?) };
    Ok(AnnotatedMessage { record_ref, annotations: Box::from(fields.rest()) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn decode_after_encode_is_identity(queue: u64, lsn: u64, annotations: Vec<u8>) {
            let record_ref = RecordRef { queue: DurableQueueId(queue), lsn: Lsn(lsn) };
            let message = AnnotatedMessage { record_ref, annotations: annotations.into() };
            let records = annotation_records(std::slice::from_ref(&message));
            let [NewRecord { kind: RecordKind::Annotations, payload }] = &*records else { panic!("it is one") };
            prop_assert_eq!(payload.len() + RECORD_SLACK_BYTES, annotations_bytes_max(message.annotations.len()));
            for len in 0..17 {
                prop_assert!(decode_annotations(&payload[..len]).is_err(), "{} bytes", len);
            }
            prop_assert_eq!(decode_annotations(payload), Ok(message));
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let _ = decode_annotations(&bytes);
        }
    }

    #[test]
    fn another_version_is_refused() {
        assert_eq!(decode_annotations(&[2; 20]), Err(RecordError::Version(2)));
    }
}
