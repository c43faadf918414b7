//! Any bytes as a file header, a batch and a record of the journal.
//!
//! Held: nothing panics; what is read takes no more bytes than there are, and reads the same once it is
//! written anew. With an odd first byte the rest is the payload of a record whose checksum is right.

use imori_store::lsn::Lsn;
use imori_store::records::record::{self, RecordType, RecordView};
use imori_store::records::{FileHeader, batch};
use imori_store::seal::{Seal, StoreId};

use crate::planted::fail_if_planted;

/// Runs one input.
pub(crate) fn test_one_input(data: &[u8]) {
    let [choice, input @ ..] = data else { return };
    let seal = Seal::new(StoreId([1; 16]));
    if choice % 2 == 0 {
        let _ = FileHeader::decode(input);
        let _ = batch::decode(input, seal, 1);
        check(input, seal);
        return;
    }
    let mut bytes = Vec::new();
    let (kind, lsn) = (RecordType::Message, Lsn(1 + u64::from(*choice)));
    record::push(&mut bytes, seal, &RecordView { lsn, kind, flags: 0, generation: 1, payload: input });
    check(&bytes, seal);
}

fn check(input: &[u8], seal: Seal) {
    let Ok((view, consumed)) = record::decode(input, seal) else { return };
    assert!(consumed <= input.len());
    planted(view.payload);
    let mut again = Vec::new();
    record::push(&mut again, seal, &view);
    assert_eq!(record::decode(&again, seal).map(|(view, _)| view), Ok(view), "what was read can be written");
}

/// Does nothing unless a fault is planted: then a payload that begins with 0, 0, 1 is one too many.
fn planted(payload: &[u8]) {
    let is_found = payload.starts_with(&[0, 0, 1]);
    fail_if_planted(is_found);
}
