//! Why bytes are not an archive.

use std::fmt;

/// Why an archive cannot be read. The texts are those of nats-server, where it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArchiveError {
    /// The frames are damaged.
    Corrupt,
    /// The checksum of a frame does not fit its contents.
    Checksum,
    /// The frames are of an unknown kind.
    Unsupported,
    /// The bytes are a `tar` file, as nats-server wrote it before 2.15.
    OldFormat,
    /// The entries are not those of an archive.
    Invalid,
    /// The first entry is not the state of the stream.
    NoState,
    /// The state of the stream or of a consumer is not JSON, or contradicts itself.
    State(String),
    /// The archive has another entry where a consumer should be.
    NoConsumer(String),
    /// A message has no sequence number.
    NoSequence,
    /// The sequence number of a message does not rise.
    Order(u64),
    /// A message is larger than the broker accepts.
    TooLarge(u64),
    /// The subject or the header block of a message is none.
    Message(u64),
    /// The stream cannot have a consumer of the archive: its name, and why.
    Consumer(String, String),
    /// The archive ends before its last entry.
    Truncated,
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt => f.write_str("s2: corrupt input"),
            Self::Checksum => f.write_str("s2: corrupt input, crc mismatch"),
            Self::Unsupported => f.write_str("s2: unsupported input"),
            Self::OldFormat => {
                f.write_str("the archive is older than nats-server 2.15; restore it there and make a new one")
            }
            Self::Invalid => f.write_str("archive: invalid archive stream"),
            Self::NoState => f.write_str("expected state.json first"),
            Self::State(what) => f.write_str(what),
            Self::NoConsumer(name) => write!(f, "expected consumer, found {name:?}"),
            Self::NoSequence => f.write_str("expected message sequence"),
            Self::Order(sequence) => write!(f, "message sequence {sequence} out of order"),
            Self::TooLarge(sequence) => {
                write!(f, "message sequence {sequence} exceeds maximum payload size")
            }
            Self::Message(sequence) => write!(f, "failed to parse message sequence {sequence}"),
            Self::Consumer(name, why) => write!(f, "failed to add consumer {name:?}: {why}"),
            Self::Truncated => f.write_str("backup was truncated"),
        }
    }
}

impl std::error::Error for ArchiveError {}
