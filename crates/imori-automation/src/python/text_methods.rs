//! Python's methods of `str`.

use minijinja::formatting::{FormatStyle, format};
use minijinja::value::{Tuple, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

use super::arguments::{Arguments, bounds, int_or, is_set, strict_int, strict_text};
use super::values::{failure, is_printable, is_space, items, type_name};
use crate::limits::{FORMAT_WIDTH_MAX, TEMPLATE_OUTPUT_BYTES_MAX};

/// Calls a method of a text.
///
/// # Errors
/// Python has no such method, or the call fails.
pub(crate) fn text_method(state: &State, text: &str, name: &str, values: &[Value]) -> Result<Value, Error> {
    state.consume_fuel(text.len() as u64 / 64)?;
    if let Some(value) = cased(text, name).map(Value::from).or_else(|| kind(text, name).map(Value::from)) {
        let [] = Arguments::new("method", values).bind([], 0)?;
        return Ok(value);
    }
    match name {
        "strip" | "lstrip" | "rstrip" => {
            let [chars] = Arguments::new("strip", values).bind(["chars"], 0)?;
            stripped(text, chars.as_ref(), name).map(Value::from)
        }
        "split" | "rsplit" => split(text, name, values),
        "splitlines" => {
            let [keep] = Arguments::new("splitlines", values).bind(["keepends"], 0)?;
            Ok(Value::from(
                lines(text, is_set(keep.as_ref())).into_iter().map(Value::from).collect::<Vec<_>>(),
            ))
        }
        "join" => {
            let [parts] = Arguments::new("join", values).bind(["iterable"], 1)?;
            let parts = items(state, &parts.unwrap_or_default())?;
            let mut joined = String::new();
            for (at, part) in parts.iter().enumerate() {
                if at > 0 {
                    joined.push_str(text);
                }
                let part = part.as_str().ok_or_else(|| {
                    let kind = type_name(part);
                    failure(format!("sequence item {at}: expected str instance, {kind} found"))
                })?;
                state.consume_fuel(part.len() as u64 / 64)?;
                joined.push_str(part);
            }
            Ok(Value::from(joined))
        }
        "replace" => {
            let [old, new, count] = Arguments::new("replace", values).bind(["old", "new", "count"], 2)?;
            let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
            let count = int_or(count.as_ref(), -1)?;
            replaced(state, text, strict_text(&old)?, strict_text(&new)?, count).map(Value::from)
        }
        "startswith" | "endswith" => affixed(text, name, values),
        "find" | "rfind" | "index" | "rindex" | "count" => search(text, name, values),
        "partition" | "rpartition" => {
            let [separator] = Arguments::new("partition", values).bind(["sep"], 1)?;
            let separator = separator.unwrap_or_default();
            let separator = strict_text(&separator)?;
            if separator.is_empty() {
                return Err(failure("empty separator"));
            }
            let parts = match name {
                "partition" => text.split_once(separator).map(|(before, after)| [before, separator, after]),
                _ => text.rsplit_once(separator).map(|(before, after)| [before, separator, after]),
            };
            let parts = parts.unwrap_or(if name == "partition" { [text, "", ""] } else { ["", "", text] });
            Ok(Value::from(Tuple::from(parts.map(Value::from).to_vec())))
        }
        "removeprefix" | "removesuffix" => {
            let [affix] =
                Arguments::new(if name == "removeprefix" { "removeprefix" } else { "removesuffix" }, values)
                    .bind(["affix"], 1)?;
            let affix = affix.unwrap_or_default();
            let affix = strict_text(&affix)?;
            let rest =
                if name == "removeprefix" { text.strip_prefix(affix) } else { text.strip_suffix(affix) };
            Ok(Value::from(rest.unwrap_or(text)))
        }
        "center" | "ljust" | "rjust" => {
            let [width, fill] = Arguments::new("just", values).bind(["width", "fillchar"], 1)?;
            let width = strict_int(&width.unwrap_or_default())?;
            let fill = fill.unwrap_or_else(|| Value::from(" "));
            let mut fill = strict_text(&fill)?.chars();
            match (fill.next(), fill.next()) {
                (Some(fill), None) => justified(text, name, width, fill).map(Value::from),
                _ => Err(failure("The fill character must be exactly one character long")),
            }
        }
        "zfill" => {
            let [width] = Arguments::new("zfill", values).bind(["width"], 1)?;
            let sign = text.chars().next().filter(|c| *c == '+' || *c == '-');
            let digits = text.get(usize::from(sign.is_some())..).unwrap_or_default();
            let width = strict_int(&width.unwrap_or_default())? - i128::from(sign.is_some());
            let filled = justified(digits, "rjust", width, '0')?;
            Ok(Value::from(sign.map(String::from).unwrap_or_default() + &filled))
        }
        "expandtabs" => {
            let [size] = Arguments::new("expandtabs", values).bind(["tabsize"], 0)?;
            expanded(text, int_or(size.as_ref(), 8)?).map(Value::from)
        }
        "format" => {
            check_widths(text)?;
            format(FormatStyle::StrFormat, text, values).map(Value::from)
        }
        "format_map" => {
            let [map] = Arguments::new("format_map", values).bind(["mapping"], 1)?;
            let map = map.unwrap_or_default();
            let mut named = Vec::new();
            for key in items(state, &map)? {
                named.push((key.as_str().unwrap_or_default().to_owned(), map.get_item(&key)?));
            }
            check_widths(text)?;
            let named: minijinja::value::Kwargs = named.into_iter().collect();
            format(FormatStyle::StrFormat, text, &[Value::from(named)]).map(Value::from)
        }
        _ => Err(Error::new(ErrorKind::UnknownMethod, format!("'str object' has no attribute '{name}'"))),
    }
}

/// What `capitalize` gives.
pub(crate) fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        None => String::new(),
        Some(first) => titled_char(first) + &chars.as_str().to_lowercase(),
    }
}

fn titled_char(c: char) -> String {
    let mut upper = c.to_uppercase();
    let first: String = upper.next().into_iter().collect();
    first + &upper.collect::<String>().to_lowercase()
}

fn cased(text: &str, name: &str) -> Option<String> {
    Some(match name {
        "upper" => text.to_uppercase(),
        "lower" => text.to_lowercase(),
        "casefold" => text.to_lowercase().replace('ß', "ss").replace('ς', "σ"),
        "capitalize" => capitalized(text),
        "swapcase" => text
            .chars()
            .map(|c| {
                if c.is_lowercase() {
                    c.to_uppercase().collect()
                } else {
                    c.to_lowercase().collect::<String>()
                }
            })
            .collect(),
        "title" => {
            let mut titled = String::new();
            let mut inside = false;
            for c in text.chars() {
                titled += &if inside { c.to_lowercase().collect() } else { titled_char(c) };
                inside = is_cased(c);
            }
            titled
        }
        _ => return None,
    })
}

fn is_cased(c: char) -> bool {
    c.is_lowercase() || c.is_uppercase() || c.to_uppercase().ne([c]) || c.to_lowercase().ne([c])
}

fn kind(text: &str, name: &str) -> Option<bool> {
    let all = |test: fn(char) -> bool| !text.is_empty() && text.chars().all(test);
    Some(match name {
        "isalnum" => all(char::is_alphanumeric),
        "isalpha" => all(char::is_alphabetic),
        "isascii" => text.is_ascii(),
        "isdecimal" | "isdigit" => all(|c| c.is_ascii_digit() || (!c.is_ascii() && c.is_numeric())),
        "isnumeric" => all(char::is_numeric),
        "isspace" => all(is_space),
        "isprintable" => text.chars().all(is_printable),
        "isidentifier" => {
            !text.starts_with(|c: char| c.is_numeric()) && all(|c| c.is_alphanumeric() || c == '_')
        }
        "islower" => text.chars().any(char::is_lowercase) && !text.chars().any(char::is_uppercase),
        "isupper" => text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase),
        "istitle" => {
            let mut inside = false;
            let mut any = false;
            for c in text.chars() {
                if (c.is_uppercase() && inside) || (c.is_lowercase() && !inside) {
                    return Some(false);
                }
                inside = c.is_uppercase() || c.is_lowercase();
                any |= inside;
            }
            any
        }
        _ => return None,
    })
}

/// The text without white space, or without the given characters, at its ends.
///
/// # Errors
/// `chars` is no text.
pub(crate) fn stripped<'a>(text: &'a str, chars: Option<&Value>, name: &str) -> Result<&'a str, Error> {
    let chars = match chars.filter(|chars| !chars.is_none()) {
        Some(chars) => Some(strict_text(chars)?),
        None => None,
    };
    let strip = |c: char| chars.map_or_else(|| is_space(c), |chars| chars.contains(c));
    Ok(match name {
        "lstrip" => text.trim_start_matches(strip),
        "rstrip" => text.trim_end_matches(strip),
        _ => text.trim_matches(strip),
    })
}

fn split(text: &str, name: &str, values: &[Value]) -> Result<Value, Error> {
    let [separator, limit] = Arguments::new("split", values).bind(["sep", "maxsplit"], 0)?;
    let limit =
        usize::try_from(int_or(limit.as_ref(), -1)?).map_or(usize::MAX, |limit| limit.saturating_add(1));
    let from_right = name == "rsplit";
    let mut parts: Vec<&str> = match separator.as_ref().filter(|separator| !separator.is_none()) {
        Some(separator) => {
            let separator = strict_text(separator)?;
            if separator.is_empty() {
                return Err(failure("empty separator"));
            }
            if from_right {
                text.rsplitn(limit, separator).collect()
            } else {
                text.splitn(limit, separator).collect()
            }
        }
        None => split_spaces(text, limit, from_right),
    };
    if from_right {
        parts.reverse();
    }
    Ok(Value::from(parts.into_iter().map(Value::from).collect::<Vec<_>>()))
}

fn split_spaces(text: &str, limit: usize, from_right: bool) -> Vec<&str> {
    let trim = |text| match from_right {
        true => str::trim_end_matches(text, is_space),
        false => str::trim_start_matches(text, is_space),
    };
    let mut parts = Vec::new();
    let mut rest = trim(text);
    while !rest.is_empty() {
        let cut = if from_right { rest.rsplit_once(is_space) } else { rest.split_once(is_space) };
        match cut.filter(|_| parts.len() + 1 < limit) {
            Some((before, part)) if from_right => {
                parts.push(part);
                rest = trim(before);
            }
            Some((part, after)) => {
                parts.push(part);
                rest = trim(after);
            }
            None => {
                parts.push(rest);
                break;
            }
        }
    }
    parts
}

/// What `splitlines` gives.
pub(crate) fn lines(text: &str, keep_ends: bool) -> Vec<&str> {
    let ends =
        |c| matches!(c, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let mut lines = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if !ends(c) {
            continue;
        }
        if c == '\r' {
            chars.next_if(|(_, next)| *next == '\n');
        }
        let after = chars.peek().map_or(text.len(), |(after, _)| *after);
        lines.extend(text.get(start..if keep_ends { after } else { at }));
        start = after;
    }
    lines.extend(text.get(start..).filter(|last| !last.is_empty()));
    lines
}

/// What `replace` gives; a negative count replaces all.
///
/// # Errors
/// The result is too long.
pub(crate) fn replaced(
    state: &State,
    text: &str,
    old: &str,
    new: &str,
    count: i128,
) -> Result<String, Error> {
    let found = text.matches(old).count();
    let count = usize::try_from(count).map_or(found, |count| count.min(found));
    let bytes = text.len().saturating_add(count.saturating_mul(new.len()));
    if bytes > TEMPLATE_OUTPUT_BYTES_MAX {
        return Err(failure("the replaced text is too long"));
    }
    state.consume_fuel(bytes as u64 / 64)?;
    Ok(text.replacen(old, new, count))
}

fn affixed(text: &str, name: &str, values: &[Value]) -> Result<Value, Error> {
    let [affix, start, stop] = Arguments::new("startswith", values).bind(["prefix", "start", "end"], 1)?;
    let affix = affix.unwrap_or_default();
    let affixes = match affix.kind() {
        ValueKind::Seq if affix.is_tuple() => affix.try_iter()?.collect(),
        _ => vec![affix],
    };
    let part = part(text, start.as_ref(), stop.as_ref())?;
    let mut found = false;
    for affix in affixes {
        let affix = affix.as_str().ok_or_else(|| {
            let kind = type_name(&affix);
            failure(format!("{name} first arg must be str or a tuple of str, not {kind}"))
        })?;
        found |= part.is_some_and(|(_, part)| {
            if name == "startswith" { part.starts_with(affix) } else { part.ends_with(affix) }
        });
    }
    Ok(Value::from(found))
}

fn search(text: &str, name: &str, values: &[Value]) -> Result<Value, Error> {
    let [wanted, start, stop] = Arguments::new("find", values).bind(["sub", "start", "end"], 1)?;
    let wanted = wanted.unwrap_or_default();
    let wanted = strict_text(&wanted)?;
    let part = part(text, start.as_ref(), stop.as_ref())?;
    if name == "count" {
        return Ok(Value::from(part.map_or(0, |(_, part)| part.matches(wanted).count())));
    }
    let at = part.and_then(|(before, part)| {
        let at = if name.starts_with('r') { part.rfind(wanted) } else { part.find(wanted) }?;
        Some(before + part.get(..at)?.chars().count())
    });
    match at {
        Some(at) => Ok(Value::from(at)),
        None if name.ends_with("find") => Ok(Value::from(-1)),
        None => Err(failure("substring not found")),
    }
}

/// The part of a text between two positions in characters, and the first of them.
fn part<'a>(
    text: &'a str,
    start: Option<&Value>,
    stop: Option<&Value>,
) -> Result<Option<(usize, &'a str)>, Error> {
    if start.is_none() && stop.is_none() {
        return Ok(Some((0, text)));
    }
    let len = text.chars().count();
    let (start, stop) = bounds(len, start, stop)?;
    if start > stop {
        return Ok(None);
    }
    let byte = |at: usize| text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte);
    Ok(text.get(byte(start)..byte(stop)).map(|part| (start, part)))
}

/// What `ljust`, `rjust` and `center` give.
///
/// # Errors
/// The width is above its limit.
pub(crate) fn justified(text: &str, name: &str, width: i128, fill: char) -> Result<String, Error> {
    let len = text.chars().count();
    let width = usize::try_from(width.max(0)).unwrap_or(usize::MAX);
    if width <= len {
        return Ok(text.to_owned());
    }
    if width > FORMAT_WIDTH_MAX {
        return Err(failure(format!("width `{width}` is above the limit of {FORMAT_WIDTH_MAX}")));
    }
    let missing = width - len;
    let left = match name {
        "ljust" => 0,
        "rjust" => missing,
        // An odd blank goes to the left where the width is odd, as in Python.
        _ => missing / 2 + (missing & width & 1),
    };
    let blanks = |count: usize| std::iter::repeat_n(fill, count).collect::<String>();
    Ok(blanks(left) + text + &blanks(missing - left))
}

/// Refuses a text with `{}` that asks for more than the limit of a width.
fn check_widths(text: &str) -> Result<(), Error> {
    text.split(['{', ':']).skip(1).try_for_each(|field| {
        let spec = field.split('}').next().unwrap_or_default();
        spec.split(|c: char| !c.is_ascii_digit()).try_for_each(check_width)
    })
}

/// Refuses a width that is above its limit.
///
/// # Errors
/// As said.
pub(crate) fn check_width(digits: &str) -> Result<(), Error> {
    match digits.is_empty() || digits.parse::<usize>().is_ok_and(|width| width <= FORMAT_WIDTH_MAX) {
        true => Ok(()),
        false => Err(failure(format!("width `{digits}` is above the limit of {FORMAT_WIDTH_MAX}"))),
    }
}

fn expanded(text: &str, size: i128) -> Result<String, Error> {
    let size = usize::try_from(size.max(0)).unwrap_or(usize::MAX);
    if size.saturating_mul(text.matches('\t').count()) > TEMPLATE_OUTPUT_BYTES_MAX {
        return Err(failure("the expanded text is too long"));
    }
    let mut out = String::new();
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\t' if size > 0 => {
                let blanks = size - column % size;
                out.extend(std::iter::repeat_n(' ', blanks));
                column += blanks;
            }
            '\t' => {}
            c => {
                out.push(c);
                column = if c == '\n' || c == '\r' { 0 } else { column + 1 };
            }
        }
    }
    Ok(out)
}
