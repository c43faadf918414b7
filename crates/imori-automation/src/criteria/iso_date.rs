//! Times in ISO 8601.

use jiff::civil::{Date, DateTime, ISOWeekDate, Time, Weekday};

/// A date and a time of day, with its offset from UTC in seconds if one is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) at: DateTime,
    pub(super) offset: Option<i32>,
}

/// The forms that `ciso8601` reads.
pub(super) fn parse(text: &str) -> Option<Written> {
    let mut rest = text;
    let date = iso_date(&mut rest)?;
    if rest.is_empty() {
        return Some(Written { at: date.at(0, 0, 0, 0), offset: None });
    }
    rest = rest.strip_prefix(['T', 't', ' '])?;
    let (hour, minute, second, fraction) = iso_time(&mut rest)?;
    let offset = if rest.is_empty() { None } else { Some(iso_offset(rest)?) };
    let at = at(date, [hour, minute, second], fraction)?;
    Some(Written { at, offset })
}

/// A date at a time of day, of which 24:00 is the end.
pub(super) fn at(date: Date, [hour, minute, second]: [i8; 3], fraction: &str) -> Option<DateTime> {
    if hour == 24 && minute == 0 && second == 0 && fraction.bytes().all(|digit| digit == b'0') {
        return Some(date.tomorrow().ok()?.at(0, 0, 0, 0));
    }
    let micros: String = fraction.chars().chain("000000".chars()).take(6).collect();
    let nanos = micros.parse::<i32>().ok()? * 1_000;
    Some(date.to_datetime(Time::new(hour, minute, second, nanos).ok()?))
}

fn iso_date(rest: &mut &str) -> Option<Date> {
    let year: i16 = digits(rest, 4)?;
    if year == 0 {
        return None;
    }
    let has_hyphens = take(rest, '-');
    if take(rest, 'W') {
        let week = digits(rest, 2)?;
        let is_hyphen = has_hyphens && take(rest, '-');
        let day = if is_hyphen || !has_hyphens && rest.starts_with(is_digit) { digits(rest, 1)? } else { 1 };
        let day = Weekday::from_monday_one_offset(i8::try_from(day).ok()?).ok()?;
        return ISOWeekDate::new(year, i8::try_from(week).ok()?, day).ok().map(|week| week.date());
    }
    let count = rest.bytes().take_while(u8::is_ascii_digit).count();
    if count == 3 {
        let day = digits(rest, 3)?;
        let date = Date::new(year, 1, 1).ok()?;
        return date.with().day_of_year(day).build().ok();
    }
    let month = i8::try_from(digits(rest, 2)?).ok()?;
    let day = match (has_hyphens, rest.is_empty() || rest.starts_with(['T', 't', ' '])) {
        (true, true) => 1,
        (true, false) => take(rest, '-').then(|| digits(rest, 2)).flatten()?,
        (false, _) => digits(rest, 2)?,
    };
    Date::new(year, month, i8::try_from(day).ok()?).ok()
}

/// Hours, minutes, seconds, and the digits of a fraction.
fn iso_time<'t>(rest: &mut &'t str) -> Option<(i8, i8, i8, &'t str)> {
    let part = |rest: &mut &str| i8::try_from(digits(rest, 2)?).ok();
    let hour = part(rest)?;
    let has_colons = take(rest, ':');
    if !has_colons && !rest.starts_with(is_digit) {
        return Some((hour, 0, 0, ""));
    }
    let minute = part(rest)?;
    let has_second = if has_colons { take(rest, ':') } else { rest.starts_with(is_digit) };
    if !has_second {
        return Some((hour, minute, 0, ""));
    }
    let second = part(rest)?;
    let fraction = match rest.strip_prefix(['.', ',']) {
        Some(after) => {
            let len = after.bytes().take_while(u8::is_ascii_digit).count();
            let (fraction, after) = after.split_at_checked(len).filter(|_| len > 0)?;
            *rest = after;
            fraction
        }
        None => "",
    };
    Some((hour, minute, second, fraction))
}

/// Seconds east of UTC, of `Z`, `+05`, `+0530` or `+05:30`.
pub(super) fn iso_offset(text: &str) -> Option<i32> {
    if matches!(text, "Z" | "z") {
        return Some(0);
    }
    let mut rest = text.strip_prefix(['+', '-'])?;
    let hours = i32::from(digits(&mut rest, 2)?);
    let minutes = if rest.is_empty() {
        0
    } else {
        take(&mut rest, ':');
        i32::from(digits(&mut rest, 2)?)
    };
    if !rest.is_empty() || hours > 23 || minutes > 59 {
        return None;
    }
    let seconds = hours * 3_600 + minutes * 60;
    Some(if text.starts_with('-') { -seconds } else { seconds })
}

fn is_digit(character: char) -> bool {
    character.is_ascii_digit()
}

fn take(rest: &mut &str, wanted: char) -> bool {
    rest.strip_prefix(wanted).map(|after| *rest = after).is_some()
}

/// Takes a number of exactly `len` digits.
fn digits(rest: &mut &str, len: usize) -> Option<i16> {
    let (number, after) = rest.split_at_checked(len)?;
    if !number.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    *rest = after;
    number.parse().ok()
}
