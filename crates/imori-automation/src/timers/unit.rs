//! The places of date and time that fields of a cron timer are for.

use jiff::civil::DateTime;

/// The unit of a field, most significant first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Year,
    Month,
    Day,
    Week,
    DayOfWeek,
    Hour,
    Minute,
    Second,
}

impl Place {
    pub(super) const ALL: [Place; 8] = [
        Place::Year,
        Place::Month,
        Place::Day,
        Place::Week,
        Place::DayOfWeek,
        Place::Hour,
        Place::Minute,
        Place::Second,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Place::Year => "year",
            Place::Month => "month",
            Place::Day => "day",
            Place::Week => "week",
            Place::DayOfWeek => "day_of_week",
            Place::Hour => "hour",
            Place::Minute => "minute",
            Place::Second => "second",
        }
    }

    /// Whether the place is one of date and time, and does not only follow from them.
    pub(super) fn is_real(self) -> bool {
        !matches!(self, Place::Week | Place::DayOfWeek)
    }

    pub(super) const fn minimum(self) -> i16 {
        match self {
            Place::Year => 1970,
            Place::Month | Place::Day | Place::Week => 1,
            Place::DayOfWeek | Place::Hour | Place::Minute | Place::Second => 0,
        }
    }

    /// The largest value that an expression may have.
    pub(super) const fn limit(self) -> i16 {
        match self {
            Place::Year => 9999,
            Place::Month => 12,
            Place::Day => 31,
            Place::Week => 53,
            Place::DayOfWeek => 6,
            Place::Hour => 23,
            Place::Minute | Place::Second => 59,
        }
    }

    /// The largest value in the month of `at`.
    pub(super) fn maximum(self, at: DateTime) -> i16 {
        match self {
            Place::Day => i16::from(at.date().days_in_month()),
            _ => self.limit(),
        }
    }

    pub(super) fn value(self, at: DateTime) -> i16 {
        match self {
            Place::Year => at.year(),
            Place::Month => i16::from(at.month()),
            Place::Day => i16::from(at.day()),
            Place::Week => i16::from(at.date().iso_week_date().week()),
            Place::DayOfWeek => i16::from(at.date().weekday().to_monday_zero_offset()),
            Place::Hour => i16::from(at.hour()),
            Place::Minute => i16::from(at.minute()),
            Place::Second => i16::from(at.second()),
        }
    }
}
