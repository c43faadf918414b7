//! The archive of a stream: what STREAM.SNAPSHOT sends and STREAM.RESTORE takes, as nats-server has it since 2.15.
//!
//! An archive is S2 frames ([`frames`]) around entries ([`entry`]): the stream's state, its consumers, its messages by
//! rising sequence number, and an end. Reader and writer work on bytes in memory and keep one frame and one entry.

mod reader;
mod writer;
mod consumer;
mod entry;
mod frames;
mod block;

pub use consumer::ArchivedConsumer;
pub use reader::{ArchiveItem, ArchiveReader, MessageEntry};
pub use writer::ArchiveWriter;
