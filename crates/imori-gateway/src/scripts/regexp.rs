//! `Regexp` and `OnigRegexp`, by the crate regex: a search takes a time that is linear in its text.
//!
//! Look-around and back-references are not offered, as no linear search has them.

use std::{cell::RefCell, collections::HashMap, rc::Rc, sync::Arc};

use imori_ruby::{Call, Error, Handle, Library, Value};
use regex::bytes::{Captures, Regex, RegexBuilder};

use super::context::{argument_error, bytes_at, integer_at, text_at};

const PATTERN: &str = "Imori::Pattern";

/// Bytes of a compiled expression, which bounds the time of a search together with the text's length.
const COMPILED_BYTES_MAX: usize = 64 << 10;

/// Bytes of a text that is searched.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Compiled expressions that are kept: a literal in a loop is compiled once.
const KEPT_MAX: usize = 256;

/// Matches of one search for all.
const MATCHES_MAX: usize = 100_000;

type Kept = Rc<RefCell<HashMap<(String, i64), Arc<Regex>>>>;

pub(super) fn declare(library: &mut Library) {
    let kept = Kept::default();
    library
        .handle_class(PATTERN)
        .class("OnigRegexp", "Object")
        .singleton_method("OnigRegexp", "__compile", move |call| compile(call, &kept))
        .singleton_method("OnigRegexp", "__escape", |call| {
            Ok(regex::escape(&text_at(call, 0)?).as_str().into())
        })
        .method(PATTERN, "names", |call| {
            let names = pattern_of(call)?;
            let names = names.capture_names().map(|name| name.map_or(Value::Nil, Value::from));
            Ok(Value::Array(names.collect()))
        })
        .method(PATTERN, "find", find)
        .method(PATTERN, "find_all", find_all)
        .prelude("<imori>/regexp.rb", include_str!("../ruby/regexp.rb"));
}

/// `__compile(source, options)`: options are 1 for any case, 2 for free spacing, 4 for a dot that is also a line feed.
fn compile(call: &Call<'_>, kept: &Kept) -> Result<Value, Error> {
    let (source, options) = (text_at(call, 0)?, integer_at(call, 1)?);
    let key = (source, options);
    if let Some(regex) = kept.borrow().get(&key) {
        return Ok(handle(regex));
    }
    let built = RegexBuilder::new(&translate(&key.0))
        // In Ruby `^` and `$` are always about lines.
        .multi_line(true)
        .case_insensitive(options & 1 != 0)
        .ignore_whitespace(options & 2 != 0)
        .dot_matches_new_line(options & 4 != 0)
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(COMPILED_BYTES_MAX)
        .build();
    let regex = Arc::new(built.map_err(|error| {
        let text = error.to_string();
        let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
        Error::new("RegexpError", format!("/{}/: {reason}", key.0))
    })?);
    let mut kept = kept.borrow_mut();
    if kept.len() >= KEPT_MAX {
        kept.clear();
    }
    let value = handle(&regex);
    kept.insert(key, regex);
    Ok(value)
}

fn handle(regex: &Arc<Regex>) -> Value {
    Value::Handle(Handle::new(PATTERN, Arc::clone(regex) as Arc<_>))
}

/// The escapes and options of Ruby that the crate writes otherwise.
pub fn translate(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        if letter == '('
            && let Some(behind) = rest.strip_prefix('?')
            && let Some(end) = behind.find(|letter| !"mix-".contains(letter))
            && end > 0
        {
            // Ruby's `m`, a dot that is also a line feed, is `s` in the crate.
            out.push_str("(?");
            out.push_str(&behind[..end].replace('m', "s"));
            rest = &behind[end..];
            continue;
        }
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        let Some(escaped) = rest.chars().next() else {
            out.push('\\');
            break;
        };
        rest = &rest[escaped.len_utf8()..];
        match escaped {
            // Ruby's classes are those of ASCII.
            'd' => out.push_str("[0-9]"),
            'D' => out.push_str("[^0-9]"),
            'w' => out.push_str("[0-9A-Za-z_]"),
            'W' => out.push_str("[^0-9A-Za-z_]"),
            's' => out.push_str("[ \\t\\r\\n\\f\\v]"),
            'S' => out.push_str("[^ \\t\\r\\n\\f\\v]"),
            'b' => out.push_str("(?-u:\\b)"),
            'B' => out.push_str("(?-u:\\B)"),
            'h' => out.push_str("[0-9a-fA-F]"),
            'H' => out.push_str("[^0-9a-fA-F]"),
            'Z' => out.push_str("(?:\\n?\\z)"),
            'e' => out.push_str("\\x1b"),
            '/' => out.push('/'),
            other => out.extend(['\\', other]),
        }
    }
    out
}

/// `find(text, from)`: the ends of each group of the first match, in bytes; `nil` without one.
fn find(call: &Call<'_>) -> Result<Value, Error> {
    let (regex, text) = (pattern_of(call)?, subject_at(call)?);
    let from = usize::try_from(integer_at(call, 1)?).unwrap_or(usize::MAX);
    if from > text.len() {
        return Ok(Value::Nil);
    }
    Ok(regex.captures_at(&text, from).map_or(Value::Nil, |captures| ends(&captures)))
}

/// `find_all(text)`: the same for each match.
fn find_all(call: &Call<'_>) -> Result<Value, Error> {
    let (regex, text) = (pattern_of(call)?, subject_at(call)?);
    let all: Vec<Value> =
        regex.captures_iter(&text).take(MATCHES_MAX + 1).map(|captures| ends(&captures)).collect();
    if all.len() > MATCHES_MAX {
        return Err(Error::new(
            "Imori::LimitError",
            format!("a text has over {MATCHES_MAX} matches; split it"),
        ));
    }
    Ok(Value::Array(all))
}

fn ends(captures: &Captures<'_>) -> Value {
    let offset = |at: usize| Value::Integer(i64::try_from(at).unwrap_or(i64::MAX));
    let group = |group: Option<regex::bytes::Match<'_>>| match group {
        Some(found) => [offset(found.start()), offset(found.end())],
        None => [Value::Nil, Value::Nil],
    };
    Value::Array(captures.iter().flat_map(group).collect())
}

fn subject_at(call: &Call<'_>) -> Result<Vec<u8>, Error> {
    let text = bytes_at(call, 0)?;
    if text.len() > TEXT_BYTES_MAX {
        return Err(argument_error(format!("a text to search has {TEXT_BYTES_MAX} bytes at most; split it")));
    }
    Ok(text)
}

fn pattern_of(call: &Call<'_>) -> Result<Arc<Regex>, Error> {
    let regex = call.receiver.as_ref().and_then(Handle::object::<Regex>);
    regex.ok_or_else(|| Error::new("TypeError", "this is no pattern"))
}
