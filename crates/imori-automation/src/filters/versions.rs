//! StackStorm's filters of semantic versions, as the Python package `semver` reads them.

use std::cmp::Ordering;

use minijinja::value::Value;
use minijinja::{Error, State};

use crate::python::arguments::{Arguments, soft_text};
use crate::python::values::{failure, type_name};

/// A version: three numbers, and what may follow them.
#[derive(Debug, Clone)]
struct Version {
    numbers: [u64; 3],
    prerelease: Option<String>,
}

/// `version_compare`: -1, 0 or 1.
pub(crate) fn version_compare(_: &mut State, arguments: Arguments) -> Result<Value, Error> {
    Ok(Value::from(compared(arguments)? as i64))
}

/// `version_more_than`, `version_less_than` and `version_equal`.
pub(crate) fn version_is(arguments: Arguments, wanted: Ordering) -> Result<Value, Error> {
    Ok(Value::from(compared(arguments)? == wanted))
}

fn compared(arguments: Arguments) -> Result<Ordering, Error> {
    let [value, pattern] = arguments.bind(["value", "pattern"], 2)?;
    Ok(Version::of(&value.unwrap_or_default())?.cmp(&Version::of(&pattern.unwrap_or_default())?))
}

/// Whether a comparison holds for an order.
type Holds = fn(Ordering) -> bool;

/// `version_match`: whether a comparison such as `>=1.0.0` holds.
pub(crate) fn version_match(_: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, pattern] = arguments.bind(["value", "pattern"], 2)?;
    let version = Version::of(&value.unwrap_or_default())?;
    let pattern = soft_text(pattern.as_ref())?;
    let operators: [(&str, Holds); 6] = [
        (">=", Ordering::is_ge),
        ("<=", Ordering::is_le),
        ("==", Ordering::is_eq),
        ("!=", Ordering::is_ne),
        (">", Ordering::is_gt),
        ("<", Ordering::is_lt),
    ];
    for (operator, holds) in operators {
        if let Some(other) = pattern.strip_prefix(operator) {
            return Ok(Value::from(holds(version.cmp(&Version::parse(other)?))));
        }
    }
    if pattern.starts_with(|c: char| c.is_ascii_digit()) {
        return Ok(Value::from(version.cmp(&Version::parse(&pattern)?).is_eq()));
    }
    Err(failure(format!(
        "match_expr parameter should be in format <op><ver>, where <op> is one of ['<', '>', '==', '<=', '>=', '!=']. You provided: '{pattern}'"
    )))
}

/// `version_bump_major`, `version_bump_minor` and `version_bump_patch`: the next version.
pub(crate) fn version_bump(arguments: Arguments, part: usize) -> Result<Value, Error> {
    let [value] = arguments.bind(["value"], 1)?;
    let [major, minor, patch] = Version::of(&value.unwrap_or_default())?.numbers;
    let next = match part {
        0 => [major.saturating_add(1), 0, 0],
        1 => [major, minor.saturating_add(1), 0],
        _ => [major, minor, patch.saturating_add(1)],
    };
    Ok(Value::from(next.map(|number| number.to_string()).join(".")))
}

/// `version_strip_patch`: the first two numbers.
pub(crate) fn version_strip_patch(_: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value] = arguments.bind(["value"], 1)?;
    let [major, minor, _] = Version::of(&value.unwrap_or_default())?.numbers;
    Ok(Value::from(format!("{major}.{minor}")))
}

impl Version {
    fn of(value: &Value) -> Result<Version, Error> {
        match value.as_str() {
            Some(text) => Version::parse(text),
            None => Err(failure(format!("not expecting type '{}'", type_name(value)))),
        }
    }

    fn parse(text: &str) -> Result<Version, Error> {
        Version::read(text).ok_or_else(|| failure(format!("{text} is not valid SemVer string")))
    }

    fn read(text: &str) -> Option<Version> {
        let (rest, build) = text.split_once('+').map_or((text, None), |(rest, build)| (rest, Some(build)));
        let (numbers, prerelease) =
            rest.split_once('-').map_or((rest, None), |(numbers, prerelease)| (numbers, Some(prerelease)));
        let mut parts = numbers.split('.');
        let numbers = [number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?];
        let part = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        let plain = |text: &str| text.split('.').all(part);
        let counted = |text: &str| text.split('.').all(|part| !is_number(part) || number(part).is_some());
        let valid = parts.next().is_none()
            && build.is_none_or(plain)
            && prerelease.is_none_or(|text| plain(text) && counted(text));
        valid.then(|| Version { numbers, prerelease: prerelease.map(str::to_owned) })
    }

    fn cmp(&self, other: &Version) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| match (&self.prerelease, &other.prerelease) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(a), Some(b)) => prerelease_order(a, b),
        })
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number without leading zeros.
fn number(text: &str) -> Option<u64> {
    (is_number(text) && (text == "0" || !text.starts_with('0'))).then(|| text.parse().ok())?
}

fn prerelease_order(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.split('.'), b.split('.'));
    loop {
        let order = match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(a), Some(b)) => match (number(a), number(b)) {
                (Some(a), Some(b)) => a.cmp(&b),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => a.cmp(b),
            },
        };
        if order.is_ne() {
            return order;
        }
    }
}
