//! The syntax of Python's regular expressions, read and written anew.

use std::iter::Peekable;
use std::str::Chars;

use super::class::{Class, category, push_literal};
use crate::limits::EXPRESSION_DEPTH_MAX;

/// The flags of Python's `re.compile`, and whether the expression matches at the beginning only.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flags {
    pub(super) ignores_case: bool,
    pub(super) is_dot_all: bool,
    pub(super) is_multi_line: bool,
    pub(super) is_verbose: bool,
    pub(super) is_ascii: bool,
    pub(super) is_anchored: bool,
}

/// The item that a quantifier would repeat.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    Atom,
    Repetition,
}

/// An expression of Python on its way into the syntax of the `regex` crate.
pub(super) struct Translation<'p> {
    rest: Peekable<Chars<'p>>,
    pub(super) out: String,
    /// The groups around.
    outer: Vec<Group>,
    /// For each numbered group whether it has ended.
    ended: Vec<bool>,
    pub(super) flags: Flags,
    last: Last,
    /// Whether nothing but flags stands before, so that flags may follow.
    is_begin: bool,
    names: Vec<(String, usize)>,
    pub(super) has_dollar: bool,
    has_end: bool,
    pub(super) needs_backtracking: bool,
    /// Whether this alternative has had a `$`; a later part may match the newline at the end of the text.
    is_after_dollar: bool,
    /// Whether the result is for the engine that goes back.
    is_for_backtracking: bool,
}

/// A group that has begun, with the flags around it and its number if it has one.
struct Group {
    flags: Flags,
    number: Option<usize>,
    /// Whether a `$` stands before it.
    is_after_dollar: bool,
    /// Whether one of its alternatives has a `$`.
    has_dollar: bool,
}

impl<'p> Translation<'p> {
    pub(super) fn new(pattern: &'p str, flags: Flags, is_for_backtracking: bool) -> Translation<'p> {
        Translation {
            rest: pattern.chars().peekable(),
            out: String::new(),
            outer: Vec::new(),
            ended: Vec::new(),
            flags,
            last: Last::Nothing,
            is_begin: true,
            names: Vec::new(),
            has_dollar: false,
            has_end: false,
            needs_backtracking: false,
            is_after_dollar: false,
            is_for_backtracking,
        }
    }

    /// Translates the whole.
    ///
    /// # Errors
    /// Python would refuse it, or it has a form without equivalent.
    pub(super) fn run(&mut self) -> Result<(), String> {
        while let Some(character) = self.rest.next() {
            if self.flags.is_verbose {
                if matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c') {
                    continue;
                }
                if character == '#' {
                    self.skip_line();
                    continue;
                }
            }
            if character != '(' {
                self.is_begin = false;
            }
            match character {
                '\\' => self.escape()?,
                '.' => self.atom(if self.flags.is_dot_all { "(?s:.)" } else { "." }),
                '^' => self.assertion(if self.flags.is_multi_line { "(?m:^)" } else { r"\A" }),
                '$' if self.flags.is_multi_line => self.assertion("(?m:$)"),
                '$' if self.is_for_backtracking => self.assertion(r"(?=\n?\z)"),
                '$' => {
                    self.has_dollar = true;
                    self.is_after_dollar = true;
                    self.assertion(r"\z");
                }
                '|' => {
                    self.out.push('|');
                    let group = self.outer.last_mut();
                    let before = group.as_ref().is_some_and(|group| group.is_after_dollar);
                    let is_after_dollar = std::mem::replace(&mut self.is_after_dollar, before);
                    if let Some(group) = group {
                        group.has_dollar |= is_after_dollar;
                    }
                    self.last = Last::Nothing;
                }
                '[' => self.class()?,
                '(' => self.group()?,
                ')' => {
                    let group = self.outer.pop();
                    let group = group.ok_or("`)` has no `(` before it; write `\\)` for the character")?;
                    self.flags = group.flags;
                    if let Some(ended) = group.number.and_then(|number| self.ended.get_mut(number)) {
                        *ended = true;
                    }
                    self.is_after_dollar |= group.has_dollar;
                    self.out.push(')');
                    self.last = Last::Atom;
                }
                '*' => self.repeat("*")?,
                '+' => self.repeat("+")?,
                '?' => self.repeat("?")?,
                '{' => self.braces()?,
                other => self.literal(other),
            }
        }
        // The text without its last newline, on which `$` is tried, would have its end at the wrong position.
        self.needs_backtracking |= self.has_dollar && self.has_end;
        if self.outer.is_empty() { Ok(()) } else { Err("a group does not end; add `)`".to_owned()) }
    }

    /// Leaves out the rest of a line, in which an escaped newline is none.
    fn skip_line(&mut self) {
        while let Some(character) = self.rest.next() {
            match character {
                '\n' => return,
                '\\' => drop(self.rest.next()),
                _ => {}
            }
        }
    }

    fn atom(&mut self, text: &str) {
        self.out.push_str(text);
        self.needs_backtracking |= self.is_after_dollar;
        self.last = Last::Atom;
    }

    fn assertion(&mut self, text: &str) {
        self.out.push_str(text);
        self.last = Last::Nothing;
    }

    fn literal(&mut self, character: char) {
        push_literal(&mut self.out, character);
        self.needs_backtracking |= self.is_after_dollar;
        self.last = Last::Atom;
    }

    fn repeat(&mut self, quantifier: &str) -> Result<(), String> {
        match self.last {
            Last::Nothing => return Err(format!("`{quantifier}` has nothing to repeat")),
            Last::Repetition => return Err(format!("`{quantifier}` repeats a repetition; use one of them")),
            Last::Atom => {}
        }
        let is_possessive = self.rest.next_if_eq(&'+').is_some();
        if is_possessive && quantifier.len() > 1 {
            let message =
                format!("possessive quantifier `{quantifier}+` is not supported; leave out the `+`");
            return Err(message);
        }
        self.out.push_str(quantifier);
        self.needs_backtracking |= self.is_after_dollar;
        if is_possessive {
            self.needs_backtracking = true;
            self.out.push('+');
        } else if self.rest.next_if_eq(&'?').is_some() {
            self.out.push('?');
        }
        self.last = Last::Repetition;
        Ok(())
    }

    /// A quantifier such as `{2,3}`, or a brace that stands for itself.
    fn braces(&mut self) -> Result<(), String> {
        let mut ahead = self.rest.clone();
        if ahead.peek() == Some(&'}') {
            self.literal('{');
            return Ok(());
        }
        let digits = |ahead: &mut Peekable<Chars<'_>>| -> String {
            std::iter::from_fn(|| ahead.next_if(char::is_ascii_digit)).collect()
        };
        let from = digits(&mut ahead);
        let to = ahead.next_if_eq(&',').map(|_| digits(&mut ahead));
        if ahead.next_if_eq(&'}').is_none() {
            self.literal('{');
            return Ok(());
        }
        let number = |digits: &str| {
            digits.parse::<u32>().map_err(|_| format!("`{digits}` repetitions are too many; use fewer"))
        };
        let min = if from.is_empty() { 0 } else { number(&from)? };
        let quantifier = match to.as_deref() {
            None => format!("{{{min}}}"),
            Some("") => format!("{{{min},}}"),
            Some(to) => {
                let max = number(to)?;
                if max < min {
                    return Err(format!("`{{{min},{max}}}` has its bounds in the wrong order; swap them"));
                }
                format!("{{{min},{max}}}")
            }
        };
        self.rest = ahead;
        self.repeat(&quantifier)
    }

    fn escape(&mut self) -> Result<(), String> {
        let letter = self.rest.next().ok_or("it ends with `\\`; write `\\\\` for the character")?;
        if let Some(set) = category(letter, self.flags.is_ascii) {
            self.atom(set);
            return Ok(());
        }
        match letter {
            'A' => self.assertion(r"\A"),
            'Z' => {
                self.has_end = true;
                self.assertion(r"\z");
            }
            'b' => self.assertion(if self.flags.is_ascii { r"(?-u:\b)" } else { r"\b" }),
            'B' if self.flags.is_ascii => return Err(r"`\B` with flag `a` is not supported".to_owned()),
            'B' => self.assertion(r"\B"),
            '1'..='9' => {
                let mut ahead = self.rest.clone();
                let octal: String =
                    [Some(letter), ahead.next(), ahead.next()].into_iter().flatten().collect();
                if octal.len() < 3 || !octal.bytes().all(|digit| (b'0'..=b'7').contains(&digit)) {
                    return self.reference(letter);
                }
                self.rest = ahead;
                self.literal(octal_character(&octal)?);
            }
            other => {
                let character = self.escaped(other)?;
                self.literal(character);
            }
        }
        Ok(())
    }

    /// A reference to a group, of one digit or two.
    fn reference(&mut self, digit: char) -> Result<(), String> {
        let mut digits = String::from(digit);
        digits.extend(self.rest.next_if(char::is_ascii_digit));
        let number: usize = digits.parse().map_err(|_| format!("`\\{digits}` is no reference"))?;
        match number.checked_sub(1).and_then(|at| self.ended.get(at)) {
            Some(true) => {}
            Some(false) => return Err(format!("back-reference `\\{digits}` stands within its group")),
            None => return Err(format!("back-reference `\\{digits}` has no group before it")),
        }
        self.needs_backtracking = true;
        self.atom(&format!(r"(?:\{number})"));
        Ok(())
    }

    /// The character of an escape that sets and the rest of the expression have in common.
    fn escaped(&mut self, letter: char) -> Result<char, String> {
        match letter {
            'a' => Ok('\x07'),
            'f' => Ok('\x0c'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'v' => Ok('\x0b'),
            'x' => self.hexadecimal(letter, 2),
            'u' => self.hexadecimal(letter, 4),
            'U' => self.hexadecimal(letter, 8),
            '0' => {
                let mut octal = String::from(letter);
                while octal.len() < 3 {
                    let Some(digit) = self.rest.next_if(|digit| ('0'..='7').contains(digit)) else { break };
                    octal.push(digit);
                }
                octal_character(&octal)
            }
            'N' => Err(r"`\N` is not supported; write the character itself".to_owned()),
            letter if letter.is_ascii_alphanumeric() => {
                Err(format!("escape `\\{letter}` is unknown; write `\\\\` for a backslash"))
            }
            other => Ok(other),
        }
    }

    fn hexadecimal(&mut self, letter: char, len: usize) -> Result<char, String> {
        let digits: String =
            std::iter::from_fn(|| self.rest.next_if(char::is_ascii_hexdigit)).take(len).collect();
        u32::from_str_radix(&digits, 16)
            .ok()
            .filter(|_| digits.len() == len)
            .and_then(char::from_u32)
            .ok_or_else(|| {
                format!("escape `\\{letter}{digits}` is no character; give it {len} hexadecimal digits")
            })
    }

    fn class(&mut self) -> Result<(), String> {
        let endless = || "a set does not end; add `]`, or write `\\[` for the character".to_owned();
        let is_negated = self.rest.next_if_eq(&'^').is_some();
        let mut class = Class::default();
        loop {
            let character = self.rest.next().ok_or_else(endless)?;
            if character == ']' && !class.is_empty() {
                break;
            }
            let from = self.class_item(character)?;
            if self.rest.next_if_eq(&'-').is_none() {
                push_item(&mut class, from);
                continue;
            }
            let character = self.rest.next().ok_or_else(endless)?;
            if character == ']' {
                push_item(&mut class, from);
                class.push_literal('-');
                break;
            }
            match (from, self.class_item(character)?) {
                (Item::Character(from), Item::Character(to)) if from <= to => class.push_range(from, to),
                _ => return Err("a range of a set is no range from a lower to a higher character".to_owned()),
            }
        }
        self.atom(&class.finish(is_negated));
        Ok(())
    }

    fn class_item(&mut self, character: char) -> Result<Item, String> {
        if character != '\\' {
            return Ok(Item::Character(character));
        }
        let letter = self.rest.next().ok_or("it ends with `\\`; write `\\\\` for the character")?;
        if let Some(set) = category(letter, self.flags.is_ascii) {
            return Ok(Item::Category(set));
        }
        match letter {
            'b' => Ok(Item::Character('\x08')),
            '1'..='7' => {
                let mut octal = String::from(letter);
                while octal.len() < 3 {
                    let Some(digit) = self.rest.next_if(|digit| ('0'..='7').contains(digit)) else { break };
                    octal.push(digit);
                }
                octal_character(&octal).map(Item::Character)
            }
            other => self.escaped(other).map(Item::Character),
        }
    }

    fn group(&mut self) -> Result<(), String> {
        let is_begin = std::mem::replace(&mut self.is_begin, false);
        if self.rest.next_if_eq(&'?').is_none() {
            return self.open_numbered();
        }
        let kind = self.rest.next().ok_or("`(?` is not complete; write `\\(` for the character")?;
        match kind {
            ':' => self.open("(?:", self.flags),
            '#' => {
                self.is_begin = is_begin;
                self.rest
                    .find(|character| *character == ')')
                    .map(drop)
                    .ok_or("a comment does not end; add `)`".into())
            }
            'P' => self.named_group(),
            '=' | '!' | '>' => self.open_backtracking(&format!("(?{kind}")),
            '<' => match self.rest.next() {
                Some(kind @ ('=' | '!')) => self.open_backtracking(&format!("(?<{kind}")),
                _ => Err("`(?<` is not complete; write `(?<=` or `(?P<name>`".to_owned()),
            },
            '(' => Err("conditional group `(?(` is not supported; use alternatives".to_owned()),
            other => self.flags_group(other, is_begin),
        }
    }

    fn open(&mut self, text: &str, flags: Flags) -> Result<(), String> {
        if self.outer.len() >= EXPRESSION_DEPTH_MAX {
            return Err(format!("groups are nested more than {EXPRESSION_DEPTH_MAX} deep; use fewer"));
        }
        self.outer.push(Group {
            flags: std::mem::replace(&mut self.flags, flags),
            number: None,
            is_after_dollar: self.is_after_dollar,
            has_dollar: false,
        });
        self.out.push_str(text);
        self.last = Last::Nothing;
        Ok(())
    }

    fn open_backtracking(&mut self, text: &str) -> Result<(), String> {
        self.needs_backtracking = true;
        self.open(text, self.flags)
    }

    /// Only back-references need the text of a group.
    fn open_numbered(&mut self) -> Result<(), String> {
        self.open(if self.is_for_backtracking { "(" } else { "(?:" }, self.flags)?;
        if let Some(group) = self.outer.last_mut() {
            group.number = Some(self.ended.len());
        }
        self.ended.push(false);
        Ok(())
    }

    fn named_group(&mut self) -> Result<(), String> {
        match self.rest.next() {
            Some('<') => {}
            Some('=') => return self.named_reference(),
            _ => return Err("`(?P` is not complete; write `(?P<name>`".to_owned()),
        }
        let mut name = String::new();
        loop {
            match self.rest.next() {
                Some('>') => break,
                Some(character) => name.push(character),
                None => return Err("the name of a group does not end; add `>`".to_owned()),
            }
        }
        let is_identifier = name.chars().all(|character| character.is_alphanumeric() || character == '_')
            && name.chars().next().is_some_and(|first| !first.is_numeric());
        if !is_identifier {
            return Err(format!("`{name}` is no name of a group; use letters, digits and `_`"));
        }
        if self.names.iter().any(|(known, _)| *known == name) {
            return Err(format!("two groups have the name `{name}`; rename one"));
        }
        self.names.push((name, self.ended.len()));
        self.open_numbered()
    }

    fn named_reference(&mut self) -> Result<(), String> {
        let name: String = std::iter::from_fn(|| self.rest.next_if(|next| *next != ')')).collect();
        self.rest.next();
        let at = self.names.iter().find(|(known, _)| *known == name).map(|(_, at)| *at);
        let at = at
            .filter(|at| self.ended.get(*at) == Some(&true))
            .ok_or_else(|| format!("back-reference `(?P={name})` has no group before it"))?;
        self.needs_backtracking = true;
        self.atom(&format!(r"(?:\{})", at + 1));
        Ok(())
    }

    /// `(?i)` for the whole expression, or `(?i-s:` for a group.
    fn flags_group(&mut self, first: char, is_begin: bool) -> Result<(), String> {
        let mut flags = self.flags;
        let (mut added, mut removed) = (String::new(), String::new());
        let mut is_removal = first == '-';
        let mut next = if is_removal { self.rest.next() } else { Some(first) };
        let end = loop {
            let letter = next.ok_or("flags do not end; add `)` or `:`")?;
            match letter {
                ':' | ')' => break letter,
                '-' if !is_removal => is_removal = true,
                _ => {
                    let flag = match letter {
                        'i' => &mut flags.ignores_case,
                        's' => &mut flags.is_dot_all,
                        'm' => &mut flags.is_multi_line,
                        'x' => &mut flags.is_verbose,
                        'a' if !is_removal && !added.contains('u') => &mut flags.is_ascii,
                        // Texts are Unicode already.
                        'u' if !is_removal && !added.contains('a') => &mut false,
                        other => {
                            return Err(format!("flag `{other}` is not supported here; use i, m, s or x"));
                        }
                    };
                    *flag = !is_removal && letter != 'u';
                    if is_removal { &mut removed } else { &mut added }.push(letter);
                }
            }
            next = self.rest.next();
        };
        let is_contradiction = removed.contains(|flag| added.contains(flag));
        if is_removal && removed.is_empty() || is_contradiction || end == ')' && is_removal {
            return Err("flags of a group are wrong; write them as in `(?i-s:`".to_owned());
        }
        if end == ':' {
            let sign = if flags.ignores_case { "" } else { "-" };
            return self.open(&format!("(?{sign}i:"), flags);
        }
        if !is_begin || !self.outer.is_empty() {
            return Err(format!("flags `(?{added})` do not stand at the beginning; put them there"));
        }
        self.flags = flags;
        self.is_begin = true;
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Item {
    Character(char),
    Category(&'static str),
}

fn push_item(class: &mut Class, item: Item) {
    match item {
        Item::Character(character) => class.push_literal(character),
        Item::Category(set) => class.push_category(set),
    }
}

fn octal_character(digits: &str) -> Result<char, String> {
    u8::from_str_radix(digits, 8)
        .map(char::from)
        .map_err(|_| format!("escape `\\{digits}` is no character; octal ones end at `\\377`"))
}
