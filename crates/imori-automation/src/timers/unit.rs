//! The units of date and time that fields of a cron timer are for.

use jiff::civil::DateTime;

/// The unit of a field, most significant first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FieldUnit {
    Year,
    Month,
    Day,
    Week,
    DayOfWeek,
    Hour,
    Minute,
    Second,
}

impl FieldUnit {
    pub(super) const ALL: [FieldUnit; 8] = [
        FieldUnit::Year,
        FieldUnit::Month,
        FieldUnit::Day,
        FieldUnit::Week,
        FieldUnit::DayOfWeek,
        FieldUnit::Hour,
        FieldUnit::Minute,
        FieldUnit::Second,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            FieldUnit::Year => "year",
            FieldUnit::Month => "month",
            FieldUnit::Day => "day",
            FieldUnit::Week => "week",
            FieldUnit::DayOfWeek => "day_of_week",
            FieldUnit::Hour => "hour",
            FieldUnit::Minute => "minute",
            FieldUnit::Second => "second",
        }
    }

    /// Whether it is part of a date and time, and does not only follow from them.
    pub(super) fn is_real(self) -> bool {
        !matches!(self, FieldUnit::Week | FieldUnit::DayOfWeek)
    }

    pub(super) const fn minimum(self) -> i16 {
        match self {
            FieldUnit::Year => 1970,
            FieldUnit::Month | FieldUnit::Day | FieldUnit::Week => 1,
            FieldUnit::DayOfWeek | FieldUnit::Hour | FieldUnit::Minute | FieldUnit::Second => 0,
        }
    }

    /// The largest value that an expression may have.
    pub(super) const fn limit(self) -> i16 {
        match self {
            FieldUnit::Year => 9999,
            FieldUnit::Month => 12,
            FieldUnit::Day => 31,
            FieldUnit::Week => 53,
            FieldUnit::DayOfWeek => 6,
            FieldUnit::Hour => 23,
            FieldUnit::Minute | FieldUnit::Second => 59,
        }
    }

    /// The largest value in the month of `at`.
    pub(super) fn maximum(self, at: DateTime) -> i16 {
        match self {
            FieldUnit::Day => i16::from(at.date().days_in_month()),
            _ => self.limit(),
        }
    }

    pub(super) fn value(self, at: DateTime) -> i16 {
        match self {
            FieldUnit::Year => at.year(),
            FieldUnit::Month => i16::from(at.month()),
            FieldUnit::Day => i16::from(at.day()),
            FieldUnit::Week => i16::from(at.date().iso_week_date().week()),
            FieldUnit::DayOfWeek => i16::from(at.date().weekday().to_monday_zero_offset()),
            FieldUnit::Hour => i16::from(at.hour()),
            FieldUnit::Minute => i16::from(at.minute()),
            FieldUnit::Second => i16::from(at.second()),
        }
    }
}
