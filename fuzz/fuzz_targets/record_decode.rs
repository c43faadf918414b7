//! Any bytes as the payload of each record that the core keeps in the journal.
//!
//! Held: nothing panics; a record that was read and written again reads the same.
//! The first byte of the input chooses the kind.

use imori_core::record::{
    Checkpoint, Definition, MessageRecord, StreamRecord, decode_annotations, decode_counts,
    decode_dedup_entries, decode_purge, decode_settle, encode_annotations, encode_counts, encode_settle,
};

use crate::planted::fail_if_planted;

/// Runs one input.
pub(crate) fn test_one_input(data: &[u8]) {
    let [choice, input @ ..] = data else { return };
    match choice % 8 {
        0 => {
            let Ok(record) = MessageRecord::decode(input) else { return };
            let _ = record.view().body.len();
        }
        1 => {
            let Ok(record) = StreamRecord::decode(input) else { return };
            planted(&record);
            assert_eq!(StreamRecord::decode(&record.record().payload).as_ref(), Ok(&record));
        }
        2 => {
            let Ok(record) = Definition::decode(input) else { return };
            assert_eq!(Definition::decode(&record.encode()).as_ref(), Ok(&record));
        }
        3 => {
            let Ok(record) = Checkpoint::decode(input) else { return };
            assert_eq!(Checkpoint::decode(&record.encode()).as_ref(), Ok(&record));
        }
        4 => {
            let Ok(record) = decode_annotations(input) else { return };
            assert_eq!(decode_annotations(&encode_annotations(&record)).as_ref(), Ok(&record));
        }
        5 => {
            let (mut all, mut again) = (Vec::new(), Vec::new());
            if decode_settle(input, &mut |settled| all.push(settled)).is_ok() {
                decode_settle(&encode_settle(&all), &mut |settled| again.push(settled))
                    .expect("it was written");
                assert_eq!(all, again);
            }
        }
        6 => {
            let (mut all, mut again) = (Vec::new(), Vec::new());
            if decode_counts(input, &mut |count| all.push(count)).is_ok() {
                decode_counts(&encode_counts(&all), &mut |count| again.push(count)).expect("it was written");
                assert_eq!(all, again);
            }
        }
        _ => {
            let _ = decode_purge(input);
            let _ = decode_dedup_entries(input, &mut |_, _| {});
        }
    }
}

/// Does nothing unless a fault is planted: then a consumer cannot be deleted.
fn planted(record: &StreamRecord) {
    let is_found = matches!(record, StreamRecord::ConsumerGone(..));
    fail_if_planted(is_found);
}
