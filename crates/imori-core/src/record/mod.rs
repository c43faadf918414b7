//! The payloads of journal records; each kind has a version of its own.
//!
//! They are separate from the types in memory, so that later releases can read the records of earlier ones.
//! Numbers are little endian. Other code decides when to write records.

mod page;
mod checkpoint;
mod message;
mod settle;
mod annotations;
mod purge;
mod stream;
mod dedup_entry;
mod definition;
mod consumer_settings;
mod stream_settings;
mod schedule;
mod optional;
mod ranges;
mod fields;

pub use annotations::{annotation_records, annotations_bytes_max, decode_annotations, encode_annotations};
pub use checkpoint::{Checkpoint, ManifestPlace};
pub use dedup_entry::{decode_dedup_entries, encode_dedup_entries};
pub use definition::{BindingDefinition, BindingTarget, Definition, Row, RowsGone, Table};
pub use fields::RecordError;
pub use message::{InStreams, MessageRecord, encode_for_streams, encode_message, message_bytes_max};
pub use page::{PageEntry, decode_journal_entry, decode_page_entry, encode_page};
pub(crate) use page::{StreamEntry, decode_delayed_entry, decode_stream_entry};
pub use purge::{decode_purge, purge_records};
pub use ranges::ranges_of;
pub use settle::{
    count_records, counts_bytes_max, decode_counts, decode_settle, encode_counts, encode_settle,
    settle_records, settles_bytes_max,
};
pub use stream::{ConsumerState, StreamRecord, removed_records};

use crate::confirm::Lsn;

/// The subject of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// A message, and the durable queues that it went to.
    Message,
    /// Messages that queues have settled.
    Settle,
    /// Messages that were purged without being read.
    Purge,
    /// Failed deliveries of messages.
    Count,
    /// The annotations that consumers added to a message.
    Annotations,
    /// Ids of messages that a queue has recently accepted.
    Seen,
    /// Removed messages, consumers and acknowledgements of a stream.
    Stream,
    /// A declaration, a binding, or a deletion.
    Definition,
}

/// A record without a number yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRecord {
    /// The subject of the record.
    pub kind: RecordKind,
    /// The payload, in the record's own encoding.
    pub payload: Vec<u8>,
}

impl NewRecord {
    /// Creates a record.
    #[must_use]
    pub fn new(kind: RecordKind, payload: Vec<u8>) -> NewRecord {
        NewRecord { kind, payload }
    }
}

/// The numbers of appended records, which are consecutive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The number of the first record.
    pub first: Lsn,
    /// Once the journal is durable up to this record, all of them are.
    pub through: Lsn,
}
