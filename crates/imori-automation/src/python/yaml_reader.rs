//! YAML 1.1 as PyYAML's safe loader reads it.

use std::collections::BTreeMap;

use minijinja::Error;
use minijinja::value::Value;
use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use super::numbers::int_of_text;
use super::values::{failure, int_value};
use crate::limits::{VALUE_DEPTH_MAX, YAML_NODES_MAX};

/// A list or map that is not yet complete.
enum Open {
    List(usize, Vec<Value>),
    Map(usize, Vec<(Value, Value)>, Option<Value>),
}

/// Reads the one document of a text.
///
/// # Errors
/// The text is no YAML, has more than one document, or is too large or nested too deep.
pub(crate) fn read_yaml(text: &str) -> Result<Value, Error> {
    let wrong = |problem: &str| failure(format!("the text is no YAML: {problem}"));
    let mut open: Vec<Open> = Vec::new();
    let mut anchors: BTreeMap<usize, (Value, usize)> = BTreeMap::new();
    let mut document = None;
    let mut nodes = 0;
    for event in Parser::new_from_str(text) {
        let (event, _) = event.map_err(|error| wrong(&error.to_string()))?;
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let tag = known_tag(tag.as_deref())?;
                (scalar(&text, style == ScalarStyle::Plain, tag)?, anchor)
            }
            Event::Alias(anchor) => {
                let (value, size) = anchors.get(&anchor).ok_or_else(|| wrong("an alias has no anchor"))?;
                nodes += size;
                (value.clone(), 0)
            }
            Event::SequenceStart(anchor, tag) => {
                known_tag(tag.as_deref())?;
                open.push(Open::List(anchor, Vec::new()));
                if open.len() > VALUE_DEPTH_MAX {
                    return Err(wrong("it is nested too deep"));
                }
                continue;
            }
            Event::MappingStart(anchor, tag) => {
                known_tag(tag.as_deref())?;
                open.push(Open::Map(anchor, Vec::new(), None));
                if open.len() > VALUE_DEPTH_MAX {
                    return Err(wrong("it is nested too deep"));
                }
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(anchor, items)) => (Value::from(items), anchor),
                Some(Open::Map(anchor, entries, _)) => (map(entries)?, anchor),
                None => return Err(wrong("a list or map ends that did not begin")),
            },
            _ => continue,
        };
        nodes += 1;
        if nodes > YAML_NODES_MAX {
            return Err(wrong("it has too many values"));
        }
        if anchor > 0 {
            anchors.insert(anchor, (value.clone(), nodes));
        }
        match open.last_mut() {
            Some(Open::List(_, items)) => items.push(value),
            Some(Open::Map(_, entries, key)) => match key.take() {
                None => *key = Some(value),
                Some(name) => entries.push((name, value)),
            },
            None if document.is_none() => document = Some(value),
            None => return Err(wrong("it has more than one document")),
        }
    }
    Ok(document.unwrap_or_else(|| Value::from(())))
}

/// The name of a tag of YAML itself.
fn known_tag(tag: Option<&Tag>) -> Result<Option<&str>, Error> {
    match tag {
        None => Ok(None),
        Some(tag) if tag.is_yaml_core_schema() => Ok(Some(&tag.suffix)),
        Some(tag) if tag.suffix.is_empty() => Ok(Some("str")),
        Some(tag) => {
            Err(failure(format!("the text is no YAML: the tag `{}{}` is unknown", tag.handle, tag.suffix)))
        }
    }
}

/// A map; those that `<<` merges give the keys that it does not have itself.
fn map(entries: Vec<(Value, Value)>) -> Result<Value, Error> {
    let mut merged: Vec<(Value, Value)> = Vec::new();
    let mut own = Vec::new();
    for (key, value) in entries {
        if key.as_str() == Some("<<") {
            let sources = if value.kind() == minijinja::value::ValueKind::Map {
                vec![value]
            } else {
                value.try_iter()?.collect()
            };
            // The first source wins, and a later key of a map replaces an earlier one.
            for source in sources.into_iter().rev() {
                for key in source.try_iter()? {
                    merged.push((key.clone(), source.get_item(&key)?));
                }
            }
        } else if matches!(key.kind(), minijinja::value::ValueKind::Map | minijinja::value::ValueKind::Seq) {
            return Err(failure("the text is no YAML: found unhashable key"));
        } else {
            own.push((key, value));
        }
    }
    merged.extend(own);
    Ok(Value::from_pairs(merged))
}

fn scalar(text: &str, plain: bool, tag: Option<&str>) -> Result<Value, Error> {
    let wrong = |kind: &str| failure(format!("the text is no YAML: `{text}` is no {kind}"));
    match tag {
        Some("str") => Ok(Value::from(text)),
        Some("int") => int(text).ok_or_else(|| wrong("int")),
        Some("float") => {
            float(text).or_else(|| text.parse().ok()).map(Value::from).ok_or_else(|| wrong("float"))
        }
        Some("bool") => boolean(text).map(Value::from).ok_or_else(|| wrong("bool")),
        Some("null") => Ok(Value::from(())),
        _ if !plain => Ok(Value::from(text)),
        _ => Ok(resolved(text)),
    }
}

fn resolved(text: &str) -> Value {
    if matches!(text, "" | "~" | "null" | "Null" | "NULL") {
        return Value::from(());
    }
    boolean(text)
        .map(Value::from)
        .or_else(|| int(text))
        .or_else(|| float(text).map(Value::from))
        .unwrap_or_else(|| Value::from(text))
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Some(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

fn signed(text: &str) -> (i128, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    }
}

fn int(text: &str) -> Option<Value> {
    let (sign, digits) = signed(text);
    let first = digits.chars().next().filter(char::is_ascii_digit)?;
    let plain = digits.replace('_', "");
    let number = if let Some(bits) = plain.strip_prefix("0b") {
        i128::from_str_radix(bits, 2).ok()?
    } else if let Some(hex) = plain.strip_prefix("0x") {
        i128::from_str_radix(hex, 16).ok()?
    } else if first == '0' && plain != "0" {
        i128::from_str_radix(&plain, 8).ok()?
    } else if plain.contains(':') {
        sexagesimal(&plain, &plain)?
    } else {
        int_of_text(&plain, 10).filter(|_| plain.bytes().all(|byte| byte.is_ascii_digit()))?
    };
    number.checked_mul(sign).map(int_value)
}

/// A number such as `1:30:00`, to the base of 60.
fn sexagesimal(digits: &str, whole: &str) -> Option<i128> {
    let mut total: i128 = 0;
    for (at, part) in digits.split(':').enumerate() {
        let valid = !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && (at == 0 || part.len() <= 2);
        let part: i128 = if valid { part.parse().ok()? } else { return None };
        if (at > 0 && part >= 60) || (at == 0 && whole.starts_with('0') && whole.contains('.') && part > 0) {
            return None;
        }
        total = total.checked_mul(60)?.checked_add(part)?;
    }
    Some(total)
}

/// A float as YAML 1.1 and PyYAML know it: with a point, and a sign in the exponent.
fn float(text: &str) -> Option<f64> {
    let (sign, digits) = signed(text);
    let sign = sign as f64;
    match digits {
        ".inf" | ".Inf" | ".INF" => return Some(sign * f64::INFINITY),
        ".nan" | ".NaN" | ".NAN" if digits == text => return Some(f64::NAN),
        _ => {}
    }
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (digits, None),
    };
    let (whole, fraction) = mantissa.split_once('.')?;
    let all = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    if whole.contains(':') && exponent.is_none() && all(fraction) {
        let whole = sexagesimal(&whole.replace('_', ""), "")? as f64;
        let fraction: f64 = format!("0.{}", fraction.replace('_', "")).parse().ok()?;
        return Some(sign * (whole + fraction));
    }
    let exponent_valid = exponent.is_none_or(|exponent| {
        exponent
            .strip_prefix(['-', '+'])
            .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
    });
    let whole_valid = match whole {
        "" => digits == text && fraction.starts_with(|c: char| c.is_ascii_digit()),
        whole => whole.starts_with(|c: char| c.is_ascii_digit()) && all(whole),
    };
    if !(exponent_valid && whole_valid && all(fraction)) {
        return None;
    }
    digits.replace('_', "").parse::<f64>().ok().map(|number| sign * number)
}

/// Whether a plain scalar of this text is read as a text.
pub(crate) fn is_plain_text(text: &str) -> bool {
    resolved(text).as_str().is_some() && !is_timestamp(text) && text != "=" && text != "<<"
}

/// Whether PyYAML would read the text as a date or a time.
fn is_timestamp(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let digits = |part: Option<&str>, longest: usize| {
        part.is_some_and(|part| {
            (1..=longest).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    let year = parts.next();
    if !(year.is_some_and(|year| year.len() == 4) && digits(year, 4)) {
        return false;
    }
    let (month, rest) = (parts.next(), parts.next().unwrap_or_default());
    let day: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let after = rest.get(day.len()..).unwrap_or_default();
    if after.is_empty() {
        return month.is_some_and(|month| month.len() == 2) && digits(month, 2) && day.len() == 2;
    }
    let time = after.strip_prefix(['T', 't']).or_else(|| {
        let time = after.trim_start_matches([' ', '\t']);
        (time.len() < after.len()).then_some(time)
    });
    let Some(time) = time.filter(|_| digits(month, 2) && (1..=2).contains(&day.len())) else {
        return false;
    };
    let zone = time.find(|c: char| !(c.is_ascii_digit() || c == ':' || c == '.')).unwrap_or(time.len());
    let (clock, zone) = (time.get(..zone).unwrap_or_default(), time.get(zone..).unwrap_or_default());
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut fields = clock.split(':');
    let hour = digits(fields.next(), 2);
    let minute = fields.next().is_some_and(|field| field.len() == 2);
    let second = fields.next().is_some_and(|field| field.len() == 2);
    let zone = zone.trim_start_matches([' ', '\t']);
    let zone_valid = zone.is_empty()
        || zone == "Z"
        || zone.strip_prefix(['-', '+']).is_some_and(|zone| {
            let (hour, minute) =
                zone.split_once(':').map_or((zone, None), |(hour, minute)| (hour, Some(minute)));
            digits(Some(hour), 2) && minute.is_none_or(|minute| minute.len() == 2 && digits(Some(minute), 2))
        });
    hour && minute
        && second
        && fields.next().is_none()
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
        && zone_valid
}
