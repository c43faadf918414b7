//! Spans of time in rules.

use crate::limits::RULE_WINDOW_SECONDS_MAX;
use crate::value::Value;

const UNITS: [(&str, f64); 5] = [("ms", 1e3), ("s", 1e6), ("m", 60e6), ("h", 3_600e6), ("d", 86_400e6)];

/// Microseconds of a number of seconds, or of a text such as `500ms`, `30s`, `5m`, `1h` or `2d`.
///
/// # Errors
/// It is neither, or is not positive, or longer than its limit.
pub(super) fn micros(value: &Value) -> Result<i64, String> {
    let micros = match value {
        Value::Int(_) | Value::Float(_) => value.as_number().map(|seconds| seconds * 1e6),
        Value::String(text) => {
            let split = text
                .find(|character: char| !character.is_ascii_digit() && character != '.')
                .unwrap_or(text.len());
            let (number, unit) = text.split_at_checked(split).unwrap_or_default();
            let unit = UNITS.iter().find(|(name, _)| *name == unit.trim()).map(|(_, micros)| *micros);
            number.parse::<f64>().ok().zip(unit).map(|(number, unit)| number * unit)
        }
        _ => None,
    };
    let micros =
        micros.ok_or_else(|| format!("{value} is no span of time; use seconds, or a text such as `5m`"))?;
    if micros >= 1.0 && micros <= RULE_WINDOW_SECONDS_MAX as f64 * 1e6 {
        Ok(micros as i64)
    } else {
        Err(format!(
            "{value} is out of range; use a span of time above 0 and up to {RULE_WINDOW_SECONDS_MAX} seconds"
        ))
    }
}
