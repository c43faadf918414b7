//! Times that are not written in ISO 8601, by the rules of `dateutil`: the month stands before the day, unless the
//! numbers say otherwise.

use jiff::civil::Date;

use super::iso_date::{Written, at, iso_offset};

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Parses a time; missing parts of the date are today's.
pub(super) fn parse(text: &str, today: Date) -> Option<Written> {
    let mut found = Found::default();
    let lower = text.to_lowercase();
    for word in lower.split([' ', '\t', '\n', ';']) {
        // A comma of a clock stands for the point of its fraction.
        match word.split_once(',') {
            Some((clock, fraction)) if clock.contains(':') && fraction.starts_with(is_digit) => {
                found.word(&format!("{clock}.{fraction}"))?;
            }
            _ => word.split(',').filter(|word| !word.is_empty()).try_for_each(|word| found.word(word))?,
        }
    }
    if found.dates.is_empty() && found.time.is_none() {
        return None;
    }
    let date = found.date(today)?;
    let (mut time, fraction) = found.time.unwrap_or_default();
    if let (Some(is_afternoon), [hour, ..]) = (found.is_afternoon, &mut time) {
        if !(1..=12).contains(hour) {
            return None;
        }
        *hour = *hour % 12 + if is_afternoon { 12 } else { 0 };
    }
    Some(Written { at: at(date, time, &fraction)?, offset: found.offset })
}

/// A part of a date.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Month(i16),
    /// A number with more than two digits.
    Year(i16),
    Number(i16),
}

#[derive(Default)]
struct Found {
    dates: Vec<Part>,
    time: Option<([i8; 3], String)>,
    is_afternoon: Option<bool>,
    offset: Option<i32>,
    has_weekday: bool,
}

impl Found {
    fn word(&mut self, word: &str) -> Option<()> {
        match word {
            "at" | "on" | "and" | "of" | "t" => return Some(()),
            "am" | "pm" => return self.half(word),
            "utc" | "gmt" | "z" => return self.put_offset(0),
            _ => {}
        }
        if let Some((date, time)) = word.split_once('t')
            && date.ends_with(is_digit)
            && time.starts_with(is_digit)
        {
            self.word(date)?;
            return self.word(time);
        }
        if word.contains(':') && word.starts_with(is_digit) {
            return self.clock(word);
        }
        if word.starts_with(['+', '-']) && self.time.is_some() {
            return self.put_offset(offset(word)?);
        }
        let parts: Vec<&str> = word.split(['-', '/', '.']).filter(|part| !part.is_empty()).collect();
        match parts.as_slice() {
            [part] => match ["am", "pm"].iter().find_map(|half| Some((part.strip_suffix(half)?, half))) {
                Some((hour, half)) if hour.starts_with(is_digit) => self.hour(hour, half),
                _ => self.part(part),
            },
            // Two numbers with a point are a fraction.
            [_, _] if word.contains('.') => None,
            [_, _] | [_, _, _] if self.dates.is_empty() => parts.iter().try_for_each(|part| self.part(part)),
            _ => None,
        }
    }

    /// A name, or a number that is a part of a date.
    fn part(&mut self, part: &str) -> Option<()> {
        let begins = |name: &&str| {
            part == *name || name.get(..3) == Some(part) || part == "sept" && *name == "september"
        };
        if let Some(month) = MONTHS.iter().position(begins) {
            return self.put(Part::Month(i16::try_from(month).ok()? + 1));
        }
        if WEEKDAYS.iter().any(begins) {
            self.has_weekday = true;
            return Some(());
        }
        let number =
            ["st", "nd", "rd", "th"].iter().find_map(|suffix| part.strip_suffix(suffix)).unwrap_or(part);
        if !number.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        match number.len() {
            1 | 2 => self.put(Part::Number(number.parse().ok()?)),
            3 | 4 => self.put(Part::Year(number.parse().ok()?)),
            8 | 12 | 14 if self.dates.is_empty() => self.compact(number),
            _ => None,
        }
    }

    fn put(&mut self, part: Part) -> Option<()> {
        let is_double =
            matches!(part, Part::Month(_)) && self.dates.iter().any(|known| matches!(known, Part::Month(_)));
        // The fourth can be an hour, with its half of the day behind it.
        if self.dates.len() >= 4 || is_double {
            return None;
        }
        self.dates.push(part);
        Some(())
    }

    /// `YYYYMMDD`, with hours and minutes, and with seconds.
    fn compact(&mut self, digits: &str) -> Option<()> {
        let part = |from: usize, to: usize| digits.get(from..to)?.parse::<i16>().ok();
        self.dates = vec![Part::Year(part(0, 4)?), Part::Month(part(4, 6)?), Part::Number(part(6, 8)?)];
        if digits.len() > 8 {
            let time = |from: usize| i8::try_from(part(from, from + 2).unwrap_or_default()).ok();
            self.time = Some(([time(8)?, time(10)?, time(12)?], String::new()));
        }
        Some(())
    }

    /// `10:30`, `10:30:15.5`, with `pm` or an offset behind it.
    fn clock(&mut self, word: &str) -> Option<()> {
        let len =
            word.bytes().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.')).count();
        let (clock, suffix) = word.split_at_checked(len)?;
        let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
        let mut parts = clock.split(':').map(|part| part.parse::<i8>().ok());
        let time = [parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?];
        if parts.next().is_some()
            || self.time.is_some()
            || !fraction.bytes().all(|byte| byte.is_ascii_digit())
        {
            return None;
        }
        self.time = Some((time, fraction.to_owned()));
        match suffix {
            "" => Some(()),
            "am" | "pm" => self.half(suffix),
            "utc" | "gmt" => self.put_offset(0),
            _ => self.put_offset(offset(suffix)?),
        }
    }

    /// `10pm`.
    fn hour(&mut self, hour: &str, half: &str) -> Option<()> {
        if self.time.is_some() {
            return None;
        }
        self.time = Some(([hour.parse().ok()?, 0, 0], String::new()));
        self.half(half)
    }

    /// `am` or `pm` behind a time, or behind the number of an hour.
    fn half(&mut self, word: &str) -> Option<()> {
        if self.time.is_none() {
            let Some(Part::Number(hour)) = self.dates.pop() else { return None };
            self.time = Some(([i8::try_from(hour).ok()?, 0, 0], String::new()));
        }
        self.is_afternoon.replace(word == "pm").is_none().then_some(())
    }

    fn put_offset(&mut self, offset: i32) -> Option<()> {
        self.offset.replace(offset).is_none().then_some(())
    }

    /// The date of which the parts stand in this order.
    fn date(&self, today: Date) -> Option<Date> {
        let number = |part: &Part| match part {
            Part::Month(number) | Part::Year(number) | Part::Number(number) => *number,
        };
        let is_year = |part: &Part| matches!(part, Part::Year(_)) || number(part) > 31;
        let is_month = |part: &Part| matches!(part, Part::Month(_));
        let (year, month, day) = match self.dates.as_slice() {
            [] => (None, None, None),
            [one] if is_month(one) => (None, Some(one), None),
            [one] if is_year(one) => (Some(one), None, None),
            [one] => (None, None, Some(one)),
            [month, other] | [other, month] if is_month(month) && is_year(other) => {
                (Some(other), Some(month), None)
            }
            [month, day] | [day, month] if is_month(month) => (None, Some(month), Some(day)),
            [year, month] | [month, year] if is_year(year) => (Some(year), Some(month), None),
            [month, day] => (None, Some(month), Some(day)),
            [month, year, day] if is_month(month) && is_year(year) => (Some(year), Some(month), Some(day)),
            [month, day, year] if is_month(month) => (Some(year), Some(month), Some(day)),
            [year, month, day] if is_month(month) && is_year(year) => (Some(year), Some(month), Some(day)),
            [day, month, year] if is_month(month) => (Some(year), Some(month), Some(day)),
            [day, year, month] if is_month(month) && is_year(year) => (Some(year), Some(month), Some(day)),
            [year, day, month] if is_month(month) => (Some(year), Some(month), Some(day)),
            [year, month, day] if is_year(year) => (Some(year), Some(month), Some(day)),
            [day, month, year] if number(day) > 12 => (Some(year), Some(month), Some(day)),
            [month, day, year] => (Some(year), Some(month), Some(day)),
            _ => return None,
        };
        if self.has_weekday && day.is_none() {
            return None;
        }
        let year = match year {
            None => today.year(),
            Some(Part::Year(year)) => *year,
            Some(short) => century(number(short), today.year()),
        };
        let month = month.map_or(Some(today.month()), |month| i8::try_from(number(month)).ok())?;
        if !(1..=9_999).contains(&year) {
            return None;
        }
        let first = Date::new(year, month, 1).ok()?;
        let day = match day {
            Some(day) => i8::try_from(number(day)).ok()?,
            None => today.day().min(first.days_in_month()),
        };
        Date::new(year, month, day).ok()
    }
}

/// The year with these last two digits that is nearest to this one.
fn century(short: i16, this: i16) -> i16 {
    let year = short + this / 100 * 100;
    if year >= this + 50 {
        year - 100
    } else if year < this - 50 {
        year + 100
    } else {
        year
    }
}

/// Seconds east of UTC, also of a single digit.
fn offset(text: &str) -> Option<i32> {
    match text.split_at_checked(1) {
        Some((sign, hour)) if hour.len() == 1 => iso_offset(&format!("{sign}0{hour}")),
        _ => iso_offset(text),
    }
}

fn is_digit(character: char) -> bool {
    character.is_ascii_digit()
}
