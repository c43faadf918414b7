//! Tokens of an nginx configuration file: words, `{`, `}` and `;`, each with its line.
//!
//! The rules are those of `ngx_conf_read_token`: a quote or a `#` begins a string or a comment only at the start of a
//! word, a `}` ends a block only there, and `${` opens no block. A backslash keeps the next character in the word; the
//! escapes `\"`, `\'`, `\\`, `\t`, `\r` and `\n` are replaced, in quotes and outside of them.

use std::iter::Peekable;
use std::str::Chars;

/// What a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A word, without its quotes and with its escapes replaced.
    Word(String),
    /// `{`.
    Open,
    /// `}`.
    Close,
    /// `;`.
    End,
}

/// A token, and the line on which it begins, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) line: usize,
}

/// Why a text is no nginx configuration, and on which line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub(super) line: usize,
    pub(super) message: String,
}

/// Reads tokens one at a time.
pub(super) struct Tokens<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Tokens<'a> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Tokens { rest: text.chars().peekable(), line: 1 }
    }

    /// The line of the next character.
    pub(super) const fn line(&self) -> usize {
        self.line
    }

    /// Returns the next token, or `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<Token>, SyntaxError> {
        loop {
            let line = self.line;
            let Some(&first) = self.rest.peek() else { return Ok(None) };
            let kind = match first {
                ' ' | '\t' | '\r' | '\n' => {
                    self.advance();
                    continue;
                }
                '#' => {
                    self.skip_line();
                    continue;
                }
                '{' => self.single(TokenKind::Open),
                '}' => self.single(TokenKind::Close),
                ';' => self.single(TokenKind::End),
                '"' | '\'' => TokenKind::Word(self.quoted(first)?),
                _ => TokenKind::Word(self.word()?),
            };
            return Ok(Some(Token { kind, line }));
        }
    }

    /// Skips the Lua code of a `*_by_lua_block` after its `{`, up to the `}` that closes it. Braces in Lua's strings and
    /// comments do not count.
    pub(super) fn skip_lua(&mut self) -> Result<(), SyntaxError> {
        let begin = self.line;
        let mut depth = 1_usize;
        while let Some(char) = self.advance() {
            match char {
                '{' => depth += 1,
                '}' => depth -= 1,
                '"' | '\'' => self.skip_lua_string(char),
                '[' => {
                    self.skip_long_bracket();
                }
                '-' if self.rest.peek() == Some(&'-') => {
                    self.advance();
                    let is_long = self.rest.peek() == Some(&'[') && {
                        self.advance();
                        self.skip_long_bracket()
                    };
                    if !is_long {
                        self.skip_line();
                    }
                }
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
        Err(SyntaxError { line: begin, message: String::from("the block of Lua code has no closing `}`") })
    }

    fn skip_lua_string(&mut self, quote: char) {
        while let Some(char) = self.advance() {
            match char {
                '\\' => drop(self.advance()),
                '\n' => return,
                _ if char == quote => return,
                _ => {}
            }
        }
    }

    /// Skips `[[ … ]]` or `[=[ … ]=]` whose first `[` is read already; returns whether there was one.
    fn skip_long_bracket(&mut self) -> bool {
        let mut level = 0_usize;
        while self.rest.peek() == Some(&'=') {
            self.advance();
            level += 1;
        }
        if self.rest.peek() != Some(&'[') {
            return false;
        }
        // The number of `=` since the last `]`, if there was one.
        let mut closing: Option<usize> = None;
        while let Some(char) = self.advance() {
            closing = match (char, closing) {
                (']', Some(found)) if found == level => return true,
                (']', _) => Some(0),
                ('=', Some(found)) => Some(found + 1),
                _ => None,
            };
        }
        true
    }

    fn advance(&mut self) -> Option<char> {
        let char = self.rest.next()?;
        self.line += usize::from(char == '\n');
        Some(char)
    }

    fn single(&mut self, kind: TokenKind) -> TokenKind {
        self.advance();
        kind
    }

    /// Leaves the end of the line unread: a line ends a comment, and nothing else.
    fn skip_line(&mut self) {
        while self.rest.peek().is_some_and(|char| *char != '\n') {
            self.advance();
        }
    }

    fn quoted(&mut self, quote: char) -> Result<String, SyntaxError> {
        let begin = self.line;
        self.advance();
        let mut word = String::new();
        loop {
            match self.advance() {
                None => {
                    return Err(SyntaxError {
                        line: begin,
                        message: format!(
                            "the string has no closing {quote}; a {quote} in it is written \\{quote}"
                        ),
                    });
                }
                Some('\\') => self.escape(&mut word),
                Some(char) if char == quote => break,
                Some(char) => word.push(char),
            }
        }
        match self.rest.peek() {
            None | Some(' ' | '\t' | '\r' | '\n' | ';' | '{') => Ok(word),
            // A condition of `if` may end right after a string.
            Some(')') => {
                self.advance();
                word.push(')');
                Ok(word)
            }
            Some(char) => Err(SyntaxError {
                line: self.line,
                message: format!(
                    "`{char}` follows the closing {quote} of a string; write a space or `;` between them, or \\{quote} \
                     if the string goes on"
                ),
            }),
        }
    }

    fn word(&mut self) -> Result<String, SyntaxError> {
        let begin = self.line;
        let mut word = String::new();
        let mut is_after_dollar = false;
        loop {
            match self.rest.peek() {
                None => break,
                Some('{') if is_after_dollar => {}
                Some(' ' | '\t' | '\r' | '\n' | ';' | '{') => break,
                Some(_) => {}
            }
            let Some(char) = self.advance() else { break };
            is_after_dollar = char == '$';
            match char {
                '\\' if self.rest.peek().is_none() => {
                    let message = String::from("the file ends after a backslash");
                    return Err(SyntaxError { line: begin, message });
                }
                '\\' => self.escape(&mut word),
                _ => word.push(char),
            }
        }
        Ok(word)
    }

    /// Appends the character that a backslash and the next one mean; an unknown escape keeps its backslash.
    fn escape(&mut self, word: &mut String) {
        match self.advance() {
            Some(char @ ('"' | '\'' | '\\')) => word.push(char),
            Some('t') => word.push('\t'),
            Some('r') => word.push('\r'),
            Some('n') => word.push('\n'),
            Some(other) => word.extend(['\\', other]),
            None => word.push('\\'),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SyntaxError, TokenKind, Tokens};

    fn all(text: &str) -> Result<Vec<(String, usize)>, SyntaxError> {
        let mut tokens = Tokens::new(text);
        let mut found = Vec::new();
        while let Some(token) = tokens.next()? {
            let text = match token.kind {
                TokenKind::Word(word) => format!("<{word}>"),
                TokenKind::Open => String::from("{"),
                TokenKind::Close => String::from("}"),
                TokenKind::End => String::from(";"),
            };
            found.push((text, token.line));
        }
        Ok(found)
    }

    fn flat(text: &str) -> String {
        all(text).unwrap().into_iter().map(|(text, _)| text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_end_where_nginx_ends_them() {
        for (text, expected) in [
            ("root /srv;", "<root> </srv> ;"),
            ("location /a{b;}", "<location> </a> { <b> ; }"),
            ("set $a \"x y\" ;", "<set> <$a> <x y> ;"),
            ("set $a 'it\\'s \\$x';", "<set> <$a> <it's \\$x> ;"),
            ("a \"\\t\\n\\\\d\\d\";", "<a> <\t\n\\d\\d> ;"),
            ("location ~ \\.rb$ {", "<location> <~> <\\.rb$> {"),
            ("location ~ ^/[0-9]\\{3\\} {", "<location> <~> <^/[0-9]\\{3\\}> {"),
            ("a b\\ c;", "<a> <b\\ c> ;"),
            ("pass http://${host}x/;", "<pass> <http://${host}x/> ;"),
            ("a b#c;#d;\n#e\nf;", "<a> <b#c> ; <f> ;"),
            ("a b}c;", "<a> <b}c> ;"),
            ("a it's;", "<a> <it's> ;"),
            ("if ($a = \"b\") {", "<if> <($a> <=> <b)> {"),
            ("\u{feff}a;", "<a> ;"),
            ("a '';", "<a> <> ;"),
        ] {
            assert_eq!(flat(text), expected, "{text}");
        }
    }

    #[test]
    fn lines_are_those_of_the_first_character() {
        let found = all("a 'x\ny'\n  b;\n# c\nd;").unwrap();
        let lines: Vec<usize> = found.into_iter().map(|(_, line)| line).collect();
        assert_eq!(lines, [1, 1, 3, 3, 5, 5]);
    }

    #[test]
    fn errors_name_their_line() {
        for (text, line, part) in [
            ("a;\nb 'c\nd", 2, "no closing '"),
            ("a;\nb \"c\"d;", 2, "`d` follows the closing \""),
            ("a\\", 1, "after a backslash"),
        ] {
            let error = all(text).unwrap_err();
            assert_eq!(error.line, line, "{text}");
            assert!(error.message.contains(part), "{}", error.message);
        }
    }

    #[test]
    fn lua_code_ends_at_its_own_brace() {
        for code in [
            " local t = {a = '}', b = \"\\\"}\"} ",
            " -- }\n x() ",
            " --[[ } ]] y = [==[ } ]] ]=] ]==] ",
            " a[1] = b[c] ",
        ] {
            let text = format!("{code}}} next;");
            let mut tokens = Tokens::new(&text);
            tokens.skip_lua().unwrap();
            assert_eq!(tokens.next().unwrap().unwrap().kind, TokenKind::Word(String::from("next")), "{code}");
        }
        assert_eq!(Tokens::new("\n {").skip_lua().unwrap_err().line, 1);
    }
}
