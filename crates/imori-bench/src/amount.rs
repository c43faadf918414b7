//! The length of a run or of a warm-up: a count of operations or a time.

use std::str::FromStr;
use std::time::Duration;

use anyhow::{Result, anyhow};
use serde::Serialize;

/// A count of operations or a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// This many operations, over all workers.
    Count(u64),
    /// This long.
    Time(Duration),
}

impl FromStr for Amount {
    type Err = anyhow::Error;

    /// Reads `100000`, `512k`, `1M`, `500ms`, `10s` or `2m`.
    fn from_str(text: &str) -> Result<Amount> {
        let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (digits, unit) = text.split_at(digits_end);
        let number: u64 = digits.parse().map_err(|_| unreadable(text))?;
        match unit {
            "" => Ok(Amount::Count(number)),
            "k" => number.checked_mul(1_000).map(Amount::Count).ok_or_else(|| unreadable(text)),
            "M" => number.checked_mul(1_000_000).map(Amount::Count).ok_or_else(|| unreadable(text)),
            "ms" => Ok(Amount::Time(Duration::from_millis(number))),
            "s" => Ok(Amount::Time(Duration::from_secs(number))),
            "m" => number
                .checked_mul(60)
                .map(Duration::from_secs)
                .map(Amount::Time)
                .ok_or_else(|| unreadable(text)),
            _ => Err(unreadable(text)),
        }
    }
}

/// Reads a duration from the command line.
pub fn duration(text: &str) -> Result<Duration> {
    match text.parse()? {
        Amount::Time(time) => Ok(time),
        Amount::Count(_) => Err(anyhow!("`{text}` has no unit; write it as `500ms`, `10s` or `2m`")),
    }
}

/// Reads a count from the command line.
pub fn count(text: &str) -> Result<u64> {
    match text.parse()? {
        Amount::Count(count) => Ok(count),
        Amount::Time(_) => Err(anyhow!("`{text}` is a time; write a count as `100000`, `512k` or `1M`")),
    }
}

/// Reads a number of bytes from the command line.
pub fn size(text: &str) -> Result<usize> {
    let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_end);
    let factor = match unit {
        "" => Some(1),
        "KB" => Some(1_000),
        "KiB" => Some(1_024),
        "MB" => Some(1_000_000),
        "MiB" => Some(1_048_576),
        _ => None,
    };
    let bytes =
        digits.parse::<usize>().ok().zip(factor).and_then(|(number, factor)| number.checked_mul(factor));
    bytes.ok_or_else(|| anyhow!("`{text}` is no size; write bytes as `1024`, `1KB`, `1KiB`, `1MB` or `1MiB`"))
}

fn unreadable(text: &str) -> anyhow::Error {
    anyhow!(
        "`{text}` is neither a count nor a time; write it as `100000`, `512k`, `1M`, `500ms`, `10s` or `2m`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_decimal_and_binary_units() {
        for (text, expected) in [
            ("16", Some(16)),
            ("1KB", Some(1_000)),
            ("1KiB", Some(1_024)),
            ("2MB", Some(2_000_000)),
            ("2MiB", Some(2_097_152)),
            ("1k", None),
            ("KB", None),
            ("-1", None),
            ("18446744073709551615MiB", None),
        ] {
            assert_eq!(size(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn counts_and_times_are_told_apart_by_their_unit() {
        for (text, expected) in [
            ("0", Some(Amount::Count(0))),
            ("512k", Some(Amount::Count(512_000))),
            ("1M", Some(Amount::Count(1_000_000))),
            ("500ms", Some(Amount::Time(Duration::from_millis(500)))),
            ("10s", Some(Amount::Time(Duration::from_secs(10)))),
            ("2m", Some(Amount::Time(Duration::from_secs(120)))),
            ("", None),
            ("s", None),
            ("-1", None),
            ("1h", None),
            ("99999999999999999999", None),
            ("18446744073709551615M", None),
        ] {
            assert_eq!(text.parse::<Amount>().ok(), expected, "{text}");
        }
    }
}
