//! The anchors of a regular expression, found as StackStorm finds them: it looks at groups, at no repeated group, and
//! at the second alternative alone.

use std::iter::Peekable;
use std::str::Chars;

use crate::limits::EXPRESSION_DEPTH_MAX;

/// The anchors that a format has itself, so that none is added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Anchors {
    /// Whether it says where a command begins.
    pub begins: bool,
    /// Whether it says where a command ends.
    pub ends: bool,
}

/// The anchors of an expression in Python's syntax.
pub fn anchors(expression: &str) -> Anchors {
    alternatives(&mut expression.chars().peekable(), 0).anchors
}

/// A part of an expression.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    anchors: Anchors,
    /// Whether it starts with the anchor of the beginning, which Python factors out of alternatives.
    starts_anchored: bool,
}

/// Reads alternatives up to the end of their group.
fn alternatives(chars: &mut Peekable<Chars<'_>>, depth: usize) -> Part {
    let first = sequence(chars, depth);
    let (mut second, mut all_anchored) = (None, first.starts_anchored);
    while chars.next_if_eq(&'|').is_some() {
        let part = sequence(chars, depth);
        all_anchored &= part.starts_anchored;
        second.get_or_insert(part);
    }
    match second {
        None => first,
        Some(second) => {
            let begins = second.anchors.begins || all_anchored;
            Part { anchors: Anchors { begins, ..second.anchors }, starts_anchored: all_anchored }
        }
    }
}

/// Reads one alternative.
fn sequence(chars: &mut Peekable<Chars<'_>>, depth: usize) -> Part {
    let mut found = Part::default();
    let mut is_first = true;
    while let Some(c) = chars.next_if(|c| !matches!(c, '|' | ')')) {
        match c {
            '^' => {
                found.anchors.begins = true;
                found.starts_anchored |= is_first;
            }
            '$' => found.anchors.ends = true,
            '\\' => match chars.next() {
                Some('A') => {
                    found.anchors.begins = true;
                    found.starts_anchored |= is_first;
                }
                Some('Z') => found.anchors.ends = true,
                _ => {}
            },
            '[' => skip_class(chars),
            '(' => {
                let group = group(chars, depth);
                found.anchors.begins |= group.begins;
                found.anchors.ends |= group.ends;
            }
            _ => {}
        }
        is_first = false;
    }
    found
}

/// Reads a group after its bracket. Lookarounds and repeated groups have no anchors.
fn group(chars: &mut Peekable<Chars<'_>>, depth: usize) -> Anchors {
    let mut is_assertion = false;
    if chars.next_if_eq(&'?').is_some() {
        is_assertion = match chars.next() {
            Some('=' | '!') => true,
            Some('<') => chars.next_if(|c| matches!(c, '=' | '!')).is_some(),
            _ => false,
        };
    }
    let inner = match depth < EXPRESSION_DEPTH_MAX {
        true => alternatives(chars, depth + 1).anchors,
        // The compiler refuses an expression this deep.
        false => {
            chars.by_ref().for_each(drop);
            Anchors::default()
        }
    };
    chars.next_if_eq(&')');
    let is_repeated = chars.peek().is_some_and(|c| matches!(c, '?' | '*' | '+' | '{'));
    if is_assertion || is_repeated { Anchors::default() } else { inner }
}

fn skip_class(chars: &mut Peekable<Chars<'_>>) {
    chars.next_if_eq(&'^');
    // A bracket that comes first belongs to the class.
    chars.next_if_eq(&']');
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            ']' => return,
            _ => {}
        }
    }
}
