//! Literals of Python, as `ast.literal_eval` reads them: what a template writes of a list or an object.

use std::iter::Peekable;
use std::str::Chars;

use super::json_values::text_of;
use super::numbers::{float_of_text, int_of_text};
use crate::limits::{LITERAL_BYTES_MAX, VALUE_DEPTH_MAX};
use crate::value::{Map, Value};

/// Reads a literal. Tuples and sets become lists, and the keys of a dict texts.
///
/// # Errors
/// The text is no literal, is nested too deep, or has bytes or complex numbers.
pub(crate) fn python_literal(text: &str) -> Result<Value, String> {
    if text.len() > LITERAL_BYTES_MAX {
        return Err(format!("a literal has at most {LITERAL_BYTES_MAX} bytes"));
    }
    let mut reader = Reader { chars: text.trim_start_matches([' ', '\t']).chars().peekable(), depth: 0 };
    let value = reader.tuple_or_value()?;
    reader.skip_blanks();
    match reader.chars.next() {
        None => Ok(value),
        Some(c) => Err(format!("malformed node or string: unexpected `{c}`")),
    }
}

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    depth: usize,
}

impl Reader<'_> {
    fn skip_blanks(&mut self) {
        while self.chars.next_if(|c| matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c')).is_some() {}
    }

    fn take(&mut self, wanted: char) -> bool {
        self.skip_blanks();
        self.chars.next_if_eq(&wanted).is_some()
    }

    fn tuple_or_value(&mut self) -> Result<Value, String> {
        let first = self.value()?;
        if !self.take(',') {
            return Ok(first);
        }
        let mut items = vec![first];
        self.skip_blanks();
        while self.chars.peek().is_some() {
            items.push(self.value()?);
            if !self.take(',') {
                break;
            }
            self.skip_blanks();
        }
        Ok(Value::List(items))
    }

    fn value(&mut self) -> Result<Value, String> {
        self.skip_blanks();
        self.depth += 1;
        if self.depth > VALUE_DEPTH_MAX {
            return Err("the literal is nested too deep".to_owned());
        }
        let value = match self.chars.peek().copied() {
            None => Err("malformed node or string: it is empty".to_owned()),
            Some('[') => self.items('[', ']').map(|(items, _)| Value::List(items)),
            Some('(') => self.items('(', ')').map(|(mut items, commas)| match (commas, items.len()) {
                // Parentheses around one value make no tuple.
                (0, 1) => items.pop().unwrap_or_default(),
                _ => Value::List(items),
            }),
            Some('{') => self.braces(),
            Some('\'' | '"') => self.strings(),
            Some(c) if c.is_ascii_digit() || matches!(c, '.' | '-' | '+') => self.number(),
            Some(c) if c.is_alphabetic() || c == '_' => self.word(),
            Some(c) => Err(format!("malformed node or string: unexpected `{c}`")),
        };
        self.depth -= 1;
        value
    }

    /// The values between brackets and the number of commas.
    fn items(&mut self, open: char, close: char) -> Result<(Vec<Value>, usize), String> {
        self.take(open);
        let mut items = Vec::new();
        let mut commas = 0;
        while !self.take(close) {
            items.push(self.value()?);
            if self.take(',') {
                commas += 1;
            } else if self.take(close) {
                break;
            } else {
                return Err(format!("malformed node or string: `{close}` is missing"));
            }
        }
        Ok((items, commas))
    }

    fn braces(&mut self) -> Result<Value, String> {
        self.take('{');
        let mut map = Map::new();
        let mut set = Vec::new();
        while !self.take('}') {
            let key = self.value()?;
            if self.take(':') && set.is_empty() {
                if matches!(key, Value::List(_) | Value::Map(_)) {
                    return Err("unhashable type in a dict".to_owned());
                }
                let value = self.value()?;
                map.insert(text_of(&key), value);
            } else if map.is_empty() {
                set.push(key);
            } else {
                return Err("malformed node or string: `:` is missing".to_owned());
            }
            if !self.take(',') {
                if self.take('}') {
                    break;
                }
                return Err("malformed node or string: `}` is missing".to_owned());
            }
        }
        Ok(if set.is_empty() { Value::Map(map) } else { Value::List(set) })
    }

    fn word(&mut self) -> Result<Value, String> {
        let mut word = String::new();
        while let Some(c) = self.chars.next_if(|c| c.is_alphanumeric() || *c == '_') {
            word.push(c);
        }
        match word.as_str() {
            "None" => Ok(Value::Null),
            "True" => Ok(Value::Bool(true)),
            "False" => Ok(Value::Bool(false)),
            "r" | "R" if matches!(self.chars.peek(), Some('\'' | '"')) => {
                self.string(true).map(Value::String)
            }
            "u" | "U" if matches!(self.chars.peek(), Some('\'' | '"')) => self.strings(),
            _ => Err(format!("malformed node or string: unexpected `{word}`")),
        }
    }

    fn number(&mut self) -> Result<Value, String> {
        let mut negative = false;
        while let Some(sign) = self.chars.next_if(|c| matches!(c, '-' | '+')) {
            negative ^= sign == '-';
            self.skip_blanks();
        }
        let mut digits = String::new();
        while let Some(c) = self.chars.next_if(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_')) {
            digits.push(c);
            let hexadecimal = digits.starts_with("0x") || digits.starts_with("0X");
            if matches!(c, 'e' | 'E') && !hexadecimal {
                digits.extend(self.chars.next_if(|c| matches!(c, '-' | '+')));
            }
        }
        let sign = if negative { -1.0 } else { 1.0 };
        if let Some(number) = int_of_text(&digits, 0) {
            let number = if negative { -number } else { number };
            return Ok(i64::try_from(number).map_or(Value::Float(number as f64), Value::Int));
        }
        let decimal = digits.contains('.') || digits.contains(['e', 'E']);
        match float_of_text(&digits).filter(|_| decimal) {
            Some(number) => Ok(Value::Float(sign * number)),
            None => Err(format!("malformed node or string: `{digits}` is no number")),
        }
    }

    /// A text, and those that follow it at once.
    fn strings(&mut self) -> Result<Value, String> {
        let mut text = self.string(false)?;
        loop {
            self.skip_blanks();
            match self.chars.peek() {
                Some('\'' | '"') => text += &self.string(false)?,
                _ => return Ok(Value::String(text)),
            }
        }
    }

    fn string(&mut self, raw: bool) -> Result<String, String> {
        let unended = || "malformed node or string: a text has no end".to_owned();
        let quote = self.chars.next().ok_or_else(unended)?;
        let mut triple = false;
        if self.chars.next_if_eq(&quote).is_some() {
            if self.chars.next_if_eq(&quote).is_none() {
                return Ok(String::new());
            }
            triple = true;
        }
        let mut text = String::new();
        loop {
            match self.chars.next().ok_or_else(unended)? {
                c if c == quote && !triple => return Ok(text),
                c if c == quote => {
                    let mut quotes = 1;
                    while quotes < 3 && self.chars.next_if_eq(&quote).is_some() {
                        quotes += 1;
                    }
                    if quotes == 3 {
                        return Ok(text);
                    }
                    text.extend(std::iter::repeat_n(quote, quotes));
                }
                '\n' if !triple => return Err(unended()),
                '\\' if raw => {
                    text.push('\\');
                    text.push(self.chars.next().ok_or_else(unended)?);
                }
                '\\' => self.escape(&mut text)?,
                c => text.push(c),
            }
        }
    }

    fn escape(&mut self, text: &mut String) -> Result<(), String> {
        let c = self.chars.next().ok_or("malformed node or string: a text has no end")?;
        let code = match c {
            '\n' => return Ok(()),
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'a' => '\x07',
            'b' => '\x08',
            'f' => '\x0c',
            'v' => '\x0b',
            '\\' | '\'' | '"' => c,
            '0'..='7' => {
                let mut code = c.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    if let Some(digit) = self.chars.next_if(|c| c.is_digit(8)) {
                        code = code * 8 + digit.to_digit(8).unwrap_or(0);
                    }
                }
                char::from_u32(code).unwrap_or('\u{fffd}')
            }
            'x' | 'u' | 'U' => {
                let digits = match c {
                    'x' => 2,
                    'u' => 4,
                    _ => 8,
                };
                let hex: String =
                    (0..digits).filter_map(|_| self.chars.next_if(char::is_ascii_hexdigit)).collect();
                let code = u32::from_str_radix(&hex, 16).ok().filter(|_| hex.len() == digits);
                code.and_then(char::from_u32)
                    .ok_or_else(|| format!("the escape `\\{c}{hex}` of a text is wrong"))?
            }
            other => {
                text.push('\\');
                other
            }
        };
        text.push(code);
        Ok(())
    }
}
