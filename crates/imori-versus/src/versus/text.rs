//! Building blocks of a comparison's Markdown: tables, numbers, dates.

use std::fmt::Write;

use crate::versus::figures::{Figure, Spread};

/// Formats a median with its range.
pub(crate) fn shown(figure: &Figure, spread: Option<&Spread>) -> String {
    let Some(spread) = spread else { return "n/a".to_owned() };
    let [median, low, high] =
        [spread.median, spread.low, spread.high].map(|value| number(value / figure.scale));
    match spread.count {
        1 => median,
        _ => format!("{median} ({low} to {high})"),
    }
}

/// Formats a number with at least three digits, in groups of three separated by spaces.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    if size < 100.0 {
        let digits = if size < 1.0 {
            3
        } else if size < 10.0 {
            2
        } else {
            1
        };
        let text = format!("{value:.digits$}");
        return if value == 0.0 { "0".to_owned() } else { text };
    }
    let digits = format!("{size:.0}");
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(' ');
        }
        shown.push(digit);
    }
    if value < 0.0 { format!("-{shown}") } else { shown }
}

/// Appends the head of a table.
pub(crate) fn head(text: &mut String, first: &str, others: &[&str]) {
    text.push('\n');
    row(text, first, others);
    line(text, &format!("|{}", "---|".repeat(others.len() + 1)));
}

/// Appends a row of a table.
pub(crate) fn row(text: &mut String, first: &str, cells: &[impl AsRef<str>]) {
    let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
    line(text, &format!("| {first} | {} |", cells.join(" | ")));
}

/// Appends a line of text.
pub(crate) fn line(text: &mut String, words: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{words}");
}

/// Formats a time in seconds since 1970 as a date, such as `2026-01-31`.
pub(crate) fn date(seconds: u64) -> String {
    // Days are counted from 1 March of year 0, so that a leap day is the last day of its year.
    let days = seconds / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_groups() {
        for (value, expected) in [
            (0.0, "0"),
            (0.012_34, "0.012"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (123.4, "123"),
            (1_234_567.0, "1 234 567"),
            (-1_234.0, "-1 234"),
        ] {
            assert_eq!(number(value), expected);
        }
    }

    #[test]
    fn a_date_is_the_day_of_its_seconds() {
        for (seconds, expected) in [
            (0, "1970-01-01"),
            (86_399, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_709_251_199, "2024-02-29"),
            (1_709_251_200, "2024-03-01"),
            (1_795_305_600, "2026-11-22"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(date(seconds), expected, "{seconds}");
        }
    }
}
