//! An expression of a field of a cron timer, by the rules of APScheduler 3. Few of its forms mean the same in the cron
//! of nats-server, which schedules of messages have, so that one parser for both would decide by dialect in each of them.

use jiff::civil::DateTime;

use super::unit::FieldUnit;

/// Which values a field may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expression {
    /// `*`, `*/5`, `3`, `3-9`, `3-9/2`, `3/2`, `jan-mar`, `mon`: from `first` to `last`, or to the end of the field.
    Range { first: Option<i16>, last: Option<i16>, step: Option<i16> },
    /// `2nd fri`, `last sun`: this weekday of the month; `nth` counts from 0 and is `None` for the last one.
    Weekday { nth: Option<i16>, weekday: i16 },
    /// `last`: the last day of the month.
    LastDay,
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const ORDINALS: [(&str, Option<i16>); 6] = [
    ("1st", Some(0)),
    ("2nd", Some(1)),
    ("3rd", Some(2)),
    ("4th", Some(3)),
    ("5th", Some(4)),
    ("last", None),
];

impl Expression {
    /// Every value.
    pub(super) const ANY: Expression = Expression::Range { first: None, last: None, step: None };

    /// One value.
    pub(super) fn only(value: i16) -> Expression {
        Expression::Range { first: Some(value), last: Some(value), step: None }
    }

    /// Reads one expression of a list.
    pub(super) fn read(place: FieldUnit, text: &str) -> Result<Expression, String> {
        let named = match place {
            _ if text.is_empty() => None,
            FieldUnit::Month => Expression::read_names(place, text, &MONTHS, 1)?,
            FieldUnit::Day => Expression::read_day(text)?,
            FieldUnit::DayOfWeek => Expression::read_names(place, text, &WEEKDAYS, 0)?,
            _ => None,
        };
        match named {
            Some(expression) => Ok(expression),
            None => Expression::read_numbers(place, text),
        }
    }

    /// `jan-mar`. What follows the names is ignored, as APScheduler ignores it.
    fn read_names(
        place: FieldUnit,
        text: &str,
        names: &[&str],
        least: i16,
    ) -> Result<Option<Expression>, String> {
        let (first, rest) = letters(text);
        if first.is_empty() {
            return Ok(None);
        }
        let last = rest.strip_prefix('-').map_or("", |rest| letters(rest).0);
        let number = |name: &str| {
            let index = (least..)
                .zip(names)
                .find(|(_, known)| name.eq_ignore_ascii_case(known))
                .map(|(index, _)| index);
            index.ok_or_else(|| unknown_name(place, name, names))
        };
        let first = number(first)?;
        let last = if last.is_empty() { first } else { number(last)? };
        if first > last {
            return Err(descending(place, text));
        }
        Ok(Some(Expression::Range { first: Some(first), last: Some(last), step: None }))
    }

    /// `last`, `2nd fri`. What follows `last` or the name is ignored, as APScheduler ignores it.
    fn read_day(text: &str) -> Result<Option<Expression>, String> {
        let ordinal = ORDINALS.iter().find_map(|(name, nth)| {
            let rest = text.get(name.len()..)?;
            text.get(..name.len())?.eq_ignore_ascii_case(name).then_some((*nth, rest))
        });
        let Some((nth, rest)) = ordinal else { return Ok(None) };
        let name = rest.trim_start_matches(' ');
        let name_end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
        let name = name.get(..name_end).unwrap_or_default();
        if rest.starts_with(' ') && !name.is_empty() {
            let weekday = (0..).zip(WEEKDAYS).find(|(_, known)| name.eq_ignore_ascii_case(known));
            let (weekday, _) = weekday.ok_or_else(|| unknown_name(FieldUnit::Day, name, &WEEKDAYS))?;
            return Ok(Some(Expression::Weekday { nth, weekday }));
        }
        Ok(nth.is_none().then_some(Expression::LastDay))
    }

    /// `*`, `*/5`, `3`, `3-9`, `3-9/2`, `3/2`.
    fn read_numbers(place: FieldUnit, text: &str) -> Result<Expression, String> {
        let name = place.name();
        let wrong = || format!("`{name}` has `{text}`; use a list of numbers, ranges `a-b`, and steps `*/n`");
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => (range, Some(number(step).ok_or_else(wrong)?)),
            None => (text, None),
        };
        let (first, last) = if range == "*" {
            (None, None)
        } else if let Some((first, last)) = range.split_once('-') {
            (Some(number(first).ok_or_else(wrong)?), Some(number(last).ok_or_else(wrong)?))
        } else {
            let first = number(range).ok_or_else(wrong)?;
            (Some(first), if step.is_none() { Some(first) } else { None })
        };
        let (least, most) = (place.minimum(), place.limit());
        if [first, last].into_iter().flatten().any(|value| value < least || value > most) {
            return Err(format!("`{name}` has `{text}`; use values from {least} to {most}"));
        }
        if first.zip(last).is_some_and(|(first, last)| first > last) {
            return Err(descending(place, text));
        }
        // APScheduler takes a last value of 0 for none when it checks the step.
        let width = last.filter(|last| *last != 0).unwrap_or(most) - first.unwrap_or(least);
        if let Some(step) = step.filter(|step| *step == 0 || *step > width) {
            return Err(format!("`{name}` has `{text}`; the step {step} has to be from 1 to {width}"));
        }
        Ok(Expression::Range { first, last, step })
    }

    /// The next value from that of `at` on.
    pub(super) fn next_value(&self, place: FieldUnit, at: DateTime) -> Option<i16> {
        match *self {
            Expression::Range { first, last, step } => {
                let least = first.map_or(place.minimum(), |first| first.max(place.minimum()));
                let most = last.map_or(place.maximum(at), |last| last.min(place.maximum(at)));
                let start = place.value(at).max(least);
                let next = start + step.map_or(0, |step| (step - (start - least) % step) % step);
                (next <= most).then_some(next)
            }
            Expression::Weekday { nth, weekday } => {
                let date = at.date();
                let days = i16::from(date.days_in_month());
                let first_weekday = i16::from(date.first_of_month().weekday().to_monday_zero_offset());
                let first = 1 + (weekday - first_weekday).rem_euclid(7);
                let day = first + 7 * nth.unwrap_or((days - first) / 7);
                (day <= days && day >= i16::from(date.day())).then_some(day)
            }
            Expression::LastDay => Some(i16::from(at.date().days_in_month())),
        }
    }
}

/// The letters at the beginning, and the rest.
fn letters(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    text.split_at(end)
}

/// A number of digits only; a large one is as good as the largest.
fn number(text: &str) -> Option<i16> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(i16::MAX))
}

fn unknown_name(place: FieldUnit, name: &str, names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    format!("`{}` has `{name}`; use one of {}", place.name(), names.join(", "))
}

fn descending(place: FieldUnit, text: &str) -> String {
    format!("`{}` has `{text}`; write the smaller value of a range first", place.name())
}
