//! The tokens of a YAQL expression.

use crate::python::float_of_text;
use crate::value::Value;

/// A token of YAQL.
#[derive(Debug, Clone, PartialEq)]
pub enum Token {
    /// A number or a text.
    Constant(Value),
    /// A word that is no operator: a constant text.
    Word(String),
    /// A name with its opening parenthesis.
    Call(String),
    /// An operator or a bracket.
    Sign(&'static str),
}

/// Why there are no tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenError {
    /// YAQL has the form, and this crate leaves it to YAQL.
    Unknown,
    /// YAQL refuses the character at a position, or a text that begins there and does not end.
    Wrong(usize),
}

/// Signs, longest first.
const SIGNS: &[&str] = &[
    "=>", "->", "?.", "=~", "!~", ">=", "<=", "!=", ".", "+", "-", "*", "/", ">", "<", "=", "(", ")", "[",
    "]", "{", "}", ",",
];

/// Words that are operators.
const WORDS: &[&str] = &["mod", "in", "not", "and", "or"];

/// The tokens of an expression.
///
/// # Errors
/// A part of it is no YAQL, or is left to YAQL.
pub fn tokens(source: &str) -> Result<Vec<Token>, TokenError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = source.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = source.get(at..).unwrap_or_default();
        if matches!(first, ' ' | '\t' | '\r' | '\n') {
            at += 1;
            continue;
        }
        let bytes = match first {
            '\'' | '"' => {
                let bytes = quoted_bytes(rest, first).ok_or(TokenError::Wrong(at))?;
                let inside = rest.get(1..bytes - 1).unwrap_or_default();
                tokens.push(Token::Constant(Value::String(unescaped(inside).ok_or(TokenError::Unknown)?)));
                bytes
            }
            '`' => return Err(quoted_bytes(rest, '`').map_or(TokenError::Wrong(at), |_| TokenError::Unknown)),
            '$' => return Err(TokenError::Unknown),
            c if c.is_ascii_digit() => {
                let (value, bytes) = number(rest).ok_or(TokenError::Unknown)?;
                tokens.push(Token::Constant(value));
                bytes
            }
            c if c.is_alphabetic() || c == '_' => {
                let bytes = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
                let word = rest.get(..bytes).unwrap_or_default();
                let is_call = rest.get(bytes..).is_some_and(|after| after.starts_with('('));
                if !is_call && word.starts_with("__") {
                    return Err(TokenError::Wrong(at));
                }
                tokens.push(word_token(word, is_call));
                bytes + usize::from(is_call)
            }
            _ => {
                let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign)).ok_or(TokenError::Wrong(at))?;
                tokens.push(Token::Sign(sign));
                sign.len()
            }
        };
        at += bytes;
    }
    Ok(tokens)
}

fn word_token(word: &str, is_call: bool) -> Token {
    if is_call {
        return Token::Call(word.to_owned());
    }
    match word {
        "true" => Token::Constant(Value::Bool(true)),
        "false" => Token::Constant(Value::Bool(false)),
        "null" => Token::Constant(Value::Null),
        word => match WORDS.iter().find(|operator| **operator == word) {
            Some(operator) => Token::Sign(operator),
            None => Token::Word(word.to_owned()),
        },
    }
}

/// A number, if it ends where a word would end.
fn number(rest: &str) -> Option<(Value, usize)> {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let whole = digits(rest);
    let fraction = rest.get(whole..)?.strip_prefix('.').map_or(0, digits);
    let bytes = if fraction > 0 { whole + 1 + fraction } else { whole };
    let after = rest.get(bytes..)?.chars().next();
    if after.is_some_and(|c| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let text = rest.get(..bytes)?;
    let value = match fraction {
        0 => Value::Int(text.parse().ok()?),
        _ => Value::Float(float_of_text(text)?),
    };
    Some((value, bytes))
}

/// The bytes of a quoted text with its quotes.
fn quoted_bytes(rest: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            // A backslash does not escape the end of a line.
            '\n' if is_escaped => return None,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The text of a literal; `None` for an escape that is left to YAQL.
fn unescaped(inside: &str) -> Option<String> {
    let mut text = String::with_capacity(inside.len());
    let mut chars = inside.chars();
    while let Some(c) = chars.next() {
        text.push(match c {
            '\\' => match chars.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                c @ ('\\' | '\'' | '"') => c,
                _ => return None,
            },
            c => c,
        });
    }
    Some(text)
}
