//! StackStorm's filters of regular expressions, read as Python's `re` reads them.

use std::collections::BTreeMap;

use fancy_regex::Regex;
use minijinja::value::{Tuple, Value};
use minijinja::{Error, State};

use crate::limits::{TEMPLATE_OUTPUT_BYTES_MAX, TEMPLATE_REGEX_FUEL};
use crate::python::arguments::{Arguments, is_set, strict_int, strict_text};
use crate::python::python_regex;
use crate::python::values::{failure, text};

/// `regex_match`: whether the text begins with the pattern.
pub(crate) fn regex_match(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, pattern, ignorecase] = arguments.bind(["value", "pattern", "ignorecase"], 2)?;
    let value = text(&value.unwrap_or_default())?;
    let pattern = pattern.unwrap_or_default();
    // The pattern alone first: one that is wrong could be right within a group.
    compiled(state, &pattern, ignorecase.as_ref())?;
    let anchored = Value::from(format!("\\A(?:{})", strict_text(&pattern)?));
    let regex = compiled(state, &anchored, ignorecase.as_ref())?;
    state.consume_fuel(value.len() as u64 / 16)?;
    regex.is_match(&value).map(Value::from).map_err(|error| too_much(&error))
}

/// `regex_search`: whether the pattern is anywhere in the text.
pub(crate) fn regex_search(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, pattern, ignorecase] = arguments.bind(["value", "pattern", "ignorecase"], 2)?;
    let value = text(&value.unwrap_or_default())?;
    let regex = compiled(state, &pattern.unwrap_or_default(), ignorecase.as_ref())?;
    state.consume_fuel(value.len() as u64 / 16)?;
    regex.is_match(&value).map(Value::from).map_err(|error| too_much(&error))
}

/// `regex_replace`: the text with every match replaced.
pub(crate) fn regex_replace(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, pattern, replacement, ignorecase] =
        arguments.bind(["value", "pattern", "replacement", "ignorecase"], 3)?;
    let value = text(&value.unwrap_or_default())?;
    let regex = compiled(state, &pattern.unwrap_or_default(), ignorecase.as_ref())?;
    let replacement = replacement.unwrap_or_default();
    let parts = replacement_parts(strict_text(&replacement)?, &regex)?;
    let mut out = String::new();
    let mut end = 0;
    for captures in regex.captures_iter(&value) {
        state.consume_fuel(1)?;
        let captures = captures.map_err(|error| too_much(&error))?;
        let Some(whole) = captures.get(0) else { continue };
        out.push_str(value.get(end..whole.start()).unwrap_or_default());
        for part in &parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Group(group) => out.push_str(captures.get(*group).map_or("", |group| group.as_str())),
            }
        }
        if out.len() > TEMPLATE_OUTPUT_BYTES_MAX {
            return Err(failure("the replaced text is too long"));
        }
        end = whole.end();
    }
    out.push_str(value.get(end..).unwrap_or_default());
    Ok(Value::from(out))
}

/// `regex_substring`: one of the matches; of groups, their texts.
pub(crate) fn regex_substring(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, pattern, index, ignorecase] =
        arguments.bind(["value", "pattern", "result_index", "ignorecase"], 2)?;
    let value = text(&value.unwrap_or_default())?;
    let regex = compiled(state, &pattern.unwrap_or_default(), ignorecase.as_ref())?;
    let mut found = Vec::new();
    for captures in regex.captures_iter(&value) {
        state.consume_fuel(1)?;
        let captures = captures.map_err(|error| too_much(&error))?;
        let group = |at| Value::from(captures.get(at).map_or("", |group| group.as_str()));
        found.push(match regex.captures_len() {
            0 | 1 => group(0),
            2 => group(1),
            count => Value::from(Tuple::from((1..count).map(group).collect::<Vec<_>>())),
        });
    }
    let index = index.map_or(Ok(0), |index| strict_int(&index))?;
    let at = if index < 0 { index + found.len() as i128 } else { index };
    let item = usize::try_from(at).ok().and_then(|at| found.get(at).cloned());
    item.ok_or_else(|| failure("list index out of range"))
}

/// The expressions that a rendering has compiled.
#[derive(Debug, Default)]
struct Compiled(BTreeMap<(String, bool), Regex>);

/// A compiled expression: each is compiled once for a rendering.
fn compiled(state: &mut State, pattern: &Value, ignorecase: Option<&Value>) -> Result<Regex, Error> {
    let key = (strict_text(pattern)?.to_owned(), is_set(ignorecase));
    let known = state.get_or_insert_extension_with(Compiled::default).0.get(&key).cloned();
    if let Some(regex) = known {
        return Ok(regex);
    }
    state.consume_fuel(TEMPLATE_REGEX_FUEL)?;
    let regex = python_regex(&key.0, key.1).map_err(failure)?;
    state.get_or_insert_extension_with(Compiled::default).0.insert(key, regex.clone());
    Ok(regex)
}

fn too_much(error: &fancy_regex::Error) -> Error {
    failure(format!("the regular expression gives up: {error}"))
}

/// A part of a replacement.
enum Part {
    Text(String),
    Group(usize),
}

fn replacement_parts(replacement: &str, regex: &Regex) -> Result<Vec<Part>, Error> {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut chars = replacement.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        let group = match chars.next() {
            Some('n') => {
                text.push('\n');
                continue;
            }
            Some('t') => {
                text.push('\t');
                continue;
            }
            Some('r') => {
                text.push('\r');
                continue;
            }
            Some('a') => {
                text.push('\x07');
                continue;
            }
            Some('b') => {
                text.push('\x08');
                continue;
            }
            Some('f') => {
                text.push('\x0c');
                continue;
            }
            Some('v') => {
                text.push('\x0b');
                continue;
            }
            Some('g') => {
                let name: String = match chars.next_if_eq(&'<') {
                    Some(_) => chars.by_ref().take_while(|c| *c != '>').collect(),
                    None => return Err(failure("missing < in the replacement after \\g")),
                };
                let by_name = regex.capture_names().position(|known| known == Some(name.as_str()));
                by_name
                    .or_else(|| name.parse().ok())
                    .ok_or_else(|| failure(format!("unknown group name '{name}'")))?
            }
            Some(digit) if digit.is_ascii_digit() && digit != '0' => {
                let mut digits = String::from(digit);
                digits.extend(chars.next_if(char::is_ascii_digit));
                digits.parse().map_err(|_| failure("invalid group reference"))?
            }
            Some('0') => {
                text.push('\0');
                continue;
            }
            Some(other) if other.is_ascii_alphabetic() => {
                return Err(failure(format!("bad escape \\{other} in the replacement")));
            }
            Some(other) => {
                text.extend(['\\', other]);
                continue;
            }
            None => return Err(failure("bad escape (end of pattern)")),
        };
        if group >= regex.captures_len() {
            return Err(failure(format!("invalid group reference {group}")));
        }
        parts.push(Part::Text(std::mem::take(&mut text)));
        parts.push(Part::Group(group));
    }
    parts.push(Part::Text(text));
    Ok(parts)
}
