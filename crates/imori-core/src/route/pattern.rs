//! Patterns: the one form into which the wildcards of AMQP, NATS and MQTT are parsed.
//!
//! A subject is words separated by `.`; an empty subject has no words. MQTT separates levels by
//! `/`: a `/` becomes `.` and a `.` within a level becomes `/`, so the mapping is reversible. Runs
//! of wildcards are normalised to all ones and then at most one many: `#.#` is `#`, and `#.*` is
//! `*.#`. That matches the same subjects, and no two ways lead to one match.

use std::fmt;

use crate::limits::{PATTERN_FLOATING_STEPS_MAX, SUBJECT_BYTES_MAX, SUBJECT_TOKENS_MAX};
use crate::name::{Name, Printable};

/// The prefix of names that the broker generates.
pub const MADE_PREFIX: &[u8] = b"amq.gen-";

/// The syntax of a pattern's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Syntax {
    /// `*` matches one word, `#` any number of words; STOMP uses it too.
    Amqp,
    /// `*` matches one token, a final `>` one or more tokens.
    Nats,
    /// `+` matches one level, a final `#` any number of levels.
    Mqtt,
    /// No wildcards: every byte stands for itself.
    Literal,
}

/// One step of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// Exactly this token.
    Literal(&'a [u8]),
    /// Exactly one token, whatever it is.
    One,
    /// Any number of tokens, including none.
    Many,
}

/// The pattern of a binding to a topic exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// The subject if the pattern is literal, else its packed steps.
    form: Form,
    /// Whether the pattern does not match reserved subjects.
    is_guarded: bool,
    /// Whether normalising changed the steps as they were written.
    is_normalised: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    Literal(Name),
    Wild(Box<[u8]>),
}

/// The reason why a text is not a valid pattern, or why a subject cannot be routed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternError {
    /// The pattern has more bytes than a subject may have.
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// The pattern has more tokens than a subject may have.
    TooManyTokens {
        /// How many tokens it has.
        tokens: usize,
    },
    /// NATS: two dots in a row, or a dot at either end.
    EmptyToken(Name),
    /// MQTT: a filter needs at least one character.
    Empty,
    /// NATS `>` or MQTT `#` before the end.
    ManyBeforeEnd(Name),
    /// MQTT `+` or `#` shares its level with other characters.
    WildcardInLevel(Name),
    /// Too many words between the first and the last `#`.
    TooManyFloating {
        /// The pattern as its client wrote it.
        pattern: Name,
        /// The number of words.
        steps: usize,
    },
}

impl Pattern {
    /// Parses `text` as a pattern of `syntax`.
    pub fn parse(syntax: Syntax, text: &Name) -> Result<Pattern, PatternError> {
        check_size(text.as_bytes(), syntax)?;
        match syntax {
            Syntax::Amqp => parse_amqp(text),
            Syntax::Nats => parse_nats(text),
            Syntax::Mqtt => parse_mqtt(text),
            Syntax::Literal => Ok(Pattern::of_subject(text.clone())),
        }
    }

    /// Parses a pattern of AMQP or STOMP: `*` is one word, `#` any number of words.
    pub fn amqp(text: &[u8]) -> Result<Pattern, PatternError> {
        Pattern::parse(Syntax::Amqp, &Name::new(text))
    }

    /// Parses a pattern of NATS: `*` is one token, a final `>` one or more.
    pub fn nats(text: &[u8]) -> Result<Pattern, PatternError> {
        Pattern::parse(Syntax::Nats, &Name::new(text))
    }

    /// Parses a topic filter of MQTT: `+` is one level, a final `#` any number of levels.
    pub fn mqtt(text: &[u8]) -> Result<Pattern, PatternError> {
        Pattern::parse(Syntax::Mqtt, &Name::new(text))
    }

    /// A pattern that matches only this subject.
    pub fn literal(subject: &[u8]) -> Result<Pattern, PatternError> {
        Pattern::parse(Syntax::Literal, &Name::new(subject))
    }

    /// The one subject that the pattern matches, if it has no wildcard.
    pub fn subject(&self) -> Option<&Name> {
        match &self.form {
            Form::Literal(subject) => Some(subject),
            Form::Wild(_) => None,
        }
    }

    /// The steps in order.
    pub fn steps(&self) -> Vec<Step<'_>> {
        match &self.form {
            Form::Literal(subject) => tokens(subject.as_bytes()).map(Step::Literal).collect(),
            Form::Wild(packed) => Steps::new(packed).collect(),
        }
    }

    /// The packed steps of a pattern with wildcards.
    pub(crate) fn wild_steps(&self) -> Option<Steps<'_>> {
        match &self.form {
            Form::Literal(_) => None,
            Form::Wild(packed) => Some(Steps::new(packed)),
        }
    }

    /// Whether the pattern does not match reserved subjects: it begins with a wildcard and is not
    /// of NATS.
    pub fn is_guarded(&self) -> bool {
        self.is_guarded
    }

    /// Whether normalising changed the steps, so that the text cannot be derived from them.
    pub(crate) fn is_normalised(&self) -> bool {
        self.is_normalised
    }

    fn of_subject(subject: Name) -> Pattern {
        Pattern { form: Form::Literal(subject), is_guarded: false, is_normalised: false }
    }

    fn of_steps(steps: &[Step<'_>], syntax: Syntax, is_normalised: bool) -> Pattern {
        let starts_wild = matches!(steps.first(), Some(Step::One | Step::Many));
        Pattern {
            form: Form::Wild(pack(steps)),
            is_guarded: starts_wild && syntax != Syntax::Nats,
            is_normalised,
        }
    }
}

/// The tokens of a subject. As in AMQP, an empty subject has none.
pub fn tokens(subject: &[u8]) -> impl Iterator<Item = &[u8]> {
    // Splitting an empty slice gives one empty token, which must be dropped.
    let take = if subject.is_empty() { 0 } else { usize::MAX };
    subject.split(|byte| *byte == b'.').take(take)
}

/// The subject without its last token: empty, or ending with a dot.
#[inline]
pub fn stem(subject: &[u8]) -> &[u8] {
    let len = memchr::memrchr(b'.', subject).map_or(0, |dot| dot + 1);
    &subject[..len]
}

/// Whether this subject is hidden from patterns that begin with a wildcard.
pub fn is_reserved(subject: &[u8]) -> bool {
    is_reply(subject) || subject.starts_with(b"$")
}

/// Whether this subject is hidden from all patterns with wildcards: it has the prefix of generated
/// names, such as that of a temporary topic.
pub fn is_private(subject: &[u8]) -> bool {
    subject.starts_with(MADE_PREFIX)
}

/// Whether a subject that differs only in its last token may be private.
pub(crate) fn may_be_private(subject: &[u8]) -> bool {
    MADE_PREFIX.starts_with(stem(subject))
}

/// Whether the subject is a reply address by the convention of NATS clients: it begins with
/// `_INBOX`.
pub fn is_reply(subject: &[u8]) -> bool {
    tokens(subject).next() == Some(b"_INBOX")
}

/// Checks the length of `subject`, and its number of tokens, which topic exchanges limit.
pub fn check_subject(subject: &[u8]) -> Result<(), PatternError> {
    check_size(subject, Syntax::Literal)
}

/// Checks the length of `subject`, which all exchanges limit.
pub fn check_bytes(subject: &[u8]) -> Result<(), PatternError> {
    if subject.len() > SUBJECT_BYTES_MAX {
        return Err(PatternError::TooLong { bytes: subject.len() });
    }
    Ok(())
}

/// Whether `pattern` matches `subject`: the plain definition, against which the trie is tested. Its
/// cost is the product of the two lengths.
pub fn is_match(pattern: &Pattern, subject: &[u8]) -> bool {
    if pattern.is_guarded && is_reserved(subject) || pattern.subject().is_none() && is_private(subject) {
        return false;
    }
    let subject: Vec<&[u8]> = tokens(subject).collect();
    // `reached[n]`: the steps so far match exactly the first n tokens.
    let mut reached = vec![false; subject.len() + 1];
    reached[0] = true;
    for step in pattern.steps() {
        let mut next = vec![false; reached.len()];
        match step {
            Step::Many => {
                let mut any = false;
                for (from, to) in reached.iter().zip(&mut next) {
                    any |= from;
                    *to = any;
                }
            }
            Step::One => next[1..].copy_from_slice(&reached[..subject.len()]),
            Step::Literal(token) => {
                for (at, found) in subject.iter().enumerate() {
                    next[at + 1] = reached[at] && *found == token;
                }
            }
        }
        reached = next;
    }
    reached.last().copied().unwrap_or_default()
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatternError::TooLong { bytes } => {
                write!(f, "subject has {bytes} bytes; use at most {SUBJECT_BYTES_MAX}")
            }
            PatternError::TooManyTokens { tokens } => {
                write!(f, "subject has {tokens} tokens; use at most {SUBJECT_TOKENS_MAX}")
            }
            PatternError::EmptyToken(text) => {
                write!(f, "subject `{text}` has an empty token; put a name between the dots")
            }
            PatternError::Empty => f.write_str("topic filter is empty; use `#` for all topics"),
            PatternError::ManyBeforeEnd(text) => {
                write!(f, "`{text}` goes on after its multi-level wildcard; end it there")
            }
            PatternError::WildcardInLevel(text) => {
                write!(
                    f,
                    "topic filter `{text}` has a wildcard beside other characters; give it a level of its own"
                )
            }
            PatternError::TooManyFloating { pattern, steps } => write!(
                f,
                "pattern `{pattern}` has {steps} words between its first and last `#`; \
                 use at most {PATTERN_FLOATING_STEPS_MAX}"
            ),
        }
    }
}

impl std::error::Error for PatternError {}

/// Appends a step in the syntax of AMQP.
pub(crate) fn push_step(text: &mut Vec<u8>, step: Step<'_>, is_first: bool) {
    if !is_first {
        text.push(b'.');
    }
    match step {
        Step::Literal(token) => text.extend_from_slice(token),
        Step::One => text.push(b'*'),
        Step::Many => text.push(b'#'),
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        for (index, step) in self.steps().into_iter().enumerate() {
            push_step(&mut text, step, index == 0);
        }
        write!(f, "{}", Printable(&text))
    }
}

/// An iterator over packed steps. A leaf of the trie stores the remaining ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Steps<'a> {
    packed: &'a [u8],
}

/// Markers of wildcards, in place of a literal's length.
const ONE: [u8; 2] = [0xff, 0xff];
const MANY: [u8; 2] = [0xff, 0xfe];

impl<'a> Steps<'a> {
    pub(crate) fn new(packed: &'a [u8]) -> Steps<'a> {
        Steps { packed }
    }

    pub(crate) fn packed(self) -> &'a [u8] {
        self.packed
    }

    pub(crate) fn has_many(mut self) -> bool {
        self.any(|step| step == Step::Many)
    }
}

impl<'a> Iterator for Steps<'a> {
    type Item = Step<'a>;

    fn next(&mut self) -> Option<Step<'a>> {
        let (head, rest) = self.packed.split_first_chunk::<2>()?;
        let (step, rest) = match *head {
            ONE => (Step::One, rest),
            MANY => (Step::Many, rest),
            len => {
                let (token, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(len)))?;
                (Step::Literal(token), rest)
            }
        };
        self.packed = rest;
        Some(step)
    }
}

fn pack(steps: &[Step<'_>]) -> Box<[u8]> {
    let mut packed = Vec::new();
    for step in steps {
        match step {
            Step::One => packed.extend_from_slice(&ONE),
            Step::Many => packed.extend_from_slice(&MANY),
            Step::Literal(token) => {
                let len = u16::try_from(token.len()).expect("a token is no longer than its subject");
                packed.extend_from_slice(&len.to_be_bytes());
                packed.extend_from_slice(token);
            }
        }
    }
    packed.into_boxed_slice()
}

fn check_size(text: &[u8], syntax: Syntax) -> Result<(), PatternError> {
    check_bytes(text)?;
    let separator = if syntax == Syntax::Mqtt { b'/' } else { b'.' };
    let tokens = 1 + memchr::memchr_iter(separator, text).count();
    if tokens > SUBJECT_TOKENS_MAX {
        return Err(PatternError::TooManyTokens { tokens });
    }
    Ok(())
}

fn parse_amqp(text: &Name) -> Result<Pattern, PatternError> {
    let written: Vec<Step<'_>> = tokens(text.as_bytes())
        .map(|word| match word {
            b"*" => Step::One,
            b"#" => Step::Many,
            _ => Step::Literal(word),
        })
        .collect();
    if written.iter().all(|step| matches!(step, Step::Literal(_))) {
        return Ok(Pattern::of_subject(text.clone()));
    }
    let steps = normalised(&written);
    let floating = floating_steps(&steps);
    if floating > PATTERN_FLOATING_STEPS_MAX {
        return Err(PatternError::TooManyFloating { pattern: text.clone(), steps: floating });
    }
    Ok(Pattern::of_steps(&steps, Syntax::Amqp, steps != written))
}

fn parse_nats(text: &Name) -> Result<Pattern, PatternError> {
    let mut steps = Vec::new();
    let mut is_literal = true;
    let mut rest = text.as_bytes().split(|byte| *byte == b'.').peekable();
    while let Some(token) = rest.next() {
        match token {
            b"" => return Err(PatternError::EmptyToken(text.clone())),
            b"*" => steps.push(Step::One),
            b">" if rest.peek().is_some() => return Err(PatternError::ManyBeforeEnd(text.clone())),
            b">" => steps.extend([Step::One, Step::Many]),
            _ => {
                steps.push(Step::Literal(token));
                continue;
            }
        }
        is_literal = false;
    }
    if is_literal {
        return Ok(Pattern::of_subject(text.clone()));
    }
    Ok(Pattern::of_steps(&steps, Syntax::Nats, false))
}

fn parse_mqtt(text: &Name) -> Result<Pattern, PatternError> {
    if text.as_bytes().is_empty() {
        return Err(PatternError::Empty);
    }
    let subject = mqtt_subject(text.as_bytes());
    let mut steps = Vec::new();
    let mut is_literal = true;
    let mut rest = tokens(&subject).peekable();
    while let Some(level) = rest.next() {
        match level {
            b"+" => steps.push(Step::One),
            b"#" if rest.peek().is_some() => return Err(PatternError::ManyBeforeEnd(text.clone())),
            b"#" => steps.push(Step::Many),
            // MQTT 5, 4.7.1: a wildcard occupies an entire level.
            _ if level.iter().any(|byte| matches!(byte, b'+' | b'#')) => {
                return Err(PatternError::WildcardInLevel(text.clone()));
            }
            _ => {
                steps.push(Step::Literal(level));
                continue;
            }
        }
        is_literal = false;
    }
    if is_literal {
        return Ok(Pattern::of_subject(Name::new(&subject)));
    }
    Ok(Pattern::of_steps(&steps, Syntax::Mqtt, false))
}

/// Converts an MQTT topic to a subject, and back, by swapping `/` and `.`.
pub fn mqtt_subject(topic: &[u8]) -> Vec<u8> {
    let swap = |byte: &u8| match byte {
        b'/' => b'.',
        b'.' => b'/',
        other => *other,
    };
    topic.iter().map(swap).collect()
}

/// Reorders each run of wildcards: all ones first, then at most one many.
fn normalised<'a>(steps: &[Step<'a>]) -> Vec<Step<'a>> {
    let mut out = Vec::with_capacity(steps.len());
    let mut pending_many = false;
    for step in steps {
        match step {
            Step::One => out.push(Step::One),
            Step::Many => pending_many = true,
            Step::Literal(_) => {
                if pending_many {
                    out.push(Step::Many);
                    pending_many = false;
                }
                out.push(*step);
            }
        }
    }
    if pending_many {
        out.push(Step::Many);
    }
    out
}

/// The number of steps between the first and the last many.
fn floating_steps(steps: &[Step<'_>]) -> usize {
    let first = steps.iter().position(|step| *step == Step::Many);
    let last = steps.iter().rposition(|step| *step == Step::Many);
    let (Some(first), Some(last)) = (first, last) else {
        return 0;
    };
    steps[first..last].iter().filter(|step| **step != Step::Many).count()
}

#[cfg(test)]
mod tests;
