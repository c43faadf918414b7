//! The payloads of journal records, each with a version of its own.
//!
//! They are not the in-memory types and change apart from them: later releases read the records of earlier ones.
//! Numbers are little endian. Other code decides who writes records, and when.

mod page;
mod checkpoint;
mod message;
mod settle;
mod annotations;
mod purge;
mod dedup_entry;
mod definition;
mod ranges;
mod fields;

pub use annotations::{annotation_records, annotations_bytes_max, decode_annotations, encode_annotations};
pub use checkpoint::{Checkpoint, SegmentState};
pub use dedup_entry::{decode_dedup_entries, encode_dedup_entries};
pub use definition::{BindingDefinition, BindingTarget, Definition, Row, RowsGone, Table};
pub use fields::RecordError;
pub(crate) use message::push_message;
pub use message::{MessageRecord, encode_message, message_bytes_max};
pub(crate) use page::decode_delayed_entry;
pub use page::{PageEntry, decode_journal_entry, decode_page_entry, encode_page};
pub use purge::{decode_purge, purge_records};
pub use settle::{
    count_records, counts_bytes_max, decode_counts, decode_settle, encode_counts, encode_settle,
    settle_records, settles_bytes_max,
};

use crate::confirm::Lsn;

/// The subject of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// A message and the durable queues that it went to.
    Message,
    /// Messages that queues are done with.
    Settle,
    /// Pages whose messages were purged.
    Purge,
    /// Deliveries of messages that failed.
    Count,
    /// The annotations that consumers have added to a message.
    Annotations,
    /// Ids of messages that a queue took lately.
    Seen,
    /// Something is declared, bound or deleted.
    Definition,
}

/// A record that has no number yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRecord {
    /// The subject of the record.
    pub kind: RecordKind,
    /// The payload, in the record's own encoding.
    pub payload: Vec<u8>,
}

impl NewRecord {
    /// A record.
    #[must_use]
    pub fn new(kind: RecordKind, payload: Vec<u8>) -> NewRecord {
        NewRecord { kind, payload }
    }
}

/// The numbers that records got, which follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The number of the first record.
    pub first: Lsn,
    /// When the journal is durable up to here, all of them are.
    pub through: Lsn,
}
