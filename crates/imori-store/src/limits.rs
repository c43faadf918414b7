//! The store's limits, each with its unit and reason.

use std::time::Duration;

/// Alignment in bytes of the file header and batches, so that no write touches an acknowledged
/// neighbour.
pub const BLOCK_BYTES: usize = 4096;

/// Bytes that a device writes atomically: data that must change at once is kept in one sector.
pub const SECTOR_BYTES: usize = 512;

/// Bytes of the smallest journal file: with less, the store would mostly roll files.
pub const FILE_BYTES_MIN: u64 = 1 << 20;

/// Largest journal file, in bytes; `imori store dump` holds one in memory.
pub const FILE_BYTES_MAX: u64 = 256 << 20;

/// Default bytes of a journal file.
pub const FILE_BYTES_DEFAULT: u64 = 64 << 20;

/// Bytes after which a batch takes no further record, so that the time of a flush stays bounded. A
/// larger record or group gets a batch of its own, up to the size of a file.
pub const BATCH_BYTES_GOAL: usize = 4 << 20;

/// Files kept ready, so that a roll allocates nothing: one to roll to, and one while that is
/// replaced. The third is the reserve of a full disk: queued records go into the second and settles
/// into the third, so that a full broker can be drained.
pub const READY_FILES: usize = 3;

/// Maximum number of ready and free files: as many as one checkpoint frees, besides those that were
/// ready. Further files are removed, so that a drained backlog gives back its space.
pub const SPARE_FILES_MAX: usize = 7;

/// Maximum number of ready files while space is short. Further freed files are removed, because
/// space may be needed by segments to which their records were copied.
pub const SHORT_FILES_MAX: usize = 2;

/// Bytes of a file for settles on a full disk: enough for hundreds, or for a dozen if each is
/// synced alone. A longer file would take the space of records that free some.
pub const SMALL_FILE_BYTES: usize = 64 << 10;

/// Time for which records are gathered for one batch while space is short. A batch takes whole
/// blocks, so settles that are committed one by one take a hundred times their size, which is more
/// than they free. Their confirms are later by as much.
pub const GATHER_TIME: Duration = Duration::from_millis(2);

/// Bytes of a full disk reserved for the checkpoint and the records before it, because it frees
/// files.
pub const CHECKPOINT_SPACE_BYTES: u64 = 256 << 10;

/// Files for which there must be space before dead letters start another file: one for settles and
/// the checkpoint, one for copies of the oldest file. If two files are ready, dead letters may
/// start one of them.
pub const MOVE_FILES_MIN: u64 = 3;

/// Files beyond the reserve for which there must be space, or publishers are stopped: one for a
/// file being created, one for segments of the file it replaces.
pub const SPACE_HIGH_FILES: u64 = 2;

/// Files beyond the reserve for which there must be space before publishers are resumed.
pub const SPACE_LOW_FILES: u64 = 4;

/// Bytes written and synced at once while a new file is filled with zeros; a concurrent commit
/// waits about as long.
pub const FILL_BYTES: usize = 256 << 10;

/// Bytes of one read of a whole file, so that the device reads one piece while another is verified.
pub const READ_BYTES: usize = 4 << 20;

/// Bytes of a journal file that recovery holds in memory at a time. A larger batch is held as a
/// whole.
pub const WINDOW_BYTES: usize = 1 << 20;

/// Bytes of such a window when only a few scattered messages are read.
pub const SMALL_WINDOW_BYTES: usize = 64 << 10;

/// Threads that read during recovery; more do not make a single device faster.
pub const READERS_MAX: usize = 4;

/// Bytes of the journal per reading thread; a smaller part is not worth a thread.
pub const READER_BYTES: u64 = 8 << 20;

/// Ranges that a report lists individually; further ones are only counted.
pub const REPORTED_RANGES_MAX: usize = 16;

/// Bytes of the damage note; further findings appear only in the log.
pub const DAMAGE_NOTE_BYTES_MAX: usize = 64 << 10;

/// Target size of a page in bytes: worth one read, and small enough to hold one for each queue that
/// is read ahead. A larger message is a page by itself.
pub const PAGE_BYTES_GOAL: usize = 256 << 10;

/// Alignment of pages in bytes: wastes little, and makes a search for pages take few steps.
pub const PAGE_ALIGN_BYTES: usize = 64;

/// Target size of a segment in bytes: large, so that folders stay small and syncs rare; small, so
/// that a single needed page holds back little space.
pub const SEGMENT_BYTES_GOAL: usize = 16 << 20;

/// Largest segment in bytes, because salvage holds a damaged one in memory.
pub const SEGMENT_BYTES_MAX: u64 = 512 << 20;

/// Most pages of a segment. Its table is held in memory, and counts them in 16 bits.
pub const SEGMENT_PAGES_MAX: usize = 4096;

/// Bytes of zeros by which the file of a manifest grows. On a full disk the checkpoints that free space write into
/// these zeros, a sector or a few each; at least half of them are always left.
pub const MANIFEST_FILL_BYTES: usize = 64 << 10;

/// Bytes of changes after which a manifest is written anew, unless its list of all segments is longer. So a start
/// reads little, and a checkpoint writes what changed.
pub const MANIFEST_LOG_BYTES: u64 = 256 << 10;

/// Bytes of one write of a segment, so that the buffer stays in the processor's cache while it is filled.
pub const SEGMENT_WRITE_BYTES: usize = 1 << 20;

/// Bytes that are read first of a segment that is opened: the header and the table of up to 127 pages.
pub const SEGMENT_HEAD_BYTES: usize = 16 << 10;

/// Bytes of pages that stay in memory after a read, for other readers of the same pages: 32 of the target size.
/// Beyond it the least recently used page is removed. Queues read each page once and gain nothing; cursors that follow
/// each other read the device once. All of it is little beside the memory of the smallest broker.
pub const PAGE_CACHE_BYTES_MAX: usize = 8 << 20;

/// Bytes of the largest page that stays there. A larger one is one large message, and would displace pages that many
/// readers use.
pub const PAGE_CACHE_PAGE_BYTES_MAX: usize = 1 << 20;

/// Files of segments that stay open after a read, so that a reader does not open one for each page. Beyond it the
/// file that was used least recently is closed. Few, beside the descriptors of connections.
pub const SEGMENT_FILES_OPEN_MAX: usize = 64;

/// Bytes of the definitions that redb keeps in memory: all of them where there are few, and never much.
pub const DEFINITIONS_CACHE_BYTES: usize = 16 << 20;

/// Reads of a definitions file during an inspection, which bounds a cycle of pages: the number of pages in a file of
/// 64 GiB.
pub const DEFINITIONS_READS_MAX: u64 = 16 << 20;
