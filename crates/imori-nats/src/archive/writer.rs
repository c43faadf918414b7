//! Writes an archive.

use imori_core::name::Name;
use imori_core::time::Time;
use imori_streams::json::to_json;

use super::consumer::ArchivedConsumer;
use super::entry::{EntryHead, MAGIC};
use super::frames::FrameWriter;
use crate::jetstream::stream_info::StreamState;

/// Writes an archive, piece by piece.
#[derive(Debug, Default)]
pub struct ArchiveWriter {
    frames: FrameWriter,
    head: Vec<u8>,
}

impl ArchiveWriter {
    /// Begins the archive of a stream in this state with these consumers, at the time `now`.
    #[must_use]
    pub fn new(state: &StreamState, consumers: &[(Name, ArchivedConsumer)], now: Time) -> ArchiveWriter {
        let mut writer = ArchiveWriter::default();
        writer.frames.push(MAGIC);
        let state = StreamState { consumer_count: consumers.len() as u64, ..state.clone() };
        writer.write_json(b"state.json".to_vec(), &to_json(&state), now);
        for (name, consumer) in consumers {
            writer.write_json([b"consumers/", name.as_bytes()].concat(), &to_json(consumer), now);
        }
        writer
    }

    /// Adds a message, whose header block may be empty.
    pub fn write_message(
        &mut self,
        (sequence, time): (u64, Time),
        subject: &[u8],
        block: &[u8],
        body: &[u8],
    ) {
        let head = EntryHead {
            name: subject.to_vec(),
            timestamp: nanos(time),
            sequence,
            header_bytes: block.len() as u64,
            payload_bytes: body.len() as u64,
        };
        self.write(&head, &[block, body]);
    }

    /// Ends the archive.
    pub fn end(&mut self) {
        self.write(&EntryHead::default(), &[]);
        self.frames.flush();
    }

    /// Bytes that can be taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether nothing can be taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes what is written so far, but for the last chunk.
    pub fn take(&mut self) -> Vec<u8> {
        self.frames.take()
    }

    fn write_json(&mut self, name: Vec<u8>, json: &[u8], now: Time) {
        let head = EntryHead {
            name,
            timestamp: nanos(now),
            payload_bytes: json.len() as u64,
            ..EntryHead::default()
        };
        self.write(&head, &[json]);
    }

    fn write(&mut self, head: &EntryHead, parts: &[&[u8]]) {
        self.head.clear();
        head.encode(&mut self.head);
        self.frames.push(&self.head);
        parts.iter().for_each(|part| self.frames.push(part));
    }
}

fn nanos(time: Time) -> i64 {
    i64::try_from(time.0.saturating_mul(1000)).unwrap_or(i64::MAX)
}
