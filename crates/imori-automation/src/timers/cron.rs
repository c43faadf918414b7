//! Cron timers. They fire at the same moments as APScheduler 3's, which StackStorm uses.
//!
//! The search goes from the year to the second. A field without a value from where it stands carries into the field
//! before it. Carries add to the time in UTC and skipped hours count as if they existed, also where that makes
//! APScheduler pass over a firing on the day after clocks change.

use jiff::civil::DateTime;

use super::field::Field;
use super::unit::FieldUnit;
use super::zone::Zone;
use crate::limits::CRON_STEPS_MAX;
use crate::times::Timestamp;
use crate::value::{Map, Value};

/// The fields of a cron timer and its time zone.
#[derive(Debug, Clone, PartialEq)]
pub struct Cron {
    fields: Box<[Field; 8]>,
    zone: Zone,
}

/// A time of the zone. `is_second` tells which of two equal ones it is where clocks are set back.
#[derive(Debug, Clone, Copy)]
struct Local {
    datetime: DateTime,
    is_second: bool,
}

impl Cron {
    /// The names of the fields.
    pub(super) fn parameters() -> [&'static str; 8] {
        FieldUnit::ALL.map(FieldUnit::name)
    }

    /// Reads the fields. One that is absent is `*`, or its least value where only less significant ones follow.
    pub(super) fn read(parameters: &Map, zone: Zone) -> Result<Cron, String> {
        let given = FieldUnit::ALL.map(|place| parameters.get(place.name()).filter(|value| !value.is_null()));
        // Where no field is given, none is less significant than the last one.
        let last_given = given.iter().rposition(Option::is_some).unwrap_or(given.len());
        let mut fields = Vec::with_capacity(given.len());
        for (index, (place, value)) in FieldUnit::ALL.into_iter().zip(given).enumerate() {
            fields.push(match value {
                None if index > last_given => Field::default_of(place),
                None => Field::any(place),
                Some(Value::String(text)) => Field::read(place, text)?,
                Some(Value::Int(number)) => Field::read(place, &number.to_string())?,
                Some(other) => {
                    let name = place.name();
                    return Err(format!("`{name}` is {other}; use a whole number or a text as \"*/5\""));
                }
            });
        }
        let fields: Box<[Field; 8]> =
            fields.into_boxed_slice().try_into().expect("there is a field for each place");
        Ok(Cron { fields, zone })
    }

    /// The first firing at `start` or later.
    pub(super) fn next_from(&self, start: Timestamp) -> Option<Timestamp> {
        let whole = start.to_jiff().as_second() + i64::from(start.to_jiff().subsec_nanosecond() > 0);
        let mut at = self.local(jiff::Timestamp::from_second(whole).ok()?);
        let mut index = 0;
        for _ in 0..CRON_STEPS_MAX {
            let Some(field) = self.fields.get(index) else {
                return self.zone.instant(at.datetime, at.is_second).and_then(Timestamp::from_jiff);
            };
            let place = field.place();
            let current = place.value(at.datetime);
            match field.next_value(at.datetime) {
                None => (at, index) = self.carry(at, index.checked_sub(1)?)?,
                Some(next) if next <= current => index += 1,
                Some(next) if place.is_real() => {
                    at.datetime = with_minimum_after(at.datetime, place, next)?;
                    index += 1;
                }
                Some(_) => (at, index) = self.carry(at, index)?,
            }
        }
        None
    }

    /// Adds one to the field at `index`, or to one before it that is not at its end, and gives that one's index.
    fn carry(&self, at: Local, index: usize) -> Option<(Local, usize)> {
        let places = FieldUnit::ALL.get(..=index)?;
        let is_free =
            |place: &FieldUnit| place.is_real() && place.value(at.datetime) < place.maximum(at.datetime);
        let index = places.iter().rposition(is_free)?;
        let place = *places.get(index)?;
        let target = with_minimum_after(at.datetime, place, place.value(at.datetime) + 1)?;
        let seconds = target.duration_since(at.datetime);
        let moment = self.zone.instant(at.datetime, at.is_second)?.checked_add(seconds).ok()?;
        Some((self.local(moment), index))
    }

    fn local(&self, moment: jiff::Timestamp) -> Local {
        let (datetime, is_second) = self.zone.local(moment);
        Local { datetime, is_second }
    }
}

/// The time with `value` at `place`, and the least values after it.
fn with_minimum_after(at: DateTime, place: FieldUnit, value: i16) -> Option<DateTime> {
    let kept = |other: FieldUnit, now: i16| match other.cmp(&place) {
        std::cmp::Ordering::Less => now,
        std::cmp::Ordering::Equal => value,
        std::cmp::Ordering::Greater => other.minimum(),
    };
    let byte = |other: FieldUnit, now: i8| i8::try_from(kept(other, i16::from(now))).ok();
    let (month, day) = (byte(FieldUnit::Month, at.month())?, byte(FieldUnit::Day, at.day())?);
    let (hour, minute) = (byte(FieldUnit::Hour, at.hour())?, byte(FieldUnit::Minute, at.minute())?);
    let second = byte(FieldUnit::Second, at.second())?;
    DateTime::new(kept(FieldUnit::Year, at.year()), month, day, hour, minute, second, 0).ok()
}
