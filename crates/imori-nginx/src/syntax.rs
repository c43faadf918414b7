//! The tree of directives of an nginx configuration file.

use super::limits::NESTING_MAX;
use super::tokens::{SyntaxError, Token, TokenKind, Tokens};

/// A directive: its name, its arguments, and its block if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Directive {
    pub(super) name: String,
    pub(super) words: Vec<String>,
    /// The line of its name, counted from 1.
    pub(super) line: usize,
    pub(super) body: Body,
}

/// How a directive ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Body {
    /// With `;`.
    None,
    /// With a block of directives.
    Block(Vec<Directive>),
    /// With a block of Lua code, which is skipped.
    Lua,
}

impl Directive {
    /// The directives of its block; none if it has no block.
    pub(super) fn block(&self) -> &[Directive] {
        match &self.body {
            Body::Block(directives) => directives,
            Body::None | Body::Lua => &[],
        }
    }

    /// Whether it ends with a block, of whatever language.
    pub(super) const fn has_block(&self) -> bool {
        !matches!(self.body, Body::None)
    }

    /// The first argument, or an empty text.
    pub(super) fn first(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// The directive as one line, for comments and messages: the name and the arguments up to the first line break.
    pub(super) fn summary(&self) -> String {
        let mut line = self.name.clone();
        for word in &self.words {
            line.push(' ');
            line.push_str(if word.is_empty() { "\"\"" } else { word });
        }
        one_line(&line)
    }
}

/// The longest part of a directive that a comment or a message repeats, in characters.
const SUMMARY_CHARS: usize = 80;

/// The beginning of `text` that fits on a line, without control characters.
pub(super) fn one_line(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    let mut short: String = first.chars().filter(|char| !char.is_control()).take(SUMMARY_CHARS).collect();
    if short.len() < text.trim_end().len() {
        short.push('…');
    }
    short
}

/// The longest message or comment, in characters.
const SENTENCE_CHARS: usize = 400;

/// A sentence with words of the file in it, on one line and not too long.
pub(super) fn sentence(text: &str) -> String {
    let mut chars = text.chars().map(|char| if char.is_control() { ' ' } else { char });
    let mut short: String = chars.by_ref().take(SENTENCE_CHARS).collect();
    if chars.next().is_some() {
        short.push('…');
    }
    short
}

/// Reads a whole file.
pub(super) fn parse(text: &str) -> Result<Vec<Directive>, SyntaxError> {
    let mut tokens = Tokens::new(text);
    block(&mut tokens, 0)
}

/// Reads directives up to the `}` of this block, or at depth 0 to the end of the file.
fn block(tokens: &mut Tokens<'_>, depth: usize) -> Result<Vec<Directive>, SyntaxError> {
    let begin = tokens.line();
    let mut directives = Vec::new();
    loop {
        let Some(Token { kind, line }) = tokens.next()? else {
            let message = format!(
                "the block that opens here has no closing `}}`; the file ends on line {}",
                tokens.line()
            );
            return if depth == 0 { Ok(directives) } else { Err(SyntaxError { line: begin, message }) };
        };
        match kind {
            TokenKind::Word(name) => directives.push(directive(tokens, name, line, depth)?),
            TokenKind::Close if depth > 0 => return Ok(directives),
            TokenKind::Close => return Err(unexpected("}", line, "no block is open")),
            TokenKind::Open => return Err(unexpected("{", line, "a block needs a name before it")),
            TokenKind::End => return Err(unexpected(";", line, "no directive stands before it")),
        }
    }
}

/// Reads a directive after its name.
fn directive(
    tokens: &mut Tokens<'_>,
    name: String,
    line: usize,
    depth: usize,
) -> Result<Directive, SyntaxError> {
    let mut words = Vec::new();
    let body = loop {
        let Some(token) = tokens.next()? else {
            return Err(SyntaxError { line, message: format!("`{}` is not closed by `;`", one_line(&name)) });
        };
        match token.kind {
            TokenKind::Word(word) => words.push(word),
            TokenKind::End => break Body::None,
            TokenKind::Open if name.ends_with("_by_lua_block") => {
                tokens.skip_lua()?;
                break Body::Lua;
            }
            TokenKind::Open if depth == NESTING_MAX => {
                let message = format!("blocks are nested deeper than {NESTING_MAX} levels");
                return Err(SyntaxError { line: token.line, message });
            }
            TokenKind::Open => break Body::Block(block(tokens, depth + 1)?),
            TokenKind::Close => {
                let reason = format!("`{}` on line {line} is not closed by `;`", one_line(&name));
                return Err(unexpected("}", token.line, &reason));
            }
        }
    };
    Ok(Directive { name, words, line, body })
}

fn unexpected(token: &str, line: usize, reason: &str) -> SyntaxError {
    SyntaxError { line, message: format!("unexpected `{token}`: {reason}") }
}

#[cfg(test)]
mod tests {
    use super::{Body, NESTING_MAX, one_line, parse};

    #[test]
    fn directives_form_a_tree() {
        let tree =
            parse("a 1;\nhttp {\n server {\n  listen 80;\n }\n}\ninit_by_lua_block { x = {} }\nb;").unwrap();
        let names: Vec<(&str, usize)> = tree.iter().map(|found| (found.name.as_str(), found.line)).collect();
        assert_eq!(names, [("a", 1), ("http", 2), ("init_by_lua_block", 7), ("b", 8)]);
        let server = &tree[1].block()[0];
        assert_eq!((server.line, server.block()[0].summary().as_str()), (3, "listen 80"));
        assert_eq!(tree[2].body, Body::Lua);
    }

    #[test]
    fn errors_name_their_line() {
        for (text, line, part) in [
            ("a;\n}", 2, "no block is open"),
            ("a;\n;", 2, "no directive"),
            ("{", 1, "needs a name"),
            ("http {\na;\n", 1, "no closing `}`"),
            ("a\nb", 1, "`a` is not closed"),
            ("h {\na b\n}", 3, "`a` on line 2"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.line, line, "{text}: {}", error.message);
            assert!(error.message.contains(part), "{}", error.message);
        }
    }

    #[test]
    fn nesting_has_a_limit() {
        let nested = |depth: usize| format!("{}{}", "a {".repeat(depth), "}".repeat(depth));
        assert!(parse(&nested(NESTING_MAX)).is_ok());
        assert!(parse(&nested(NESTING_MAX + 1)).unwrap_err().message.contains("nested deeper"));
    }

    #[test]
    fn summaries_are_one_short_line() {
        assert_eq!(one_line("a\nb"), "a…");
        assert_eq!(one_line(&"x".repeat(200)).chars().count(), 81);
        assert_eq!(one_line("a\u{7}b"), "ab…");
    }
}
