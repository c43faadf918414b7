//! Numbers as people read them: grouped, with the unit that fits.

use std::time::Duration;

/// A count with its thousands grouped: `12,345`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count with its noun, which gets an `s` unless there is one: `1 message`, `2 messages`.
pub fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number))
}

/// A rate: `0/s`, `0.3/s`, `1,200/s`.
pub fn rate(per_second: f64) -> String {
    if !(0.05..10.0).contains(&per_second) {
        // Rates are positive and far below 2^52.
        return format!("{}/s", count(per_second.round() as u64));
    }
    format!("{per_second:.1}/s")
}

/// Bytes: `512 B`, `3.2 KiB`, `14 MiB`.
pub fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut units = ["B", "KiB", "MiB", "GiB", "TiB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    for next in units {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if unit == "B" || value >= 10.0 { format!("{value:.0} {unit}") } else { format!("{value:.1} {unit}") }
}

/// A duration in its two largest units: `850 ms`, `4.2 s`, `4 min 10 s`, `3 d 4 h`.
pub fn duration(duration: Duration) -> String {
    let (millis, seconds) = (duration.as_millis(), duration.as_secs());
    let two = |first: u64, one: &str, second: u64, other: &str| {
        if second == 0 { format!("{first} {one}") } else { format!("{first} {one} {second} {other}") }
    };
    match seconds {
        0 => format!("{millis} ms"),
        1..10 => format!("{:.1} s", duration.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3_600 => two(seconds / 60, "min", seconds % 60, "s"),
        3_600..86_400 => two(seconds / 3_600, "h", seconds / 60 % 60, "min"),
        _ => two(seconds / 86_400, "d", seconds / 3_600 % 24, "h"),
    }
}
