//! Regular expressions for names, matched in linear time.
//!
//! Most expressions that operators write match everything, nothing, one name or a prefix; these are
//! compared without a regex engine. Names are bytes, and `.` is any byte except a line feed.

use std::fmt;

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Dot, Hir, HirKind, Look};

use crate::limits::{EXPRESSION_BYTES_MAX, EXPRESSION_COMPILED_BYTES_MAX, EXPRESSION_NESTING_MAX};
use crate::name::Printable;

/// A compiled expression.
#[derive(Debug, Clone)]
pub(crate) enum Expression {
    /// Matches every name.
    All,
    /// Matches exactly this name.
    Exact(Box<[u8]>),
    /// Matches names with this prefix.
    Prefix(Box<[u8]>),
    /// Matches names in which the expression is found.
    Found(Box<Regex>),
}

/// The reason why a text is not a valid expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionError {
    text: String,
    /// The number of characters before the fault, if it has a position.
    at: Option<usize>,
    problem: String,
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "regular expression `{}`", Printable(self.text.as_bytes()))?;
        if let Some(at) = self.at {
            write!(f, ", character {}", at + 1)?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl std::error::Error for ExpressionError {}

impl ExpressionError {
    /// The error with another text.
    pub(crate) fn of(self, text: &str) -> ExpressionError {
        ExpressionError { text: abridged(text), ..self }
    }
}

/// Shortens a text that is too long for an error message.
fn abridged(text: &str) -> String {
    if text.len() <= EXPRESSION_BYTES_MAX {
        return String::from(text);
    }
    format!("{}…", text.get(..text.floor_char_boundary(64)).unwrap_or_default())
}

impl Expression {
    /// Compiles an operator's expression. An empty one matches only the empty name, as in RabbitMQ.
    pub(crate) fn new(text: &str) -> Result<Expression, ExpressionError> {
        // SECURITY LIM-12: length, nesting and compiled size are bounded.
        if text.len() > EXPRESSION_BYTES_MAX {
            let problem = format!("has too many bytes; use at most {EXPRESSION_BYTES_MAX}");
            return Err(ExpressionError { text: abridged(text), at: None, problem });
        }
        Expression::compile(text)
    }

    /// Compiles an expression of any length.
    pub(crate) fn compile(text: &str) -> Result<Expression, ExpressionError> {
        let error = |at, problem: String| ExpressionError { text: String::from(text), at, problem };
        if text.is_empty() {
            return Ok(Expression::Exact(Box::default()));
        }
        // Match bytes, as RabbitMQ's engine does, unless the expression contains non-ASCII
        // characters.
        let is_unicode = !text.is_ascii();
        let parsed = ParserBuilder::new()
            .unicode(is_unicode)
            .utf8(false)
            .nest_limit(EXPRESSION_NESTING_MAX)
            .build()
            .parse(text);
        let hir = parsed.map_err(|fault| match fault {
            regex_syntax::Error::Parse(fault) => {
                error(Some(characters(text, fault.span().start.offset)), fault.kind().to_string())
            }
            regex_syntax::Error::Translate(fault) => {
                error(Some(characters(text, fault.span().start.offset)), fault.kind().to_string())
            }
            fault => error(None, fault.to_string()),
        })?;
        if let Some(simple) = simple(&hir) {
            return Ok(simple);
        }
        let regex = RegexBuilder::new(text)
            .unicode(is_unicode)
            .nest_limit(EXPRESSION_NESTING_MAX)
            .size_limit(EXPRESSION_COMPILED_BYTES_MAX)
            .dfa_size_limit(EXPRESSION_COMPILED_BYTES_MAX)
            .build();
        let regex =
            regex.map_err(|_| error(None, String::from("is too large when compiled; repeat less")))?;
        Ok(Expression::Found(Box::new(regex)))
    }

    /// Whether the expression matches a name.
    #[inline]
    pub(crate) fn is_match(&self, name: &[u8]) -> bool {
        match self {
            Expression::All => true,
            Expression::Exact(exact) => **exact == *name,
            Expression::Prefix(prefix) => name.starts_with(prefix),
            Expression::Found(regex) => regex.is_match(name),
        }
    }
}

fn characters(text: &str, offset: usize) -> usize {
    text.get(..offset).map_or(0, |before| before.chars().count())
}

/// The equivalent expression that needs no regex engine, if there is one.
fn simple(hir: &Hir) -> Option<Expression> {
    let parts = match hir.kind() {
        HirKind::Concat(parts) => parts.as_slice(),
        _ => std::slice::from_ref(hir),
    };
    let is_start = |part: &Hir| matches!(part.kind(), HirKind::Look(Look::Start));
    let is_end = |part: &Hir| matches!(part.kind(), HirKind::Look(Look::End));
    let (parts, is_anchored) = match parts {
        [first, rest @ ..] if is_start(first) => (rest, true),
        _ => (parts, false),
    };
    match parts {
        // `.*` can match an empty string at the start, or the end, of every name.
        [any] if is_any(any) => Some(Expression::All),
        [any, end] if is_any(any) && is_end(end) && !is_anchored => Some(Expression::All),
        [end] if is_end(end) && is_anchored => Some(Expression::Exact(Box::default())),
        [only, rest @ ..] if is_anchored => {
            let HirKind::Literal(literal) = only.kind() else { return None };
            match rest {
                [] => Some(Expression::Prefix(literal.0.clone())),
                [any] if is_any(any) => Some(Expression::Prefix(literal.0.clone())),
                [end] if is_end(end) => Some(Expression::Exact(literal.0.clone())),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether a part is `.*`.
fn is_any(part: &Hir) -> bool {
    let HirKind::Repetition(repetition) = part.kind() else { return false };
    let is_dot = [Dot::AnyChar, Dot::AnyByte, Dot::AnyCharExceptLF, Dot::AnyByteExceptLF];
    repetition.min == 0
        && repetition.max.is_none()
        && is_dot.into_iter().any(|dot| *repetition.sub == Hir::dot(dot))
}

#[cfg(test)]
mod tests;
