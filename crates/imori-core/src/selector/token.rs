//! Splits a selector into words: names, literals and symbols.

use std::borrow::Cow;

use super::error::{SelectorError, quoted};

/// A word of a selector.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'t> {
    /// A name, which may be in double quotes.
    Name(Cow<'t, str>),
    /// A text in single quotes.
    Text(Cow<'t, str>),
    /// A number without a sign.
    Literal(Literal),
    Keyword(Keyword),
    Symbol(Symbol),
}

/// A number as written, without a sign.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Literal {
    Exact(u64),
    Approximate(f64),
}

/// A reserved word, in upper or lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyword {
    And,
    Or,
    Not,
    Between,
    In,
    Like,
    Escape,
    Is,
    Null,
    True,
    False,
}

const KEYWORDS: [(&str, Keyword); 11] = [
    ("AND", Keyword::And),
    ("OR", Keyword::Or),
    ("NOT", Keyword::Not),
    ("BETWEEN", Keyword::Between),
    ("IN", Keyword::In),
    ("LIKE", Keyword::Like),
    ("ESCAPE", Keyword::Escape),
    ("IS", Keyword::Is),
    ("NULL", Keyword::Null),
    ("TRUE", Keyword::True),
    ("FALSE", Keyword::False),
];

/// A punctuation symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symbol {
    Open,
    Close,
    Comma,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Plus,
    Minus,
    Times,
    Divide,
}

/// An iterator over the words of a text.
#[derive(Debug, Clone)]
pub(super) struct Tokens<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Tokens<'t> {
    pub(super) fn new(text: &'t str) -> Tokens<'t> {
        Tokens { text, at: 0 }
    }

    /// The next word and its byte position; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(usize, Token<'t>)>, SelectorError> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        let (start, rest) = (self.at, self.rest());
        let mut characters = rest.chars();
        let Some(first) = characters.next() else { return Ok(None) };
        let second = characters.next();
        let token = match first {
            '\'' => Token::Text(self.quotation('\'')?),
            '"' => Token::Name(self.quotation('"')?),
            '0'..='9' => Token::Literal(self.number()?),
            '.' if second.is_some_and(|next| next.is_ascii_digit()) => Token::Literal(self.number()?),
            _ if is_name_start(first) => self.word(),
            _ => Token::Symbol(self.symbol(first, second)?),
        };
        Ok(Some((start, token)))
    }

    /// The word last read, which begins at byte `start`, quoted for an error message.
    pub(super) fn shown(&self, start: usize) -> String {
        quoted(self.text.get(start..self.at).unwrap_or_default())
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn error(&self, offset: usize, problem: impl Into<String>) -> SelectorError {
        SelectorError::at(self.text, offset, problem)
    }

    fn word(&mut self) -> Token<'t> {
        let rest = self.rest();
        let end = rest.find(|character| !is_name_part(character)).unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        self.at += end;
        let keyword = KEYWORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
        keyword.map_or(Token::Name(Cow::Borrowed(word)), |(_, keyword)| Token::Keyword(*keyword))
    }

    /// Reads up to the closing quotation mark; a doubled mark stands for one.
    fn quotation(&mut self, mark: char) -> Result<Cow<'t, str>, SelectorError> {
        let start = self.at;
        self.at += 1;
        let mut whole: Option<String> = None;
        loop {
            let rest = self.rest();
            let Some(end) = rest.find(mark) else {
                let problem = format!("the quotation has no end; close it with {mark}");
                return Err(self.error(start, problem));
            };
            let part = rest.get(..end).unwrap_or_default();
            self.at += end + 1;
            if !self.rest().starts_with(mark) {
                return Ok(match whole {
                    Some(whole) => Cow::Owned(whole + part),
                    None => Cow::Borrowed(part),
                });
            }
            self.at += 1;
            let whole = whole.get_or_insert_default();
            whole.push_str(part);
            whole.push(mark);
        }
    }

    /// Reads all characters that could belong to a number, so that `5abc` is one bad number and not
    /// two words.
    fn number(&mut self) -> Result<Literal, SelectorError> {
        let (start, rest) = (self.at, self.rest());
        let has_exponent = is_decimal(rest);
        let (mut end, mut previous) = (0, ' ');
        for character in rest.chars() {
            let is_sign = matches!(character, '+' | '-') && matches!(previous, 'e' | 'E') && has_exponent;
            if !is_sign && !is_name_part(character) {
                break;
            }
            end += character.len_utf8();
            previous = character;
        }
        let written = rest.get(..end).unwrap_or_default();
        self.at += end;
        read_literal(written).map_err(|problem| self.error(start, format!("{} {problem}", quoted(written))))
    }

    fn symbol(&mut self, first: char, second: Option<char>) -> Result<Symbol, SelectorError> {
        let (symbol, len) = match (first, second) {
            ('<', Some('>')) => (Symbol::NotEqual, 2),
            ('<', Some('=')) => (Symbol::LessOrEqual, 2),
            ('>', Some('=')) => (Symbol::GreaterOrEqual, 2),
            ('(', _) => (Symbol::Open, 1),
            (')', _) => (Symbol::Close, 1),
            (',', _) => (Symbol::Comma, 1),
            ('=', _) => (Symbol::Equal, 1),
            ('<', _) => (Symbol::Less, 1),
            ('>', _) => (Symbol::Greater, 1),
            ('+', _) => (Symbol::Plus, 1),
            ('-', _) => (Symbol::Minus, 1),
            ('*', _) => (Symbol::Times, 1),
            ('/', _) => (Symbol::Divide, 1),
            ('!', Some('=')) => return Err(self.error(self.at, "unequal is written `<>`, not `!=`")),
            _ => {
                let shown = quoted(first.encode_utf8(&mut [0; 4]));
                return Err(
                    self.error(self.at, format!("{shown} has no meaning here; quote it if it is text"))
                );
            }
        };
        self.at += len;
        Ok(symbol)
    }
}

/// JMS, Message Selector Syntax: a name begins with a Java letter, also `_` and `$`.
fn is_name_start(character: char) -> bool {
    character.is_alphabetic() || matches!(character, '_' | '$')
}

/// A dot is part of a name, as in `amqp.subject`.
fn is_name_part(character: char) -> bool {
    is_name_start(character) || character.is_alphanumeric() || character == '.'
}

/// Whether a number is decimal, so that an `e` in it begins an exponent.
fn is_decimal(written: &str) -> bool {
    !written.get(..2).is_some_and(|prefix| prefix.eq_ignore_ascii_case("0x"))
}

/// Parses a number as Java does: decimal, hexadecimal, octal or binary, with a suffix `L`, `F` or
/// `D`.
fn read_literal(written: &str) -> Result<Literal, &'static str> {
    let plain = without_underscores(written).ok_or("has `_` where no digits are on both sides")?;
    let lower = plain.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, lower.get(2..).unwrap_or_default()),
        [b'0', b'b', ..] => (2, lower.get(2..).unwrap_or_default()),
        _ => (10, lower.as_str()),
    };
    let is_float = radix == 10 && digits.contains(['.', 'e', 'f', 'd']);
    if is_float {
        return read_approximate(digits).map(Literal::Approximate);
    }
    let digits = digits.strip_suffix('l').unwrap_or(digits);
    let (radix, digits) = match digits.strip_prefix('0') {
        Some(octal) if radix == 10 && !octal.is_empty() => (8, octal),
        _ => (radix, digits),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(if radix == 8 {
            "is no number; one that begins with 0 is octal, with digits up to 7"
        } else {
            "is no number"
        });
    }
    u64::from_str_radix(digits, radix).map(Literal::Exact).map_err(|_| "is over 64 bits")
}

fn read_approximate(lower: &str) -> Result<f64, &'static str> {
    let (digits, is_single) = match lower.strip_suffix('f') {
        Some(digits) => (digits, true),
        None => (lower.strip_suffix('d').unwrap_or(lower), false),
    };
    let is_number =
        |character: char| character.is_ascii_digit() || matches!(character, '.' | 'e' | '+' | '-');
    if !digits.chars().all(is_number) {
        return Err("is no number");
    }
    let value = if is_single { digits.parse::<f32>().map(f64::from) } else { digits.parse() };
    match value {
        Ok(value) if value.is_finite() => Ok(value),
        Ok(_) => Err("is too large"),
        Err(_) => Err("is no number"),
    }
}

/// Removes the underscores between digits; `None` if one stands elsewhere.
fn without_underscores(written: &str) -> Option<Cow<'_, str>> {
    if !written.contains('_') {
        return Some(Cow::Borrowed(written));
    }
    let is_digit = |part: Option<char>| part.is_some_and(|character| character.is_ascii_hexdigit());
    let parts: Vec<&str> = written.split('_').filter(|part| !part.is_empty()).collect();
    let is_between = !written.starts_with('_')
        && !written.ends_with('_')
        && parts.windows(2).all(|pair| match pair {
            [left, right] => is_digit(left.chars().next_back()) && is_digit(right.chars().next()),
            _ => true,
        });
    is_between.then(|| Cow::Owned(parts.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<Vec<Token<'_>>, String> {
        let (mut tokens, mut words) = (Tokens::new(text), Vec::new());
        loop {
            match tokens.next() {
                Ok(Some((_, word))) => words.push(word),
                Ok(None) => return Ok(words),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    #[test]
    fn numbers_are_those_of_java() {
        use Literal::{Approximate, Exact};
        for (text, expected) in [
            ("57", Exact(57)),
            ("57L", Exact(57)),
            ("0", Exact(0)),
            ("0l", Exact(0)),
            ("017", Exact(15)),
            ("0x1F", Exact(31)),
            ("0XfL", Exact(15)),
            ("0xFe", Exact(254)),
            ("0b101", Exact(5)),
            ("1_000", Exact(1000)),
            ("9223372036854775808", Exact(1 << 63)),
            ("18446744073709551615", Exact(u64::MAX)),
            ("7E3", Approximate(7000.0)),
            ("57.9e2", Approximate(5790.0)),
            ("7.", Approximate(7.0)),
            (".5", Approximate(0.5)),
            ("6e-1", Approximate(0.6)),
            ("6E+1d", Approximate(60.0)),
            ("0.5", Approximate(0.5)),
            ("5f", Approximate(5.0)),
            ("0.1F", Approximate(f64::from(0.1_f32))),
            ("1e-999", Approximate(0.0)),
        ] {
            assert_eq!(words(text), Ok(vec![Token::Literal(expected)]), "{text}");
        }
        for (text, expected) in [
            ("08", "`08` is no number; one that begins with 0 is octal, with digits up to 7"),
            ("5abc", "`5abc` is no number"),
            ("0x", "`0x` is no number"),
            ("0xg", "`0xg` is no number"),
            ("0b2", "`0b2` is no number"),
            ("1.2.3", "`1.2.3` is no number"),
            ("1e", "`1e` is no number"),
            ("1e999", "`1e999` is too large"),
            ("1_", "`1_` has `_` where no digits are on both sides"),
            ("18446744073709551616", "`18446744073709551616` is over 64 bits"),
        ] {
            assert_eq!(words(text), Err(format!("selector, character 1: {expected}")), "{text}");
        }
    }

    #[test]
    fn an_operator_behind_a_number_is_a_word_of_its_own() {
        let (number, symbol) = (|number| Token::Literal(Literal::Exact(number)), Token::Symbol);
        assert_eq!(words("1-2").unwrap(), [number(1), symbol(Symbol::Minus), number(2)]);
        assert_eq!(words("0xe-2").unwrap(), [number(14), symbol(Symbol::Minus), number(2)]);
        assert_eq!(words("1<>-2").unwrap().len(), 4);
    }

    #[test]
    fn names_and_texts_are_read_to_their_ends() {
        let name = |name: &'static str| Token::Name(Cow::Borrowed(name));
        let text = |text: &'static str| Token::Text(Cow::Borrowed(text));
        for (written, expected) in [
            ("$a_1", vec![name("$a_1")]),
            ("_", vec![name("_")]),
            ("größe.x", vec![name("größe.x")]),
            ("android", vec![name("android")]),
            ("aNd", vec![Token::Keyword(Keyword::And)]),
            ("\"and\"", vec![name("and")]),
            ("\"content-type\"", vec![name("content-type")]),
            ("\"a\"\"b\"", vec![name("a\"b")]),
            ("'it''s'", vec![text("it's")]),
            ("''", vec![text("")]),
            ("''''", vec![text("'")]),
            ("'a' 'b'", vec![text("a"), text("b")]),
            (" \t\r\n", vec![]),
        ] {
            assert_eq!(words(written), Ok(expected), "{written}");
        }
        for (written, expected) in [
            ("x = 'a", "selector, character 5: the quotation has no end; close it with '"),
            ("é \"a", "selector, character 3: the quotation has no end; close it with \""),
            ("a != 1", "selector, character 3: unequal is written `<>`, not `!=`"),
            ("a & b", "selector, character 3: `&` has no meaning here; quote it if it is text"),
            ("\0", "selector, character 1: `\\u{0}` has no meaning here; quote it if it is text"),
        ] {
            assert_eq!(words(written), Err(expected.to_owned()), "{written}");
        }
    }
}
