//! Numbers as Python reads them from texts.

use super::values::is_space;

/// What Python's `int` reads.
pub(crate) fn int_of_text(text: &str, base: u32) -> Option<i128> {
    let text = text.trim_matches(is_space);
    let (negative, digits) = match text.strip_prefix(['-', '+']) {
        Some(digits) => (text.starts_with('-'), digits),
        None => (false, text),
    };
    let prefixed = |prefix: u32| match prefix {
        2 => digits.strip_prefix("0b").or_else(|| digits.strip_prefix("0B")),
        8 => digits.strip_prefix("0o").or_else(|| digits.strip_prefix("0O")),
        16 => digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")),
        _ => None,
    };
    let (digits, base) = match base {
        0 => [2, 8, 16].into_iter().find_map(|base| prefixed(base).map(|digits| (digits, base))).or_else(
            || Some((digits, 10)).filter(|_| !digits.starts_with('0') || digits.bytes().all(|b| b == b'0')),
        )?,
        base => {
            prefixed(base).map_or((digits, base), |digits| (digits.strip_prefix('_').unwrap_or(digits), base))
        }
    };
    let digits = without_underscores(digits)?;
    if digits.starts_with(['-', '+']) {
        return None;
    }
    let number = i128::from_str_radix(&digits, base).ok()?;
    Some(if negative { -number } else { number })
}

/// What Python's `float` reads.
pub(crate) fn float_of_text(text: &str) -> Option<f64> {
    let text = text.trim_matches(is_space);
    // Rust also reads these names, but others too.
    let word = text.strip_prefix(['-', '+']).unwrap_or(text).to_ascii_lowercase();
    match word.as_str() {
        "inf" | "infinity" if text.starts_with('-') => return Some(f64::NEG_INFINITY),
        "inf" | "infinity" => return Some(f64::INFINITY),
        "nan" => return Some(f64::NAN),
        _ => {}
    }
    if !word.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    without_underscores(text)?.parse().ok()
}

/// The digits without the single underscores between them.
fn without_underscores(digits: &str) -> Option<String> {
    let mut previous = '_';
    let mut out = String::new();
    for c in digits.chars() {
        match (previous, c) {
            (before, '_') if before.is_ascii_alphanumeric() => {}
            (_, '_') => return None,
            ('_', c) if !out.is_empty() && !c.is_ascii_alphanumeric() => return None,
            (_, c) => out.push(c),
        }
        previous = c;
    }
    (previous != '_').then_some(out)
}
