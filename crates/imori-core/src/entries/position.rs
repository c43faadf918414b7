//! Positions of messages, which hold across restarts and order the pages of a queue.

use crate::confirm::Lsn;

/// The lowest position of a message with this record. Cells overtake each other between the journal and a
/// queue, so there have to be more positions than records.
pub(crate) fn first_position(lsn: Lsn) -> u64 {
    const BITS: u32 = 8;
    // The journal failed, and nothing more will be written.
    if lsn == Lsn::NEVER { 0 } else { lsn.0 << BITS }
}

/// The position of a restored message behind position `after` and before a page that begins at `end`.
pub(crate) fn restored_position(lsn: Lsn, after: u64, end: u64) -> u64 {
    // The message stays before that page, even if the page has lower record numbers.
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
            // Its record is older than the one before it.
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
