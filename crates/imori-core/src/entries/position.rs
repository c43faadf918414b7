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
pub(crate) fn restored_position(lsn: Lsn, after: u64, end: u64) -> u64 {
    // Before the page that it stands before now, also if that has records of smaller numbers.
    first_position(lsn).min(end.saturating_sub(1)).max(after + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_stands_behind_what_is_before_it_and_before_what_is_behind() {
        for (lsn, after, end, expected) in [
            (4, 0, u64::MAX, 4 << 8),
            (4, (4 << 8) - 1, u64::MAX, 4 << 8),
            // Its record is older than that of the one before.
            (4, 4 << 8, u64::MAX, (4 << 8) + 1),
            (4, 9 << 8, u64::MAX, (9 << 8) + 1),
            (4, 0, 3 << 8, (3 << 8) - 1),
            (4, 0, 4 << 8, (4 << 8) - 1),
            (4, 0, (4 << 8) + 1, 4 << 8),
        ] {
            let position = restored_position(Lsn(lsn), after, end);
            assert_eq!(position, expected, "{lsn} behind {after} and before {end}");
        }
    }
}
