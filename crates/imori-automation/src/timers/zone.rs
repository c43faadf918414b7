//! Time zones of the bundled tz database, with the conversions of Python's `zoneinfo`.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};

/// A time zone.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Zone(TimeZone);

impl Zone {
    pub(super) const UTC: Zone = Zone(TimeZone::UTC);

    /// The zone of this name, as `Europe/Berlin`. Names are those that `jiff` bundles, so that a system without zone
    /// files has the same.
    pub(super) fn named(name: &str) -> Option<Zone> {
        TimeZoneDatabase::bundled().get(name).ok().map(Zone)
    }

    /// Date and time of a moment, and whether it is the second moment with these, because clocks were set back.
    pub(super) fn local(&self, moment: Timestamp) -> (DateTime, bool) {
        let offset = self.0.to_offset(moment);
        let datetime = offset.to_datetime(moment);
        let is_second = match self.0.to_ambiguous_timestamp(datetime).offset() {
            AmbiguousOffset::Fold { before, after } => before != after && offset == after,
            AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Gap { .. } => false,
        };
        (datetime, is_second)
    }

    /// The moment of a date and time. In an hour that exists twice, `is_second` selects; in one that clocks skip it
    /// counts from the offset before or, with `is_second`, after that.
    pub(super) fn instant(&self, datetime: DateTime, is_second: bool) -> Option<Timestamp> {
        let offset = match self.0.to_ambiguous_timestamp(datetime).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Gap { before, after } | AmbiguousOffset::Fold { before, after } => {
                if is_second {
                    after
                } else {
                    before
                }
            }
        };
        offset.to_timestamp(datetime).ok()
    }
}
