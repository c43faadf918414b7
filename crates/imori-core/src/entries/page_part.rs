//! The messages of a page that wait on disk, as their lane knows them.

use super::pages::PageId;

/// Messages that follow each other on disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PagePart {
    pub(crate) id: PageId,
    /// The key of the first message of the part, unless the part begins with the page.
    pub(crate) first: Option<u64>,
    pub(crate) len: u32,
    /// The number of the first message, or a lower one.
    pub(crate) start: u64,
    /// The number of the last message, or a higher one.
    pub(crate) last: u64,
    /// Bytes that the messages kept in memory, approximately.
    pub(crate) memory: usize,
    /// Bytes of the messages' bodies; 0 if that is unknown, as after a restart.
    pub(crate) body_bytes: u64,
    /// The page is being read.
    pub(crate) is_asked: bool,
}
