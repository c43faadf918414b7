//! Reads an archive and checks the order of its entries.
//!
//! ```text
//!           state.json      consumers/…        sequence > 0      end
//! expecting ─────────► consumers(n) ──► … ──► messages ──────► ended
//! a state                                     ▲      │
//!                                             └──────┘
//! ```

use imori_core::time::Time;
use imori_streams::archive::ArchiveError;
use imori_streams::subject::is_valid_name;
use serde::de::DeserializeOwned;

use super::consumer::ArchivedConsumer;
use super::entry::{EntryHead, MAGIC, NUMBER_MAX};
use super::frames::FrameReader;
use crate::jetstream::stream_info::StreamState;

/// Bytes of the JSON of a stream's or a consumer's state: deliveries without an acknowledgement are in it. More: the
/// archive is refused.
const STATE_BYTES_MAX: u64 = 16 << 20;

/// Bytes of a header block, which has to fit into the record of a message.
const BLOCK_BYTES_MAX: u64 = u16::MAX as u64;

/// An entry of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArchiveItem {
    /// The state of the stream, which comes first.
    State(Box<StreamState>),
    /// A consumer and its name.
    Consumer(String, Box<ArchivedConsumer>),
    /// A message.
    Message(MessageEntry),
    /// The end.
    End,
}

/// A message of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageEntry {
    /// The sequence number.
    pub sequence: u64,
    /// When it was stored.
    pub time: Time,
    /// The subject.
    pub subject: Vec<u8>,
    /// The header block; empty for none.
    pub block: Vec<u8>,
    /// The body.
    pub body: Vec<u8>,
}

/// Reads an archive, piece by piece.
#[derive(Debug)]
pub struct ArchiveReader {
    frames: FrameReader,
    /// Contents of frames, of which the first `read` bytes are used.
    plain: Vec<u8>,
    read: usize,
    message_bytes_max: u64,
    expected: Expected,
    last_sequence: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Magic,
    State,
    Consumers(u64),
    Messages,
    Nothing,
}

impl ArchiveReader {
    /// A reader of archives whose messages have at most this many bytes, headers and body.
    #[must_use]
    pub fn new(message_bytes_max: usize) -> ArchiveReader {
        ArchiveReader {
            frames: FrameReader::default(),
            plain: Vec::new(),
            read: 0,
            message_bytes_max: message_bytes_max as u64,
            expected: Expected::Magic,
            last_sequence: 0,
        }
    }

    /// Adds bytes of the archive. Bytes behind its end are ignored.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.expected != Expected::Nothing {
            self.frames.push(bytes);
        }
    }

    /// Checks that the archive may end where it does.
    ///
    /// # Errors
    /// [`ArchiveError::Truncated`].
    pub fn check_end(&self) -> Result<(), ArchiveError> {
        if self.expected == Expected::Nothing { Ok(()) } else { Err(ArchiveError::Truncated) }
    }

    /// The next entry; `None` if more bytes are needed, or behind the end.
    ///
    /// # Errors
    /// [`ArchiveError`]; then nothing else can be read.
    pub fn read(&mut self) -> Result<Option<ArchiveItem>, ArchiveError> {
        loop {
            if let Some(item) = self.next_item()? {
                return Ok(Some(item));
            }
            self.plain.drain(..self.read);
            self.read = 0;
            if self.expected == Expected::Nothing || !self.frames.read(&mut self.plain)? {
                return Ok(None);
            }
        }
    }

    fn next_item(&mut self) -> Result<Option<ArchiveItem>, ArchiveError> {
        let rest = self.plain.get(self.read..).unwrap_or_default();
        let head = match self.expected {
            Expected::Nothing => return Ok(None),
            Expected::Magic => {
                let Some(magic) = rest.get(..MAGIC.len()) else { return Ok(None) };
                if magic != MAGIC {
                    // The first file of older archives.
                    return Err(match magic {
                        b"meta.inf" => ArchiveError::OldFormat,
                        _ => ArchiveError::Invalid,
                    });
                }
                self.read += MAGIC.len();
                self.expected = Expected::State;
                return self.next_item();
            }
            Expected::State | Expected::Consumers(_) | Expected::Messages => EntryHead::decode(rest)?,
        };
        let Some((head, len)) = head else { return Ok(None) };
        self.check(&head)?;
        let bytes = usize::try_from(head.bytes()).map_err(|_| ArchiveError::Invalid)?;
        let Some(contents) = rest.get(len..).and_then(|contents| contents.get(..bytes)) else {
            return Ok(None);
        };
        let item = self.item(head, contents)?;
        self.expected = match &item {
            ArchiveItem::State(state) if state.consumer_count > 0 => {
                Expected::Consumers(state.consumer_count)
            }
            ArchiveItem::State(_) => Expected::Messages,
            ArchiveItem::Consumer(..) => match self.expected {
                Expected::Consumers(left) if left > 1 => Expected::Consumers(left - 1),
                _ => Expected::Messages,
            },
            ArchiveItem::Message(message) => {
                self.last_sequence = message.sequence;
                Expected::Messages
            }
            ArchiveItem::End => Expected::Nothing,
        };
        self.read += len + bytes;
        Ok(Some(item))
    }

    /// Checks an entry before its contents are there.
    fn check(&self, head: &EntryHead) -> Result<(), ArchiveError> {
        match self.expected {
            Expected::State if head.name != b"state.json" => Err(ArchiveError::NoState),
            Expected::Consumers(_) if !head.name.starts_with(b"consumers/") => {
                Err(ArchiveError::NoConsumer(String::from_utf8_lossy(&head.name).into_owned()))
            }
            Expected::State | Expected::Consumers(_) if head.bytes() > STATE_BYTES_MAX => {
                Err(ArchiveError::Invalid)
            }
            Expected::Messages if head.sequence == 0 && !head.is_end() => Err(ArchiveError::NoSequence),
            Expected::Messages if head.sequence != 0 => {
                if head.sequence <= self.last_sequence || head.sequence > NUMBER_MAX {
                    return Err(ArchiveError::Order(head.sequence));
                }
                if head.bytes() > self.message_bytes_max || head.header_bytes > BLOCK_BYTES_MAX {
                    return Err(ArchiveError::TooLarge(head.sequence));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn item(&self, head: EntryHead, contents: &[u8]) -> Result<ArchiveItem, ArchiveError> {
        match self.expected {
            Expected::State | Expected::Magic => {
                let state: StreamState = json(contents, "error in state.json")?;
                check_state(&state)?;
                Ok(ArchiveItem::State(Box::new(state)))
            }
            Expected::Consumers(_) => {
                let name = head.name.strip_prefix(b"consumers/").unwrap_or_default();
                let name = std::str::from_utf8(name).ok().filter(|name| is_valid_name(name));
                let name = name.ok_or(ArchiveError::Invalid)?;
                let consumer = json(contents, &format!("failed to decode consumer {name:?} state"))?;
                Ok(ArchiveItem::Consumer(name.to_owned(), Box::new(consumer)))
            }
            Expected::Messages | Expected::Nothing if head.sequence == 0 => Ok(ArchiveItem::End),
            Expected::Messages | Expected::Nothing => {
                let damaged = ArchiveError::Message(head.sequence);
                let at = usize::try_from(head.header_bytes).unwrap_or(usize::MAX);
                let (block, body) = contents.split_at_checked(at).ok_or_else(|| damaged.clone())?;
                if !is_subject(&head.name) {
                    return Err(damaged);
                }
                Ok(ArchiveItem::Message(MessageEntry {
                    sequence: head.sequence,
                    time: Time(u64::try_from(head.timestamp).unwrap_or_default() / 1000),
                    subject: head.name,
                    block: block.to_vec(),
                    body: body.to_vec(),
                }))
            }
        }
    }
}

fn json<T: DeserializeOwned>(contents: &[u8], what: &str) -> Result<T, ArchiveError> {
    serde_json::from_slice(contents).map_err(|error| ArchiveError::State(format!("{what}: {error}")))
}

/// Checks what nats-server checks.
fn check_state(state: &StreamState) -> Result<(), ArchiveError> {
    let StreamState { messages, first_seq, last_seq, .. } = *state;
    let is_sound = match first_seq {
        0 => last_seq == 0 && messages == 0,
        _ if first_seq > last_seq => first_seq - 1 == last_seq && messages == 0,
        _ => messages <= (last_seq - first_seq).saturating_add(1),
    };
    match is_sound && last_seq <= NUMBER_MAX {
        true => Ok(()),
        false => {
            let what = "invalid stream state: inconsistent message count or sequence range";
            Err(ArchiveError::State(what.to_owned()))
        }
    }
}

/// Whether a message can have this subject.
fn is_subject(subject: &[u8]) -> bool {
    (1..=imori_core::limits::SUBJECT_BYTES_MAX).contains(&subject.len())
        && subject.iter().all(|byte| !byte.is_ascii_whitespace() && *byte != 0)
}

#[cfg(test)]
mod tests;
