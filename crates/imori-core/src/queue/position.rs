//! Where a message stands among all that its queue had in any life: pages are put in order by it.

use crate::confirm::Lsn;

/// The lowest position of what has this record. Cells overtake each other between the journal and a queue, so that
/// there have to be more positions than records.
pub(crate) fn first_position(lsn: Lsn) -> u64 {
    const BITS: u32 = 8;
    // The journal failed, and nothing will be written any more.
    if lsn == Lsn::NEVER { 0 } else { lsn.0 << BITS }
}

/// The position of a restored message behind another, in front of a page that begins at `end`.
pub(super) fn restored_position(lsn: Lsn, after: u64, end: u64) -> u64 {
    // Before the page that it stands before now, also if that has records of smaller numbers.
    first_position(lsn).min(end.saturating_sub(1)).max(after + 1)
}
