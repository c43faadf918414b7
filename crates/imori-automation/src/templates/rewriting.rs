//! Changes of an expression or a statement before the engine compiles it.
//!
//! `'%s: %d' % (name, count)`: the engine knows `%` for numbers alone, so that after a text it becomes a filter.
//!
//! `{% set a = [a, a] %}`: the engine compares and writes values without counting what it does, and a value that is
//! made of others again and again takes forever, or more stack than there is. So every value that gets a name is
//! checked for its size and depth.

use super::tokens::{Kind, Token, after_bracket, tokens};

/// The filter that a `%` after a text becomes.
pub(super) const PERCENT_FILTER: &str = "percent_format";

/// The function that checks a value that gets a name.
pub(super) const BOUNDED: &str = "bounded_value";

/// The function that checks a value that becomes a part of a namespace.
pub(super) const BOUNDED_PART: &str = "bounded_part";

/// A text that takes the place of some bytes.
struct Edit {
    start: usize,
    end: usize,
    /// At one place, what closes stands before what opens.
    opens: bool,
    text: String,
}

/// The code of a tag up to its `end`, and how many bytes of it that were. `None` where it has no end.
pub(super) fn rewritten(tag: &str, end: &str) -> Option<(String, usize)> {
    let (tokens, bytes) = tokens(tag, end)?;
    let mut edits = Vec::new();
    add_percents(&tokens, &mut edits);
    add_bounds(&tokens, end == "%}", &mut edits);
    edits.sort_by_key(|edit| (edit.start, edit.opens));
    let mut code = String::new();
    let mut copied = 0;
    for edit in edits {
        code.push_str(tag.get(copied..edit.start)?);
        code.push_str(&edit.text);
        copied = edit.end;
    }
    code.push_str(tag.get(copied..bytes)?);
    Some((code, bytes))
}

fn add_percents(tokens: &[Token<'_>], edits: &mut Vec<Edit>) {
    for (at, token) in tokens.iter().enumerate().filter(|(_, token)| token.kind == Kind::Text) {
        let binds_before = at.checked_sub(1).and_then(|before| tokens.get(before)).is_some_and(|before| {
            before.kind == Kind::Text
                || matches!(before.text, "*" | "/" | "//" | "%" | "**" | "." | "-" | "+")
        });
        let Some(percent) = tokens.get(at + 1).filter(|next| next.is_sign("%") && !binds_before) else {
            continue;
        };
        let Some(operand_end) = operand_end(tokens, at + 2) else { continue };
        let filter = format!("|{PERCENT_FILTER}(");
        edits.push(Edit { start: token.end, end: percent.end, opens: true, text: filter });
        edits.push(Edit { start: operand_end, end: operand_end, opens: false, text: ")".to_owned() });
    }
}

/// Where the value ends that begins at a token: with its attributes, calls and filters. `None` where it has no simple
/// end.
fn operand_end(tokens: &[Token<'_>], first: usize) -> Option<usize> {
    let token = tokens.get(first)?;
    let mut at = match token.kind {
        Kind::Word if token.text == "not" => return None,
        Kind::Word | Kind::Number | Kind::Text => first + 1,
        Kind::Sign if matches!(token.text, "(" | "[" | "{") => after_bracket(tokens, first)?,
        Kind::Sign => return None,
    };
    loop {
        let text = tokens.get(at).filter(|token| token.kind == Kind::Sign).map_or("", |token| token.text);
        at = match text {
            "." | "|" => {
                tokens.get(at + 1).filter(|token| matches!(token.kind, Kind::Word | Kind::Number))?;
                at + 2
            }
            "(" | "[" => after_bracket(tokens, at)?,
            "**" => return None,
            _ => break,
        };
    }
    match tokens.get(at) {
        Some(token) if token.is_word("is") => None,
        _ => tokens.get(at.checked_sub(1)?).map(|token| token.end),
    }
}

fn add_bounds(tokens: &[Token<'_>], is_statement: bool, edits: &mut Vec<Edit>) {
    let statement = tokens.first().filter(|_| is_statement).map_or("", |token| token.text);
    let is_set = statement == "set";
    if statement == "for"
        && let Some(within) = position(tokens, 1, |token| token.is_word("in"))
    {
        let end = position(tokens, within + 1, |token| token.is_word("if") || token.is_word("recursive"));
        add_bound(tokens, within + 1..end.unwrap_or(tokens.len()), BOUNDED, edits);
    }
    for (at, token) in tokens.iter().enumerate() {
        if token.is_sign("=") {
            let end = if is_set {
                Some(tokens.len())
            } else {
                position(tokens, at + 1, |token| token.is_sign(","))
            };
            let end = end.unwrap_or_else(|| part_end(tokens, at + 1));
            let into_namespace = is_set && tokens.iter().take(at).any(|token| token.is_sign("."));
            add_bound(tokens, at + 1..end, if into_namespace { BOUNDED_PART } else { BOUNDED }, edits);
            // All that is set by one statement is checked as a whole.
            if is_set {
                break;
            }
        }
    }
    // The name and the parameters in a macro's definition are not reads of variables.
    let skipped = if matches!(statement, "macro") { 2 } else { 0 };
    for (at, token) in tokens.iter().enumerate().skip(skipped) {
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        let is_attribute = before.is_some_and(|before| matches!(before.text, "." | "|" | "is" | "not"));
        let called = token.kind == Kind::Word && !is_attribute && !is_keyword(token.text);
        let opens = tokens.get(at + 1).is_some_and(|next| next.is_sign("("));
        if called && opens {
            add_arguments(tokens, at + 2, edits);
        }
    }
}

/// Bounds each argument by position; those by name are bounded as what follows a `=`.
fn add_arguments(tokens: &[Token<'_>], first: usize, edits: &mut Vec<Edit>) {
    let end = part_end(tokens, first);
    let mut start = first;
    while start < end {
        let stop = position(tokens, start, |token| token.is_sign(",")).map_or(end, |comma| comma.min(end));
        let is_named = position(tokens, start, |token| token.is_sign("=")).is_some_and(|sign| sign < stop);
        let is_spread = tokens.get(start).is_some_and(|token| token.is_sign("*") || token.is_sign("**"));
        if !is_named && !is_spread {
            add_bound(tokens, start..stop, BOUNDED, edits);
        }
        start = stop + 1;
    }
}

fn add_bound(tokens: &[Token<'_>], range: std::ops::Range<usize>, function: &str, edits: &mut Vec<Edit>) {
    let within = tokens.get(range).unwrap_or_default();
    if let (Some(first), Some(last)) = (within.first(), within.last()) {
        edits.push(Edit { start: first.start, end: first.start, opens: true, text: format!("{function}((") });
        edits.push(Edit { start: last.end, end: last.end, opens: false, text: "))".to_owned() });
    }
}

/// The first token from `start` on that is not within brackets and passes a test, before the brackets around it close.
fn position(tokens: &[Token<'_>], start: usize, test: impl Fn(&Token<'_>) -> bool) -> Option<usize> {
    let end = part_end(tokens, start);
    let mut at = start;
    while at < end {
        let token = tokens.get(at)?;
        if test(token) {
            return Some(at);
        }
        at = match token.kind == Kind::Sign && matches!(token.text, "(" | "[" | "{") {
            true => after_bracket(tokens, at)?,
            false => at + 1,
        };
    }
    None
}

/// Where the brackets close that are open at `start`, or all ends.
fn part_end(tokens: &[Token<'_>], start: usize) -> usize {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(start).filter(|(_, token)| token.kind == Kind::Sign) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" if depth == 0 => return at,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
    }
    tokens.len()
}

fn is_keyword(word: &str) -> bool {
    matches!(
        word,
        "in" | "if"
            | "else"
            | "elif"
            | "and"
            | "or"
            | "not"
            | "is"
            | "for"
            | "set"
            | "with"
            | "call"
            | "filter"
    )
}
