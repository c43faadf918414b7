//! Formats numbers for people: three significant digits and a unit.

/// Formats an integer with spaces between groups of three digits.
pub fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut shown = if value <= -0.5 { "-".to_owned() } else { String::new() };
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(' ');
        }
        shown.push(digit);
    }
    shown
}

/// Formats three significant digits; numbers from 100 on have no decimal places.
pub(crate) fn significant(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size < 0.000_999_5 => format!("{value:.1e}"),
        size if size < 0.009_995 => format!("{value:.5}"),
        size if size < 0.099_95 => format!("{value:.4}"),
        size if size < 0.999_5 => format!("{value:.3}"),
        size if size < 9.995 => format!("{value:.2}"),
        size if size < 99.95 => format!("{value:.1}"),
        _ => grouped(value),
    }
}

/// Formats microseconds with a suitable unit, in ASCII.
pub fn time(micros: f64) -> String {
    match micros {
        _ if micros < 999.5 => format!("{} us", significant(micros)),
        _ if micros < 999_500.0 => format!("{} ms", significant(micros / 1e3)),
        _ => format!("{} s", significant(micros / 1e6)),
    }
}

/// Formats bytes with a suitable unit.
pub fn bytes(count: f64) -> String {
    let mut rest = count;
    for unit in ["B", "KiB", "MiB"] {
        if rest.abs() < 1_023.5 {
            return if unit == "B" {
                format!("{rest:.0} B")
            } else {
                format!("{} {unit}", significant(rest))
            };
        }
        rest /= 1_024.0;
    }
    format!("{} GiB", significant(rest))
}

/// One unit for a group of values, so that they can be compared at a glance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OneUnit {
    size: f64,
    name: &'static str,
}

impl OneUnit {
    /// The unit of times in microseconds, for a page.
    pub(crate) fn of_times(micros: impl IntoIterator<Item = f64>) -> OneUnit {
        OneUnit::of(&[(1.0, "µs"), (1e3, "ms"), (1e6, "s")], micros)
    }

    /// The unit of sizes in bytes.
    pub(crate) fn of_bytes(counts: impl IntoIterator<Item = f64>) -> OneUnit {
        OneUnit::of(&[(1.0, "B"), (1_024.0, "KiB"), (1_048_576.0, "MiB"), (1_073_741_824.0, "GiB")], counts)
    }

    /// The largest unit in which the greatest value is at least one, and the least at least a tenth.
    fn of(units: &[(f64, &'static str)], values: impl IntoIterator<Item = f64>) -> OneUnit {
        let (mut least, mut greatest) = (f64::INFINITY, 0.0_f64);
        for value in values.into_iter().filter(|value| *value > 0.0) {
            least = least.min(value);
            greatest = greatest.max(value);
        }
        // A little less than one, because 999.7 of a unit is shown as 1.00 of the next.
        let fits = |size: f64| size * 0.9995 <= greatest && size * 0.1 <= least;
        let (size, name) = units
            .iter()
            .copied()
            .rfind(|(size, _)| fits(*size))
            .or(units.first().copied())
            .unwrap_or((1.0, ""));
        OneUnit { size, name }
    }

    /// Formats a value in this unit.
    pub(crate) fn show(&self, value: f64) -> String {
        let shown = if self.size == 1.0 && self.name == "B" {
            grouped(value)
        } else {
            significant(value / self.size)
        };
        format!("{shown} {}", self.name)
    }
}

/// Formats a share as a percentage, with enough digits to distinguish 99.99 % from 100 %.
pub(crate) fn percent(share: f64) -> String {
    let shown = share * 100.0;
    match shown {
        _ if shown == shown.round() => format!("{shown:.0} %"),
        _ if shown > 99.0 && shown < 100.0 => {
            // Rounding up to 100 would hide the very operations this number is about.
            let floor = (shown * 1_000.0).floor() / 1_000.0;
            format!("{floor} %")
        }
        _ => format!("{} %", significant(shown)),
    }
}

/// Formats a ratio as its difference from one.
pub(crate) fn change(ratio: f64) -> String {
    match (ratio - 1.0) * 100.0 {
        change if change.abs() < 0.05 => "±0 %".to_owned(),
        change if change < 99.95 => format!("{change:+.1} %"),
        _ => format!("x{}", significant(ratio)),
    }
}

/// Formats a time in seconds since 1970 as date and time.
pub(crate) fn moment(seconds: u64) -> String {
    // Days are counted in eras of 400 years that begin in March, so that a leap day is the last day
    // of its year.
    let days = (seconds / 86_400).min(3_000_000) as i64 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Formats a value, or `n/a` if it is missing.
pub(crate) fn optional(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "n/a".to_owned(), show)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_for_people() {
        for (value, expected) in
            [(0.0, "0"), (999.6, "1 000"), (1_234_567.0, "1 234 567"), (512.0, "512"), (-1_234.0, "-1 234")]
        {
            assert_eq!(grouped(value), expected);
        }
        for (value, expected) in [
            (0.0, "0"),
            (0.2, "0.200"),
            (0.012_34, "0.0123"),
            (9.996, "10.0"),
            (99.96, "100"),
            (2e-5, "2.0e-5"),
        ] {
            assert_eq!(significant(value), expected);
        }
        for (micros, expected) in
            [(12.4, "12.4 us"), (1_234.0, "1.23 ms"), (999.7, "1.00 ms"), (2_500_000.0, "2.50 s")]
        {
            assert_eq!(time(micros), expected);
        }
        for (count, expected) in [(12.0, "12 B"), (1_536.0, "1.50 KiB"), (5.5e9, "5.12 GiB")] {
            assert_eq!(bytes(count), expected);
        }
        for (share, expected) in [(0.5, "50 %"), (0.999_996, "99.999 %"), (1.0, "100 %"), (0.0213, "2.13 %")]
        {
            assert_eq!(percent(share), expected);
        }
        for (ratio, expected) in
            [(1.0, "±0 %"), (1.213, "+21.3 %"), (0.9, "-10.0 %"), (7.0, "x7.00"), (0.0, "-100.0 %")]
        {
            assert_eq!(change(ratio), expected);
        }
    }

    #[test]
    fn values_of_a_group_have_one_unit() {
        for (micros, expected) in [
            (vec![980.0, 1_200.0], vec!["0.980 ms", "1.20 ms"]),
            (vec![12.0, 980.0], vec!["12.0 µs", "980 µs"]),
            (vec![20.0, 1_200.0], vec!["20.0 µs", "1 200 µs"]),
            (vec![200.0, 631_000.0, 1e6], vec!["0.200 ms", "631 ms", "1 000 ms"]),
            (vec![150_000.0, 2e6], vec!["0.150 s", "2.00 s"]),
            (vec![0.0], vec!["0 µs"]),
            (vec![], vec![]),
        ] {
            let unit = OneUnit::of_times(micros.iter().copied());
            let shown: Vec<String> = micros.iter().map(|value| unit.show(*value)).collect();
            assert_eq!(shown, expected);
        }
        for (counts, expected) in [
            (vec![600.0 * 1_024.0, 2.5 * 1_048_576.0], vec!["0.586 MiB", "2.50 MiB"]),
            (vec![9.0, 2_000.0], vec!["9 B", "2 000 B"]),
        ] {
            let unit = OneUnit::of_bytes(counts.iter().copied());
            let shown: Vec<String> = counts.iter().map(|value| unit.show(*value)).collect();
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn moments_are_dates() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_767_225_599, "2025-12-31 23:59:59 UTC"),
        ] {
            assert_eq!(moment(seconds), expected);
        }
        assert!(moment(u64::MAX).ends_with("UTC"));
    }
}
