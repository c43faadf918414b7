//! Every limit of the store, with its unit and its reason.

/// Bytes to which the file header and batches are aligned: no write touches an acknowledged neighbour.
pub const BLOCK_BYTES: usize = 4096;

/// Bytes that a device writes whole or not at all: what has to change at once stands in one sector.
pub const SECTOR_BYTES: usize = 512;

/// Bytes of the smallest journal file: below that the store would do little but roll.
pub const FILE_BYTES_MIN: u64 = 1 << 20;

/// Bytes of the largest journal file: `imori store dump` holds one in memory.
pub const FILE_BYTES_MAX: u64 = 256 << 20;

/// Bytes of a journal file where nothing else is asked for.
pub const FILE_BYTES_DEFAULT: u64 = 64 << 20;

/// Bytes at which a batch takes no further record, so that a flush does not grow without end. A larger record
/// or group has a batch of its own, up to the size of a file.
pub const BATCH_BYTES_GOAL: usize = 4 << 20;

/// Files that are kept ready, so that a roll allocates nothing: one to roll to, one while that is replaced.
/// The third is the reserve of a full disk. Queued records go into the second and settles into the third, so
/// that a full broker can be drained.
pub const READY_FILES: usize = 3;

/// Files that are kept ready or free at most: as many as one checkpoint frees, beside those that were ready.
/// Further files are removed, so that a backlog that is gone gives its space back.
pub const SPARE_FILES_MAX: usize = 7;

/// Files that are kept ready at most while space is short. Further freed files are removed: they may have
/// been copied to a segment for that.
pub const SHORT_FILES_MAX: usize = 2;

/// Bytes of a file on a full disk, for settles: hundreds of them, or a dozen if each is synced alone. A
/// longer file would take the space of records that free some.
pub const SMALL_FILE_BYTES: usize = 64 << 10;

/// Bytes of a full disk reserved for the checkpoint and the records before it: a checkpoint frees files.
pub const CHECKPOINT_SPACE_BYTES: u64 = 256 << 10;

/// Files for which there has to be space before dead letters begin another one. One is for settles and the
/// checkpoint, one for copies of the oldest file. Where two files are ready, dead letters may begin one of
/// them.
pub const MOVE_FILES_MIN: u64 = 3;

/// Files beyond the reserve for which there has to be space, or publishers are stopped. One is for a file
/// being created, one for segments of the file it replaces.
pub const SPACE_HIGH_FILES: u64 = 2;

/// Files beyond the reserve for which there has to be space before publishers go on again.
pub const SPACE_LOW_FILES: u64 = 4;

/// Bytes of one write and sync while a new file is filled with zeros: a commit beside it waits about as long.
pub const FILL_BYTES: usize = 256 << 10;

/// Bytes of one read of a whole file: the device works on one piece while another is verified.
pub const READ_BYTES: usize = 4 << 20;

/// Bytes of a journal file that recovery holds in memory at a time; a larger batch is held whole.
pub const WINDOW_BYTES: usize = 1 << 20;

/// Bytes of such a window when only a few distant messages are wanted.
pub const SMALL_WINDOW_BYTES: usize = 64 << 10;

/// Threads that read at recovery: more make one device no faster.
pub const READERS_MAX: usize = 4;

/// Bytes of the journal for each of these threads: less is read before a thread is made.
pub const READER_BYTES: u64 = 8 << 20;

/// Ranges that a report names one by one; more are counted.
pub const REPORTED_RANGES_MAX: usize = 16;

/// Bytes of the damage note; further findings are in the log alone.
pub const DAMAGE_NOTE_BYTES_MAX: usize = 64 << 10;

/// Bytes of a page that its owner aims at: worth one read, and little to hold for each queue that is read
/// ahead. A larger message is a page by itself.
pub const PAGE_BYTES_GOAL: usize = 256 << 10;

/// Bytes to which pages are aligned: small ones waste little, and a search for them takes few steps.
pub const PAGE_ALIGN_BYTES: usize = 64;

/// Bytes of a segment that its owner aims at. Large, so that folders stay small and syncs rare; small, so
/// that one needed page keeps little.
pub const SEGMENT_BYTES_GOAL: usize = 16 << 20;

/// Bytes of the largest segment, which is refused beyond: salvage holds a damaged one in memory.
pub const SEGMENT_BYTES_MAX: u64 = 512 << 20;

/// Pages of a segment; more are refused. Its table is held in memory, and counts them in 16 bits.
pub const SEGMENT_PAGES_MAX: usize = 4096;

/// Bytes of one write of a segment, so that the buffer stays in the processor's cache while it is filled.
pub const SEGMENT_WRITE_BYTES: usize = 1 << 20;

/// Bytes that are read first of a segment that is opened: the header and the table of up to 112 pages.
pub const SEGMENT_HEAD_BYTES: usize = 8 << 10;

/// Bytes of the definitions that redb keeps in memory: all of them where there are few, and never much.
pub const DEFINITIONS_CACHE_BYTES: usize = 16 << 20;

/// Reads of a definitions file during an inspection, so that a cycle of pages comes to an end. As many as a
/// file of 64 GiB has pages.
pub const DEFINITIONS_READS_MAX: u64 = 16 << 20;
