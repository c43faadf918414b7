//! StackStorm's filters of JSON, YAML and paths.

use std::fmt::Write as _;

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

use super::texts::blanks;
use crate::limits::{TEMPLATE_OUTPUT_BYTES_MAX, VALUE_DEPTH_MAX};
use crate::python::NONE_MAGIC_VALUE;
use crate::python::arguments::{Arguments, is_set, strict_text};
use crate::python::conversion::to_template;
use crate::python::values::{Number, failure, float_text, is_list, items, sort_by_key, text, type_name};
use crate::python::yaml_reader::read_yaml;
use crate::python::yaml_writer::write_yaml;
use crate::value::Value as Json;

/// `use_none`: a text that survives as `None` where the parameter is cast.
pub(crate) fn use_none(_: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value] = arguments.bind(["value"], 1)?;
    let value = value.unwrap_or_default();
    Ok(if value.is_none() { Value::from(NONE_MAGIC_VALUE) } else { value })
}

/// `from_json_string`.
pub(crate) fn from_json_string(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value] = arguments.bind(["value"], 1)?;
    let text = text(&value.unwrap_or_default())?;
    state.consume_fuel(text.len() as u64 / 4)?;
    let json =
        Json::from_json(text.as_bytes()).map_err(|error| failure(format!("the text is no JSON: {error}")))?;
    Ok(to_template(&json))
}

/// `from_yaml_string`.
pub(crate) fn from_yaml_string(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value] = arguments.bind(["value"], 1)?;
    let text = text(&value.unwrap_or_default())?;
    state.consume_fuel(text.len() as u64 / 2)?;
    read_yaml(&text)
}

/// `to_json_string`.
pub(crate) fn to_json_string(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, indent, sort_keys, separators] =
        arguments.bind(["value", "indent", "sort_keys", "separators"], 1)?;
    let separators = match separators.filter(|separators| !separators.is_none()) {
        None => None,
        Some(separators) => {
            let pair = items(state, &separators)?;
            match pair.as_slice() {
                [item, key] => Some((strict_text(item)?.to_owned(), strict_text(key)?.to_owned())),
                _ => return Err(failure("`separators` needs two texts: one after an item, one after a key")),
            }
        }
    };
    let indent = indention(indent)?;
    let (item_separator, key_separator) = separators.unwrap_or_else(|| (",".to_owned(), ": ".to_owned()));
    let style = JsonStyle { indent, sort_keys: is_set(sort_keys.as_ref()), item_separator, key_separator };
    style.write(state, &value.unwrap_or_default()).map(Value::from)
}

/// `to_complex`: JSON as Python writes it.
pub(crate) fn to_complex(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value] = arguments.bind(["value"], 1)?;
    JsonStyle::default().write(state, &value.unwrap_or_default()).map(Value::from)
}

/// `json_escape`: the inside of a text in JSON.
pub(crate) fn json_escape(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value] = arguments.bind(["value"], 1)?;
    let json = JsonStyle::default().write(state, &value.unwrap_or_default())?;
    Ok(Value::from(json.trim_matches('"')))
}

/// `tojson`: JSON with sorted keys that may stand in HTML.
pub(crate) fn tojson(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, indent] = arguments.bind(["value", "indent"], 1)?;
    let indent = indention(indent)?;
    let item_separator = if indent.is_some() { "," } else { ", " }.to_owned();
    let style = JsonStyle { indent, sort_keys: true, item_separator, ..JsonStyle::default() };
    let json = style.write(state, &value.unwrap_or_default())?;
    let escapes = [("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"), ("'", "\\u0027")];
    Ok(Value::from(escapes.into_iter().fold(json, |json, (c, escape)| json.replace(c, escape))))
}

/// `to_yaml_string`.
pub(crate) fn to_yaml_string(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, indent, allow_unicode] = arguments.bind(["value", "indent", "allow_unicode"], 1)?;
    let indent = match indent.filter(|indent| !indent.is_none()) {
        Some(indent) => crate::python::arguments::strict_int(&indent)?,
        None => 2,
    };
    let allow_unicode = allow_unicode.is_none_or(|allow| allow.is_true());
    let yaml = write_yaml(state, &value.unwrap_or_default(), indent, allow_unicode)?;
    Ok(Value::from(yaml))
}

/// `basename`: what stands after the last slash.
pub(crate) fn basename(_: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [path] = arguments.bind(["path"], 1)?;
    let path = path.unwrap_or_default();
    let path = path_text(&path)?;
    Ok(Value::from(path.rsplit_once('/').map_or(path, |(_, name)| name)))
}

/// `dirname`: what stands before the last slash.
pub(crate) fn dirname(_: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [path] = arguments.bind(["path"], 1)?;
    let path = path.unwrap_or_default();
    let path = path_text(&path)?;
    let Some((before, _)) = path.rsplit_once('/') else {
        return Ok(Value::from(""));
    };
    let stem = before.trim_end_matches('/');
    // A path of slashes alone keeps all of them.
    Ok(Value::from(if stem.is_empty() { format!("{before}/") } else { stem.to_owned() }))
}

fn path_text(path: &Value) -> Result<&str, Error> {
    if path.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    path.as_str().ok_or_else(|| {
        let kind = type_name(path);
        failure(format!("expected str, bytes or os.PathLike object, not {kind}"))
    })
}

/// The text that indents one level, where there is one.
fn indention(indent: Option<Value>) -> Result<Option<String>, Error> {
    match indent.filter(|indent| !indent.is_none()) {
        None => Ok(None),
        Some(indent) => match indent.as_str() {
            Some(text) => Ok(Some(text.to_owned())),
            None => blanks(crate::python::arguments::strict_int(&indent)?).map(Some),
        },
    }
}

/// How Python's `json` writes a value.
struct JsonStyle {
    indent: Option<String>,
    sort_keys: bool,
    item_separator: String,
    key_separator: String,
}

impl Default for JsonStyle {
    fn default() -> JsonStyle {
        JsonStyle {
            indent: None,
            sort_keys: false,
            item_separator: ", ".to_owned(),
            key_separator: ": ".to_owned(),
        }
    }
}

impl JsonStyle {
    fn write(&self, state: &State, value: &Value) -> Result<String, Error> {
        let mut out = String::new();
        self.nested(state, &mut out, value, 0)?;
        Ok(out)
    }

    fn nested(&self, state: &State, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > VALUE_DEPTH_MAX || out.len() > TEMPLATE_OUTPUT_BYTES_MAX {
            return Err(failure("the value is too large for JSON"));
        }
        match value.kind() {
            ValueKind::String => push_json_text(out, value.as_str().unwrap_or_default()),
            ValueKind::Map => {
                let mut keys = items(state, value)?;
                if self.sort_keys {
                    keys = sort_by_key(state, keys, false, |key| Ok(key.clone()))?;
                }
                self.container(out, '{', '}', keys.len(), depth, |style, out, at| {
                    let key = keys.get(at).cloned().unwrap_or_default();
                    push_json_text(out, &key_text(&key)?);
                    out.push_str(&style.key_separator);
                    style.nested(state, out, &value.get_item(&key)?, depth + 1)
                })?;
            }
            _ if is_list(value) => {
                let items = items(state, value)?;
                self.container(out, '[', ']', items.len(), depth, |style, out, at| {
                    style.nested(state, out, items.get(at).unwrap_or(&Value::UNDEFINED), depth + 1)
                })?;
            }
            _ => out.push_str(&scalar_text(value)?),
        }
        Ok(())
    }

    fn container(
        &self,
        out: &mut String,
        open: char,
        close: char,
        len: usize,
        depth: usize,
        item: impl Fn(&JsonStyle, &mut String, usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        out.push(open);
        let line = |out: &mut String, depth: usize| {
            if let Some(indent) = &self.indent {
                out.push('\n');
                out.extend(std::iter::repeat_n(indent.as_str(), depth));
            }
        };
        for at in 0..len {
            if at > 0 {
                out.push_str(&self.item_separator);
            }
            line(out, depth + 1);
            item(self, out, at)?;
        }
        if len > 0 {
            line(out, depth);
        }
        out.push(close);
        Ok(())
    }
}

fn scalar_text(value: &Value) -> Result<String, Error> {
    match value.kind() {
        ValueKind::None => Ok("null".to_owned()),
        ValueKind::Bool => Ok(if value.is_true() { "true" } else { "false" }.to_owned()),
        ValueKind::Number => match Number::of(value) {
            Some(Number::Float(number)) if number.is_nan() => Ok("NaN".to_owned()),
            Some(Number::Float(number)) if number.is_infinite() => {
                Ok(if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned())
            }
            Some(Number::Float(number)) => Ok(float_text(number)),
            _ => text(value),
        },
        _ => {
            let kind = type_name(value);
            Err(failure(format!("Object of type {kind} is not JSON serializable")))
        }
    }
}

fn key_text(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or_default().to_owned()),
        ValueKind::None | ValueKind::Bool | ValueKind::Number => scalar_text(key),
        _ => Err(failure(format!("keys must be str, int, float, bool or None, not {}", type_name(key)))),
    }
}

/// Appends a text in JSON, as Python writes it: with ASCII alone.
pub(crate) fn push_json_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}").expect("a string takes all that is written");
                }
            }
        }
    }
    out.push('"');
}
