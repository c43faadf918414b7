//! The messages of a page that wait on disk, as their lane knows them.

use super::pages::PageId;

/// Messages that follow each other on disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PagePart {
    pub(crate) id: PageId,
    /// The key of the first of them, where it is not the first of the page.
    pub(crate) first: Option<u64>,
    pub(crate) len: u32,
    /// The number of the first of them, or one below.
    pub(crate) start: u64,
    /// The number of the last of them, or one above.
    pub(crate) last: u64,
    /// Bytes that they kept in memory, or about so many.
    pub(crate) memory: usize,
    /// Bytes of their bodies; 0 where that is not known, as after a restart.
    pub(crate) body_bytes: u64,
    /// The page is being read.
    pub(crate) is_asked: bool,
}
