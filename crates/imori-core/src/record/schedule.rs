//! The schedule of a message that its stream publishes again.

use std::time::Duration;

use super::fields::{Fields, RecordError};
use super::optional::{OptionalReader, OptionalWriter};
use crate::message::{Calendar, Schedule, ScheduleTimes, ScheduleTtl};
use crate::name::Name;
use crate::time::Time;

const VERSION: u8 = 1;

/// Writes a schedule.
pub(super) fn push_schedule(out: &mut Vec<u8>, schedule: &Schedule) {
    let Schedule { times, target, source, ttl, is_rollup } = schedule;
    let mut fields = OptionalWriter::new(VERSION);
    fields.bytes(Some(target.as_bytes()));
    let (at, every, calendar) = match times {
        ScheduleTimes::At(time) => (Some(*time), None, None),
        ScheduleTimes::Every(interval) => (None, Some(*interval), None),
        ScheduleTimes::Calendar(calendar) => (None, None, Some(calendar)),
    };
    fields.number(at.map(|time| time.0));
    fields.duration(every);
    for of in FIELDS {
        fields.number(calendar.map(of));
    }
    fields.flag(calendar.is_some_and(|calendar| calendar.is_either_day));
    fields.bytes(source.as_ref().map(Name::as_bytes));
    let (never, after) = match ttl {
        None => (false, None),
        Some(ScheduleTtl::Never) => (true, None),
        Some(ScheduleTtl::After(time)) => (false, Some(*time)),
    };
    fields.flag(never);
    fields.duration(after);
    fields.flag(*is_rollup);
    fields.finish(out);
}

const FIELDS: [fn(&Calendar) -> u64; 6] = [
    |calendar| calendar.seconds,
    |calendar| calendar.minutes,
    |calendar| calendar.hours,
    |calendar| calendar.days,
    |calendar| calendar.months,
    |calendar| calendar.weekdays,
];

/// Reads a schedule.
///
/// # Errors
/// [`RecordError`].
pub(super) fn schedule(fields: &mut Fields<'_>) -> Result<Schedule, RecordError> {
    const UNKNOWN: RecordError = RecordError::Unknown("schedule");
    let mut fields = OptionalReader::new("schedule", fields, VERSION)?;
    let target = fields.bytes()?.map(Name::new).ok_or(UNKNOWN)?;
    let (at, every) = (fields.number()?, fields.duration()?);
    let mut numbers = [None; 6];
    for number in &mut numbers {
        *number = fields.number()?;
    }
    let is_either_day = fields.flag();
    let times = match (at, every, numbers) {
        (Some(time), None, _) => ScheduleTimes::At(Time(time)),
        (None, Some(interval), _) if interval >= Duration::from_secs(1) => ScheduleTimes::Every(interval),
        (
            None,
            None,
            [Some(seconds), Some(minutes), Some(hours), Some(days), Some(months), Some(weekdays)],
        ) => {
            let calendar = Calendar { seconds, minutes, hours, days, months, weekdays, is_either_day };
            ScheduleTimes::Calendar(calendar)
        }
        _ => return Err(UNKNOWN),
    };
    let source = fields.bytes()?.map(Name::new);
    let ttl = match (fields.flag(), fields.duration()?) {
        (false, None) => None,
        (true, None) => Some(ScheduleTtl::Never),
        (false, Some(time)) => Some(ScheduleTtl::After(time)),
        (true, Some(_)) => return Err(UNKNOWN),
    };
    let is_rollup = fields.flag();
    fields.finish()?;
    Ok(Schedule { times, target, source, ttl, is_rollup })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A schedule of each kind.
    pub(in crate::record) fn schedules() -> Vec<Schedule> {
        let calendar = Calendar {
            seconds: 1,
            minutes: u64::MAX,
            hours: 3,
            days: 4,
            months: 5,
            weekdays: 6,
            is_either_day: true,
        };
        let target = Name::from("jobs.now");
        vec![
            Schedule {
                times: ScheduleTimes::At(Time(u64::MAX)),
                target: target.clone(),
                source: None,
                ttl: None,
                is_rollup: false,
            },
            Schedule {
                times: ScheduleTimes::Every(Duration::from_secs(90)),
                target: target.clone(),
                source: Some(Name::from("a")),
                ttl: Some(ScheduleTtl::Never),
                is_rollup: true,
            },
            Schedule {
                times: ScheduleTimes::Calendar(calendar),
                target,
                source: None,
                ttl: Some(ScheduleTtl::After(Duration::from_secs(5))),
                is_rollup: false,
            },
        ]
    }

    #[test]
    fn schedules_are_read_as_written() {
        for expected in schedules() {
            let mut bytes = vec![1];
            push_schedule(&mut bytes, &expected);
            let read = |bytes: &[u8]| schedule(&mut Fields::of(bytes, 1)?);
            assert_eq!(read(&bytes), Ok(expected));
            assert!((1..bytes.len()).all(|len| read(&bytes[..len]).is_err()));
        }
    }
}
