//! YAML as PyYAML's safe dumper writes it in block style.

use std::fmt::Write as _;

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, State};

use super::values::{Number, failure, float_text, is_list, items, sort_by_key, text, type_name};
use super::yaml_reader::is_plain_text;
use crate::limits::{TEMPLATE_OUTPUT_BYTES_MAX, VALUE_DEPTH_MAX};

/// Characters of a line beyond which PyYAML folds it at a space.
const LINE_CHARS: usize = 80;

/// Characters of a key beyond which it needs a line of its own.
const SIMPLE_KEY_CHARS: usize = 128;

/// Writes a value as YAML, with `indent` spaces a level.
///
/// # Errors
/// PyYAML cannot write a value of this type, or it is too large.
pub(crate) fn write_yaml(
    state: &State,
    value: &Value,
    indent: i128,
    allow_unicode: bool,
) -> Result<String, Error> {
    // PyYAML falls back to two where the indent is out of its range.
    let step = usize::try_from(indent).ok().filter(|step| (2..10).contains(step)).unwrap_or(2);
    let mut writer = Writer { state, out: String::new(), column: 0, step, allow_unicode };
    match value.kind() {
        kind if (kind == ValueKind::Map || is_list(value)) && value.len() != Some(0) => {
            writer.block(value, 0, false, 0)?;
        }
        _ => {
            writer.scalar(value, step, false)?;
            writer.out.push('\n');
        }
    }
    Ok(writer.out)
}

struct Writer<'a, 'b, 'c> {
    state: &'a State<'b, 'c>,
    out: String,
    column: usize,
    step: usize,
    allow_unicode: bool,
}

impl Writer<'_, '_, '_> {
    fn put(&mut self, text: &str) {
        self.column += text.chars().count();
        self.out.push_str(text);
    }

    fn line(&mut self, indent: usize) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.column = indent;
    }

    /// A list or map with items; `inline` where it begins on the line of its dash.
    fn block(&mut self, value: &Value, indent: usize, inline: bool, depth: usize) -> Result<(), Error> {
        if depth > VALUE_DEPTH_MAX || self.out.len() > TEMPLATE_OUTPUT_BYTES_MAX {
            return Err(failure("the value is too large for YAML"));
        }
        let pad = " ".repeat(indent);
        let mut first = inline;
        if value.kind() == ValueKind::Map {
            let keys = sort_by_key(self.state, items(self.state, value)?, false, |key| Ok(key.clone()));
            // Keys that have no order stay in theirs.
            let keys = keys.or_else(|_| items(self.state, value))?;
            for key in keys {
                self.start(&mut first, &pad);
                let item = value.get_item(&key)?;
                if key.as_str().is_some_and(|key| !is_simple_key(key)) {
                    self.put("? ");
                    self.scalar(&key, indent + self.step, false)?;
                    self.line(indent);
                    self.put(":");
                } else {
                    self.scalar(&key, indent + self.step, true)?;
                    self.put(":");
                }
                // A list in a map stands at the column of its key.
                let inner = if is_list(&item) { indent } else { indent + self.step };
                self.item(&item, inner, false, depth)?;
            }
            return Ok(());
        }
        for item in items(self.state, value)? {
            self.start(&mut first, &pad);
            self.put("-");
            self.item(&item, indent + self.step, true, depth)?;
        }
        Ok(())
    }

    fn start(&mut self, first: &mut bool, pad: &str) {
        self.column = pad.len();
        if !std::mem::take(first) {
            self.out.push_str(pad);
        }
    }

    fn item(&mut self, item: &Value, indent: usize, dashed: bool, depth: usize) -> Result<(), Error> {
        let nested = (item.kind() == ValueKind::Map || is_list(item)) && item.len() != Some(0);
        if nested && dashed {
            self.put(&" ".repeat(self.step - 1));
            return self.block(item, indent, true, depth + 1);
        }
        if nested {
            self.out.push('\n');
            return self.block(item, indent, false, depth + 1);
        }
        self.put(" ");
        self.scalar(item, indent, false)?;
        self.out.push('\n');
        Ok(())
    }

    /// A value that stands on one line, or is folded.
    fn scalar(&mut self, value: &Value, indent: usize, is_key: bool) -> Result<(), Error> {
        let plain = match value.kind() {
            ValueKind::None => "null".to_owned(),
            ValueKind::Bool => if value.is_true() { "true" } else { "false" }.to_owned(),
            ValueKind::Number => match Number::of(value) {
                Some(Number::Float(number)) => yaml_float(number),
                _ => text(value)?,
            },
            ValueKind::Map => {
                self.put("{}");
                return Ok(());
            }
            _ if is_list(value) => {
                self.put("[]");
                return Ok(());
            }
            ValueKind::String => {
                let text = value.as_str().unwrap_or_default();
                self.text(text, indent, is_key);
                return Ok(());
            }
            _ => {
                return Err(failure(format!("cannot represent an object of type {}", type_name(value))));
            }
        };
        self.put(&plain);
        Ok(())
    }

    fn text(&mut self, text: &str, indent: usize, is_key: bool) {
        let analysis = Analysis::of(text, self.allow_unicode);
        let simple = !(is_key && (text.is_empty() || analysis.multiline));
        if simple && analysis.plain && is_plain_text(text) {
            self.folded(text, indent, is_key);
        } else if analysis.single_quoted && !(is_key && analysis.multiline) {
            self.put("'");
            self.folded(&text.replace('\'', "''"), indent, is_key);
            self.put("'");
        } else {
            self.double_quoted(text, indent, is_key);
        }
    }

    /// A text whose single spaces may become ends of line, and whose ends of line become two.
    fn folded(&mut self, text: &str, indent: usize, is_key: bool) {
        let chars: Vec<char> = text.chars().collect();
        let at = |at: usize| chars.get(at).copied();
        let mut after_breaks = false;
        for (position, c) in chars.iter().copied().enumerate() {
            if is_break(c) {
                if !after_breaks && c == '\n' {
                    self.out.push('\n');
                }
                self.out.push(c);
                after_breaks = true;
                continue;
            }
            if after_breaks {
                self.out.extend(std::iter::repeat_n(' ', indent));
                self.column = indent;
                after_breaks = false;
            }
            let previous = position.checked_sub(1).and_then(at);
            let alone = previous.is_some_and(|c| c != ' ') && at(position + 1).is_some_and(|c| c != ' ');
            if c == ' ' && alone && !is_key && self.column > LINE_CHARS {
                self.line(indent);
            } else {
                self.out.push(c);
                self.column += 1;
            }
        }
        if after_breaks {
            self.out.extend(std::iter::repeat_n(' ', indent));
            self.column = indent;
        }
    }

    fn double_quoted(&mut self, text: &str, indent: usize, is_key: bool) {
        self.put("\"");
        let chars: Vec<char> = text.chars().collect();
        for (at, c) in chars.iter().copied().enumerate() {
            let previous_space = at.checked_sub(1).and_then(|at| chars.get(at)) == Some(&' ');
            let inside = at > 0 && at + 1 < chars.len();
            if c == ' ' && inside && !is_key && !previous_space && self.column > LINE_CHARS {
                self.out.push('\\');
                self.line(indent);
                // A space that begins a line would be folded away.
                self.put("\\ ");
                continue;
            }
            let escape = match c {
                '\0' => "\\0",
                '\x07' => "\\a",
                '\x08' => "\\b",
                '\t' => "\\t",
                '\n' => "\\n",
                '\x0b' => "\\v",
                '\x0c' => "\\f",
                '\r' => "\\r",
                '\x1b' => "\\e",
                '"' => "\\\"",
                '\\' => "\\\\",
                '\u{85}' => "\\N",
                '\u{a0}' if !self.allow_unicode => "\\_",
                '\u{2028}' => "\\L",
                '\u{2029}' => "\\P",
                c if is_writable(c, self.allow_unicode) => {
                    self.out.push(c);
                    self.column += 1;
                    continue;
                }
                c => {
                    let mut escape = String::new();
                    let code = u32::from(c);
                    match code {
                        0..=0xff => write!(escape, "\\x{code:02X}"),
                        0x100..=0xffff => write!(escape, "\\u{code:04X}"),
                        _ => write!(escape, "\\U{code:08X}"),
                    }
                    .expect("a string takes all that is written");
                    self.put(&escape);
                    continue;
                }
            };
            self.put(escape);
        }
        self.put("\"");
    }
}

fn yaml_float(number: f64) -> String {
    if number.is_nan() {
        return ".nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let text = float_text(number);
    // Without a point, PyYAML would read it back as a text.
    if text.contains('.') { text } else { text.replacen('e', ".0e", 1) }
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_writable(c: char, allow_unicode: bool) -> bool {
    match c {
        ' '..='~' => true,
        '\u{feff}' | '\u{fffe}' | '\u{ffff}' => false,
        // The C library that PyYAML uses escapes what is beyond 16 bits.
        '\u{a0}'..'\u{10000}' => allow_unicode,
        _ => false,
    }
}

fn is_simple_key(key: &str) -> bool {
    key.len() < SIMPLE_KEY_CHARS && !key.contains(is_break)
}

/// Which styles a text may be written in.
struct Analysis {
    multiline: bool,
    plain: bool,
    single_quoted: bool,
}

impl Analysis {
    fn of(text: &str, allow_unicode: bool) -> Analysis {
        let chars: Vec<char> = text.chars().collect();
        let blank =
            |c: Option<&char>| c.is_none_or(|c| matches!(c, '\0' | ' ' | '\t' | '\r') || is_break(*c));
        let (first, last) = (chars.first(), chars.last());
        let edge = |c: Option<&char>| c.is_some_and(|c| *c == ' ' || is_break(*c));
        let multiline = text.contains(is_break);
        let special = chars.iter().any(|c| !(is_break(*c) || is_writable(*c, allow_unicode)));
        let special = special || (!allow_unicode && chars.iter().any(|c| !c.is_ascii()));
        let pairs = || chars.iter().zip(chars.iter().skip(1));
        let break_space = pairs().any(|(a, b)| is_break(*a) && *b == ' ');
        let space_break = pairs().any(|(a, b)| *a == ' ' && is_break(*b));
        let indicators = text.starts_with("---")
            || text.starts_with("...")
            || first.is_some_and(|c| "#,[]{}&*!|>'\"%@`".contains(*c))
            || (first.is_some_and(|c| "?:-".contains(*c)) && blank(chars.get(1)))
            || chars.iter().enumerate().skip(1).any(|(at, c)| match c {
                ':' => blank(chars.get(at + 1)),
                '#' => blank(chars.get(at - 1)),
                _ => false,
            });
        let quotable = !(space_break || special || break_space);
        Analysis {
            multiline,
            plain: quotable && !multiline && !indicators && !edge(first) && !edge(last),
            single_quoted: quotable,
        }
    }
}
