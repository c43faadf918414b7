//! Archives of streams, and the dialogue by which clients copy them, whatever protocol gives both their form.
//!
//! An archive has the stream's last number, its consumers, its messages by rising number, and an end. The declaration of
//! the stream is not in it.

use std::fmt;

use imori_core::entries::Entry;
use imori_core::message::HeaderReaders;
use imori_core::name::Name;
use imori_core::queue::Queue;
use imori_core::record::ConsumerState;
use imori_core::stream::{ArchivedMessage, StreamForm};
use imori_core::time::Time;

pub use crate::archive_error::ArchiveError;
use crate::declared::DeclaredStream;

/// An entry of an archive.
#[derive(Debug)]
pub enum ArchiveItem {
    /// The number of the last message that the stream ever had, which comes first.
    Last(u64),
    /// A consumer.
    Consumer(Box<ConsumerState>),
    /// A message.
    Message(ArchivedMessage),
    /// The end.
    End,
}

/// Reads an archive that comes in pieces.
pub trait ArchiveReader: fmt::Debug + Send + Sync {
    /// Adds bytes of the archive. Bytes behind its end are ignored.
    fn push(&mut self, bytes: &[u8]);

    /// The next entry; `None` if more bytes are needed, or behind the end.
    ///
    /// # Errors
    /// [`ArchiveError`]; then nothing else can be read.
    fn read(&mut self) -> Result<Option<ArchiveItem>, ArchiveError>;

    /// Checks that the archive may end where it does.
    ///
    /// # Errors
    /// [`ArchiveError::Truncated`].
    fn check_end(&self) -> Result<(), ArchiveError>;
}

/// Writes an archive whose begin it has.
pub trait ArchiveWriter: fmt::Debug + Send + Sync {
    /// Adds a message of the stream. What the form cannot express of another protocol's message is lost.
    fn write(&mut self, stream: &Name, entry: &Entry, readers: HeaderReaders);

    /// Ends the archive.
    fn end(&mut self);

    /// Takes what is written so far, but for a piece that is not full yet.
    fn take(&mut self) -> Vec<u8>;
}

/// A protocol's form of archives.
pub trait ArchiveForms: fmt::Debug + Sync {
    /// Begins the archive of a stream as it is at the time `now`.
    fn writer(&self, queue: &Queue, has_consumers: bool, now: Time) -> Box<dyn ArchiveWriter>;

    /// A reader of archives of the declared stream, whose messages have at most this many bytes, headers and body. It
    /// checks the consumers.
    fn reader(
        &self,
        declared: &DeclaredStream,
        message_bytes_max: usize,
        now: Time,
    ) -> Box<dyn ArchiveReader>;
}

/// How the transfer of an archive to a client has ended.
#[derive(Debug, Clone, Copy)]
pub enum TransferEnd<'a> {
    /// The archive was sent, in at least one piece, or in none.
    Sent {
        /// Whole pieces were sent.
        has_pieces: bool,
    },
    /// Nobody subscribes to the pieces.
    NoReader,
    /// The client does not answer the pieces.
    NoAnswer,
    /// The broker failed.
    Failed(&'a str),
}

/// What an advisory tells of a transfer that has ended.
#[derive(Debug, Clone)]
pub struct TransferFacts<'a> {
    /// A stream was restored, not sent.
    pub is_restore: bool,
    /// The name of the stream.
    pub stream: &'a str,
    /// The user of the client.
    pub user: &'a str,
    /// When it began.
    pub began: Time,
    /// When it ended.
    pub ended: Time,
    /// Bytes that a restore has taken.
    pub bytes: Option<u64>,
    /// Why it failed.
    pub error: Option<String>,
}

/// A protocol's words in the dialogue with a client that gets or sends an archive.
pub trait TransferWords: fmt::Debug + Sync {
    /// A message of the broker's own: a piece, or an answer. Reply subject and header block may be empty.
    fn message(&self, reply: &[u8], block: &[u8], body: Vec<u8>) -> StreamForm;

    /// The begin of the subjects by which the client answers pieces; `token` is unpredictable.
    fn ack_subject(&self, stream: &str, token: &str) -> String;

    /// The header block of the empty message behind the last piece.
    fn end(&self, end: TransferEnd<'_>) -> Vec<u8>;

    /// The answer to a request to send or to restore a stream, which has failed.
    fn refused(&self, is_restore: bool, error: &str) -> Vec<u8>;

    /// The answer to a piece of a restore that has failed.
    fn piece_refused(&self, error: &str) -> Vec<u8>;

    /// The answer to the last piece of a restore.
    fn restored(&self, queue: &Queue, now: Time) -> Vec<u8>;

    /// Subject and body of the advisory that a transfer has ended; `id` is unpredictable.
    fn advisory(&self, facts: &TransferFacts<'_>, id: [u8; 16]) -> (Vec<u8>, Vec<u8>);
}
