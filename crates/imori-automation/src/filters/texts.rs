//! Jinja's filters of texts.

use minijinja::formatting::{FormatStyle, format as formatted};
use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

use super::numbers::count_of;
use crate::limits::FORMAT_WIDTH_MAX;
use crate::python::arguments::{Arguments, int_or, is_set, soft_text, strict_int, strict_text};
use crate::python::text_methods::{capitalized, check_width, justified, lines, replaced, stripped};
use crate::python::values::{failure, is_space, items, text, type_name};

/// A filter that takes a text and gives one.
pub(crate) fn plain(arguments: Arguments, change: impl Fn(&str) -> String) -> Result<Value, Error> {
    let [value] = arguments.bind(["s"], 1)?;
    Ok(Value::from(change(&text(&value.unwrap_or_default())?)))
}

/// `title`: every word with a capital letter.
pub(crate) fn titled(text: &str) -> String {
    let breaks = |c: char| is_space(c) || matches!(c, '-' | '(' | '{' | '[' | '<');
    let mut out = String::new();
    let mut start = true;
    for c in text.chars() {
        if start {
            out.extend(c.to_uppercase());
        } else {
            out.extend(c.to_lowercase());
        };
        start = breaks(c);
    }
    out
}

/// `capitalize`.
pub(crate) fn capitalize(_: &mut State, arguments: Arguments) -> Result<Value, Error> {
    plain(arguments, capitalized)
}

/// `default`: what stands for an undefined value, or with `boolean` for one that is false.
pub(crate) fn default(_: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, default, boolean] = arguments.bind(["value", "default_value", "boolean"], 1)?;
    let value = value.unwrap_or_default();
    if value.is_undefined() || (is_set(boolean.as_ref()) && !value.is_true()) {
        return Ok(default.unwrap_or_else(|| Value::from("")));
    }
    Ok(value)
}

/// `replace`.
pub(crate) fn replace(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, old, new, count] = arguments.bind(["s", "old", "new", "count"], 3)?;
    let value = text(&value.unwrap_or_default())?;
    let (old, new) = (soft_text(old.as_ref())?, soft_text(new.as_ref())?);
    let count = int_or(count.filter(|count| !count.is_none()).as_ref(), -1)?;
    replaced(state, &value, &old, &new, count).map(Value::from)
}

/// `trim`.
pub(crate) fn trim(_: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, chars] = arguments.bind(["value", "chars"], 1)?;
    let value = text(&value.unwrap_or_default())?;
    stripped(&value, chars.as_ref(), "strip").map(Value::from)
}

/// `center`.
pub(crate) fn center(_: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, width] = arguments.bind(["value", "width"], 1)?;
    let value = text(&value.unwrap_or_default())?;
    justified(&value, "center", int_or(width.as_ref(), 80)?, ' ').map(Value::from)
}

/// `string`: what `str` gives.
pub(crate) fn string(_: &mut State, arguments: Arguments) -> Result<Value, Error> {
    plain(arguments, str::to_owned)
}

/// `format`: a text with `%`, filled by the arguments.
pub(crate) fn format(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let (value, arguments) = arguments.split_first();
    let value = text(&value.unwrap_or_default())?;
    let (positional, named) = arguments.into_parts();
    if !positional.is_empty() && !named.is_empty() {
        return Err(failure("can't handle positional and keyword arguments at the same time"));
    }
    state.consume_fuel(value.len() as u64 / 16)?;
    if conversions(&value)? < positional.len() {
        return Err(failure("not all arguments converted during string formatting"));
    }
    let values =
        if named.is_empty() { positional } else { vec![Value::from(named.into_iter().collect::<Kwargs>())] };
    formatted(FormatStyle::Printf, &value, &values).map(Value::from)
}

/// What Python's `%` gives after a text: a tuple has its values, a dict its named values, and all else is one value.
pub(crate) fn percent_format(state: &State, text: &Value, value: &Value) -> Result<Value, Error> {
    let text = strict_text(text)?;
    state.consume_fuel(text.len() as u64 / 16)?;
    let values = match value.kind() {
        ValueKind::Undefined => return Err(Error::from(ErrorKind::UndefinedError)),
        _ if value.is_tuple() => items(state, value)?,
        // With names in the text, the values of a dict are meant.
        ValueKind::Map if text.contains("%(") => {
            let mut named = Vec::new();
            for key in items(state, value)? {
                named.push((strict_text(&key)?.to_owned(), value.get_item(&key)?));
            }
            vec![Value::from(named.into_iter().collect::<Kwargs>())]
        }
        _ => vec![value.clone()],
    };
    let is_container =
        value.kind() == ValueKind::Map || (value.kind() == ValueKind::Seq && !value.is_tuple());
    let taken = conversions(text)?;
    if taken < values.len() && !is_container {
        return Err(failure("not all arguments converted during string formatting"));
    }
    if taken == 0 {
        return formatted(FormatStyle::Printf, text, &[]).map(Value::from);
    }
    formatted(FormatStyle::Printf, text, &values).map(Value::from)
}

/// The values that a text with `%` takes.
///
/// # Errors
/// A width or a precision is above its limit.
fn conversions(text: &str) -> Result<usize, Error> {
    let mut count = 0;
    let mut chars = text.chars();
    while chars.any(|c| c == '%') {
        let mut digits = String::new();
        for c in chars.by_ref() {
            match c {
                '%' => break,
                '*' => return Err(failure("a width `*` is not supported; write it as a number")),
                c if c.is_ascii_alphabetic() && !matches!(c, 'l' | 'h' | 'L') => {
                    count += 1;
                    break;
                }
                c if c.is_ascii_digit() => digits.push(c),
                _ => digits.clear(),
            }
            check_width(&digits)?;
        }
    }
    Ok(count)
}

/// `indent`.
pub(crate) fn indent(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, width, first, blank] = arguments.bind(["s", "width", "first", "blank"], 1)?;
    let value = value.unwrap_or_default();
    let value = match value.kind() {
        ValueKind::Undefined => return Err(Error::from(ErrorKind::UndefinedError)),
        _ => strict_text(&value)?.to_owned() + "\n",
    };
    let width = width.unwrap_or_else(|| Value::from(4));
    let indention = match width.as_str() {
        Some(indention) => indention.to_owned(),
        None => blanks(strict_int(&width)?)?,
    };
    let lines = lines(&value, false);
    state.consume_fuel((indention.len() * lines.len() + value.len()) as u64 / 64)?;
    let mut out = String::new();
    for (at, line) in lines.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        let indented =
            if at == 0 { is_set(first.as_ref()) } else { is_set(blank.as_ref()) || !line.is_empty() };
        if indented {
            out.push_str(&indention);
        }
        out.push_str(line);
    }
    // A line that is kept blank also keeps the line that the added end begins.
    if is_set(blank.as_ref()) && lines.is_empty() && !is_set(first.as_ref()) {
        out.clear();
    }
    Ok(Value::from(out))
}

/// `truncate`.
pub(crate) fn truncate(_: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, length, killwords, end, leeway] =
        arguments.bind(["s", "length", "killwords", "end", "leeway"], 1)?;
    let value = value.unwrap_or_default();
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    let length = count_of(length.as_ref(), 255)?;
    let leeway = count_of(leeway.as_ref(), 5)?;
    // A short list passes as it is, since only its length is asked for.
    if value.as_str().is_none() && value.len().is_some_and(|len| len <= length.saturating_add(leeway)) {
        return Ok(value);
    }
    let value = strict_text(&value)?;
    let end = end.unwrap_or_else(|| Value::from("..."));
    let end = strict_text(&end)?;
    let chars = value.chars().count();
    let end_chars = end.chars().count();
    if length < end_chars {
        return Err(failure(format!("expected length >= {end_chars}, got {length}")));
    }
    if chars <= length.saturating_add(leeway) {
        return Ok(Value::from(value));
    }
    let kept: String = value.chars().take(length - end_chars).collect();
    if is_set(killwords.as_ref()) {
        return Ok(Value::from(kept + end));
    }
    let words = kept.rsplit_once(' ').map_or(kept.as_str(), |(words, _)| words);
    Ok(Value::from(format!("{words}{end}")))
}

/// `wordcount`.
pub(crate) fn wordcount(_: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value] = arguments.bind(["s"], 1)?;
    let value = text(&value.unwrap_or_default())?;
    let words = value.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
    Ok(Value::from(words.count()))
}

/// `wordwrap`: lines of at most `width` characters, broken at spaces and after hyphens.
pub(crate) fn wordwrap(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, width, break_long, wrap, break_hyphens] =
        arguments.bind(["s", "width", "break_long_words", "wrapstring", "break_on_hyphens"], 1)?;
    let value = value.unwrap_or_default();
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    let value = strict_text(&value)?;
    let width = count_of(width.as_ref(), 79)?;
    if width == 0 {
        return Err(failure("invalid width 0 (must be > 0)"));
    }
    state.consume_fuel(value.len() as u64 / 4)?;
    let break_long = break_long.is_none_or(|value| value.is_true());
    let break_hyphens = break_hyphens.is_none_or(|value| value.is_true());
    let wrap = soft_text(Some(&wrap.filter(|wrap| !wrap.is_none()).unwrap_or_else(|| Value::from("\n"))))?;
    let paragraphs: Vec<String> = lines(value, false)
        .into_iter()
        .map(|line| wrapped(line, width, break_long, break_hyphens).join(&wrap))
        .collect();
    Ok(Value::from(paragraphs.join(&wrap)))
}

fn wrapped(line: &str, width: usize, break_long: bool, break_hyphens: bool) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut current: Vec<String> = Vec::new();
    let mut used = 0;
    let flush = |current: &mut Vec<String>, lines: &mut Vec<String>| {
        if current.last().is_some_and(|chunk| chunk.trim_matches(is_wrap_space).is_empty()) {
            current.pop();
        }
        if !current.is_empty() {
            lines.push(current.concat());
        }
        current.clear();
    };
    let mut chunks: Vec<String> = chunks(line, break_hyphens);
    chunks.reverse();
    while let Some(chunk) = chunks.pop() {
        let blank = chunk.trim_matches(is_wrap_space).is_empty();
        if current.is_empty() && blank && !lines.is_empty() {
            continue;
        }
        let chars = chunk.chars().count();
        if used + chars <= width {
            used += chars;
            current.push(chunk);
            continue;
        }
        let room = width.saturating_sub(used);
        if chars > width && break_long && (room > 0 || current.is_empty()) {
            let cut = chunk.char_indices().nth(room.max(1)).map_or(chunk.len(), |(at, _)| at);
            let cut = hyphen_cut(&chunk, cut, break_hyphens);
            let (head, tail) = chunk.split_at(cut);
            current.push(head.to_owned());
            chunks.push(tail.to_owned());
        } else if chars > width && current.is_empty() {
            current.push(chunk);
        } else {
            chunks.push(chunk);
        }
        flush(&mut current, &mut lines);
        used = 0;
    }
    flush(&mut current, &mut lines);
    lines
}

/// A long word is cut after its last hyphen before the limit, if something else stands before it.
fn hyphen_cut(chunk: &str, cut: usize, break_hyphens: bool) -> usize {
    let head = chunk.get(..cut).unwrap_or(chunk);
    match head.rfind('-').filter(|at| break_hyphens && head.bytes().take(*at).any(|byte| byte != b'-')) {
        Some(at) => at + 1,
        None => cut,
    }
}

fn is_wrap_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r')
}

/// Words, and the spaces between them; a word also ends after a hyphen between letters.
fn chunks(line: &str, break_hyphens: bool) -> Vec<String> {
    let mut chunks: Vec<String> = Vec::new();
    let chars: Vec<char> = line.chars().collect();
    let mut current = String::new();
    for (at, c) in chars.iter().copied().enumerate() {
        let space = is_wrap_space(c);
        if current.chars().next().is_some_and(|first| is_wrap_space(first) != space) {
            chunks.push(std::mem::take(&mut current));
        }
        current.push(c);
        let letter = |at: Option<usize>| {
            at.and_then(|at| chars.get(at)).is_some_and(|c| c.is_alphabetic() || *c == '_')
        };
        let before = letter(at.checked_sub(1))
            && at
                .checked_sub(2)
                .and_then(|at| chars.get(at))
                .is_some_and(|c| c.is_alphanumeric() || *c == '_');
        if break_hyphens && c == '-' && before && letter(Some(at + 1)) {
            chunks.push(std::mem::take(&mut current));
        }
    }
    if !current.is_empty() {
        chunks.push(current);
    }
    chunks
}

/// `escape`, `e` and `forceescape`: a text for HTML.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&#39;"),
            '"' => out.push_str("&#34;"),
            c => out.push(c),
        }
    }
    out
}

/// `striptags`: a text without tags of HTML and with single spaces.
pub(crate) fn without_tags(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<!--") {
        let Some((_, after)) = after.split_once("-->") else { break };
        kept.push_str(before);
        rest = after;
    }
    kept.push_str(rest);
    let text = std::mem::take(&mut kept);
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once('<') {
        let Some((_, after)) = after.split_once('>') else { break };
        kept.push_str(before);
        rest = after;
    }
    kept.push_str(rest);
    let words: Vec<&str> = kept.split(is_space).filter(|word| !word.is_empty()).collect();
    unescaped(&words.join(" "))
}

fn unescaped(text: &str) -> String {
    let names = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&#39;", "'"),
        ("&#34;", "\""),
        ("&quot;", "\""),
        ("&nbsp;", "\u{a0}"),
        ("&amp;", "&"),
    ];
    names.into_iter().fold(text.to_owned(), |text, (name, c)| text.replace(name, c))
}

/// `xmlattr`: the attributes of a tag.
pub(crate) fn xmlattr(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, space] = arguments.bind(["d", "autospace"], 1)?;
    let value = value.unwrap_or_default();
    if value.kind() != ValueKind::Map {
        return Err(failure(format!("'{} object' has no attribute 'items'", type_name(&value))));
    }
    let mut attributes = Vec::new();
    for key in items(state, &value)? {
        let item = value.get_item(&key)?;
        if item.is_none() || item.is_undefined() {
            continue;
        }
        let key = strict_text(&key)?;
        if key.contains(|c: char| is_space(c) || matches!(c, '/' | '>' | '=')) {
            return Err(failure(format!("Invalid character in attribute name: '{key}'")));
        }
        attributes.push(format!("{}=\"{}\"", escaped(key), escaped(&text(&item)?)));
    }
    let joined = attributes.join(" ");
    let spaced = space.is_none_or(|space| space.is_true()) && !joined.is_empty();
    Ok(Value::from(if spaced { format!(" {joined}") } else { joined }))
}

/// `urlencode`: a text, or the pairs of a query, for a URL.
pub(crate) fn urlencode(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value] = arguments.bind(["value"], 1)?;
    let value = value.unwrap_or_default();
    let pairs: Vec<(Value, Value)> = match value.kind() {
        ValueKind::Map => items(state, &value)?
            .into_iter()
            .map(|key| Ok((key.clone(), value.get_item(&key)?)))
            .collect::<Result<_, Error>>()?,
        ValueKind::Seq | ValueKind::Iterable => items(state, &value)?
            .into_iter()
            .map(|pair| {
                let pair = pair.try_iter()?.collect::<Vec<_>>();
                <[Value; 2]>::try_from(pair)
                    .map(|[key, value]| (key, value))
                    .map_err(|_| failure("not enough values to unpack (expected 2)"))
            })
            .collect::<Result<_, Error>>()?,
        _ => return Ok(Value::from(quoted(&text(&value)?, false))),
    };
    let mut parts = Vec::new();
    for (key, value) in pairs {
        parts.push(format!("{}={}", quoted(&text(&key)?, true), quoted(&text(&value)?, true)));
    }
    Ok(Value::from(parts.join("&")))
}

fn quoted(text: &str, query: bool) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'.' | b'-' | b'~' => out.push(char::from(byte)),
            b'/' if !query => out.push('/'),
            b' ' if query => out.push('+'),
            byte => write!(out, "%{byte:02X}").expect("a string takes all that is written"),
        }
    }
    out
}

/// Spaces for an indention.
///
/// # Errors
/// There are more than the limit.
pub(crate) fn blanks(count: i128) -> Result<String, Error> {
    let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
    match count > FORMAT_WIDTH_MAX {
        true => Err(failure(format!("width `{count}` is above the limit of {FORMAT_WIDTH_MAX}"))),
        false => Ok(" ".repeat(count)),
    }
}
