//! The tokens of an expression or a statement of a template.

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Word,
    Number,
    Sign,
}

/// A token and the bytes that it takes of its tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Token<'_> {
    /// Whether it is this sign.
    pub(super) fn is_sign(&self, text: &str) -> bool {
        self.kind == Kind::Sign && self.text == text
    }

    /// Whether it is this word.
    pub(super) fn is_word(&self, text: &str) -> bool {
        self.kind == Kind::Word && self.text == text
    }
}

/// The tokens between `{{` or `{%` and `end`, without marks for white space, and the bytes up to behind the end.
/// `None` where there is no end.
pub(super) fn tokens<'a>(tag: &'a str, end: &str) -> Option<(Vec<Token<'a>>, usize)> {
    let mut tokens: Vec<Token<'a>> = Vec::new();
    let mut depth = 0usize;
    let mut start = 2 + usize::from(tag.get(2..)?.starts_with(['-', '+']));
    loop {
        let rest = tag.get(start..)?;
        let first = rest.chars().next()?;
        // Within braces, two of them may end two objects.
        if depth == 0 && rest.starts_with(end) {
            let mark = |token: &Token<'_>| token.end == start && (token.is_sign("-") || token.is_sign("+"));
            tokens.pop_if(|token| mark(token));
            return Some((tokens, start + end.len()));
        }
        if first.is_whitespace() {
            start += first.len_utf8();
            continue;
        }
        let (kind, bytes) = match first {
            '\'' | '"' => (Kind::Text, text_bytes(rest, first)?),
            c if c.is_ascii_digit() => (Kind::Number, word_bytes(rest)),
            c if c.is_alphabetic() || c == '_' => (Kind::Word, word_bytes(rest)),
            c => {
                match c {
                    '{' | '(' | '[' => depth += 1,
                    '}' | ')' | ']' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                let pair = ["**", "//", "==", "!=", "<=", ">="].iter().any(|pair| rest.starts_with(pair));
                (Kind::Sign, if pair { 2 } else { c.len_utf8() })
            }
        };
        tokens.push(Token { kind, text: rest.get(..bytes)?, start, end: start + bytes });
        start += bytes;
    }
}

/// The position after the bracket that closes the one at a position.
pub(super) fn after_bracket(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(at).filter(|(_, token)| token.kind == Kind::Sign) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

fn word_bytes(rest: &str) -> usize {
    rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len())
}

fn text_bytes(rest: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}
