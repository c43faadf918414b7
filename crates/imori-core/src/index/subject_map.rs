//! A change of subjects: a filter, and a destination whose functions take the tokens that its wildcards matched.
//!
//! The language is that of NATS's subject mappings.

use std::fmt;

use super::subject::{is_subset, is_valid};

/// A change of subjects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectMap {
    source: String,
    /// The source and the destination as they were given.
    texts: (String, String),
    /// Tokens of the source before its `>`, or all of them.
    prefix_len: usize,
    steps: Vec<Step>,
    /// The destination ends with `>`, which stands for the remaining tokens.
    has_rest: bool,
}

/// A token of the destination. Positions count the tokens of the subject from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Literal(String),
    Wildcard(usize),
    /// The hash of these tokens, or of the whole subject, modulo the number of partitions.
    Partition {
        partitions: u32,
        positions: Vec<usize>,
    },
    /// A number below the limit, from the caller's source of randomness.
    Random(u32),
    Cut {
        function: Cut,
        position: usize,
        len: usize,
    },
    /// The token, with a dot in place of this text.
    Split {
        position: usize,
        separator: String,
    },
}

/// A function that cuts a token after a number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    SplitFromLeft,
    SplitFromRight,
    SliceFromLeft,
    SliceFromRight,
    Left,
    Right,
}

/// Why a source and a destination are no change of subjects, in the words of nats-server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubjectMapError {
    /// The source or the destination is not a subject, or only one of them ends with `>`.
    BadSubject,
    /// A token of the destination is not valid.
    Destination {
        /// The token.
        token: String,
        /// The fault of the token.
        fault: &'static str,
    },
}

impl fmt::Display for SubjectMapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadSubject => f.write_str("invalid subject"),
            Self::Destination { token, fault } => {
                write!(f, "invalid mapping destination: {fault}")?;
                if token.is_empty() { Ok(()) } else { write!(f, " in {token}") }
            }
        }
    }
}

impl std::error::Error for SubjectMapError {}

const INVALID: &str = "invalid transform";
const UNKNOWN_FUNCTION: &str = "unknown function";
const OUT_OF_RANGE: &str = "wildcard index out of range";
const TOO_FEW: &str = "not enough arguments passed to the function";
const TOO_MANY: &str = "too many arguments passed to the function";
const BAD_ARGUMENT: &str = "function argument is invalid or in the wrong format";

impl SubjectMap {
    /// The subject that all changed ones become; `None` if it depends on them.
    pub fn constant(&self) -> Option<Vec<u8>> {
        let literal = |step: &Step| match step {
            Step::Literal(token) => Some(token.clone()),
            _ => None,
        };
        let tokens: Option<Vec<String>> = self.steps.iter().map(literal).collect();
        tokens.filter(|_| !self.has_rest).map(|tokens| tokens.join(".").into_bytes())
    }

    /// The source and the destination as they were given.
    pub fn texts(&self) -> (&str, &str) {
        (&self.texts.0, &self.texts.1)
    }

    /// Reads a change of subjects. An empty source stands for `>`; `None` for an empty destination, which leaves subjects as
    /// they are.
    ///
    /// # Errors
    /// The source or a token of the destination is wrong.
    pub fn new(source: &str, destination: &str) -> Result<Option<Self>, SubjectMapError> {
        if destination.is_empty() {
            return Ok(None);
        }
        check_tokens(destination)?;
        let texts = (source.to_owned(), destination.to_owned());
        let source = if source.is_empty() { ">" } else { source };
        let tokens: Vec<_> = source.split('.').collect();
        let has_rest = tokens.last() == Some(&">");
        let is_bad = !is_valid(source)
            || !destination.split('.').all(|token| token != "*")
            || destination.split('.').next_back().is_some_and(|last| last == ">") != has_rest;
        if is_bad {
            return Err(SubjectMapError::BadSubject);
        }
        let wildcards: Vec<_> =
            tokens.iter().enumerate().filter(|(_, token)| **token == "*").map(|(at, _)| at).collect();
        let is_literal = wildcards.is_empty() && !has_rest;
        let mut steps = Vec::new();
        for token in destination.split('.') {
            if token == ">" {
                break;
            }
            steps.push(step(token, &wildcards, is_literal)?);
        }
        let prefix_len = tokens.len() - usize::from(has_rest);
        Ok(Some(Self { source: source.to_string(), texts, prefix_len, steps, has_rest }))
    }

    /// The changed subject; `None` for a subject that the source does not match, which stays. `random` is any number.
    pub fn map(&self, subject: &[u8], random: u32) -> Option<Vec<u8>> {
        let subject = str::from_utf8(subject).ok()?;
        if !is_subset(subject, &self.source) {
            return None;
        }
        let tokens: Vec<_> = subject.split('.').collect();
        let token = |position: &usize| tokens.get(*position).copied().unwrap_or_default();
        let mut out = Vec::with_capacity(self.steps.len() + 1);
        for step in &self.steps {
            out.push(match step {
                Step::Literal(text) => text.clone(),
                Step::Wildcard(position) => token(position).to_string(),
                Step::Partition { partitions: 0, .. } | Step::Random(0) => "0".to_string(),
                Step::Partition { partitions, positions } => {
                    let key: String = positions.iter().map(token).collect();
                    let key = if positions.is_empty() { subject } else { &key };
                    (fnv1a(key.as_bytes()) % partitions).to_string()
                }
                Step::Random(limit) => (random % limit).to_string(),
                Step::Cut { function, position, len } => function.apply(token(position), *len),
                Step::Split { position, separator } => split(token(position), separator),
            });
        }
        if self.has_rest {
            out.extend(tokens.iter().skip(self.prefix_len).map(|token| (*token).to_string()));
        }
        Some(out.join(".").into_bytes())
    }
}

/// Checks what nats-server checks before it builds the change.
fn check_tokens(destination: &str) -> Result<(), SubjectMapError> {
    let mut is_over = false;
    for token in destination.split('.') {
        if token.is_empty() || is_over {
            return Err(fault(token, INVALID));
        }
        if call(token).is_some() {
            continue;
        }
        is_over = token == ">";
        if !is_over && token.contains(['\t', '\n', '\x0c', '\r', ' ']) {
            return Err(fault("", INVALID));
        }
    }
    Ok(())
}

/// Reads a token of the destination. `wildcards` are the positions of the source's `*`.
fn step(token: &str, wildcards: &[usize], is_literal: bool) -> Result<Step, SubjectMapError> {
    let position = |index: i64| match usize::try_from(index) {
        // nats-server takes the first token for an index below 1.
        Err(_) | Ok(0) => Ok(0),
        Ok(index) => wildcards.get(index - 1).copied().ok_or_else(|| {
            let token = if is_literal { token.to_string() } else { format!("{token}: [{index}]") };
            fault(&token, OUT_OF_RANGE)
        }),
    };
    if let Some(index) = token.strip_prefix('$').and_then(|index| index.parse::<i64>().ok()) {
        if is_literal {
            return Err(fault(token, OUT_OF_RANGE));
        }
        return position(index).map(Step::Wildcard);
    }
    let Some((name, arguments)) = call(token) else {
        return Ok(Step::Literal(token.to_string()));
    };
    let arguments: Vec<_> = arguments.split(',').map(str::trim_start).collect();
    let integer = |at: usize| {
        let text = arguments.get(at).map(|argument| argument.trim_matches(' ')).unwrap_or_default();
        text.parse::<i64>().map_err(|_| fault(token, BAD_ARGUMENT))
    };
    let count = |count: usize| match arguments.len() {
        len if len < count || arguments == [""] => Err(fault(token, TOO_FEW)),
        len if len > count => Err(fault(token, TOO_MANY)),
        _ => Ok(()),
    };
    let number = |at: usize| {
        let number = integer(at)?;
        if number > i64::from(i32::MAX) { Err(fault(token, BAD_ARGUMENT)) } else { Ok(number) }
    };
    let function = match name.as_str() {
        "partition" => {
            let partitions = u32::try_from(number(0)?).unwrap_or_default();
            let indexes: Vec<_> = (1..arguments.len()).map(integer).collect::<Result<_, _>>()?;
            let positions = match is_literal {
                // nats-server ignores indexes where the source has no wildcard.
                true => Vec::new(),
                false => indexes.into_iter().map(position).collect::<Result<_, _>>()?,
            };
            return Ok(Step::Partition { partitions, positions });
        }
        "random" => {
            if arguments.len() != 1 {
                return Err(fault(token, TOO_FEW));
            }
            return Ok(Step::Random(u32::try_from(number(0)?).unwrap_or_default()));
        }
        "wildcard" => {
            count(1)?;
            let index = integer(0)?;
            return if is_literal {
                Err(fault(token, OUT_OF_RANGE))
            } else {
                position(index).map(Step::Wildcard)
            };
        }
        "split" => {
            count(2)?;
            let index = integer(0)?;
            let separator = arguments.get(1).copied().unwrap_or_default();
            if separator.contains(' ') {
                return Err(fault(token, BAD_ARGUMENT));
            }
            if is_literal {
                return Err(fault(token, OUT_OF_RANGE));
            }
            return Ok(Step::Split { position: position(index)?, separator: separator.to_string() });
        }
        "splitfromleft" => Cut::SplitFromLeft,
        "splitfromright" => Cut::SplitFromRight,
        "slicefromleft" => Cut::SliceFromLeft,
        "slicefromright" => Cut::SliceFromRight,
        "left" => Cut::Left,
        "right" => Cut::Right,
        _ => return Err(fault(token, UNKNOWN_FUNCTION)),
    };
    count(2)?;
    let (index, len) = (integer(0)?, number(1)?);
    if is_literal {
        return Err(fault(token, OUT_OF_RANGE));
    }
    Ok(Step::Cut { function, position: position(index)?, len: usize::try_from(len).unwrap_or_default() })
}

/// Reads `{{Name(arguments)}}`, the name in lower case. A token in double braces that is not a call
/// has an empty name.
fn call(token: &str) -> Option<(String, &str)> {
    let inner = token.strip_prefix("{{")?.strip_suffix("}}").filter(|inner| !inner.is_empty())?;
    let call = inner.trim().strip_suffix(')').and_then(|call| call.split_once('('));
    let (name, arguments) = call.unwrap_or_default();
    Some((name.trim_end().to_ascii_lowercase(), arguments))
}

fn fault(token: &str, fault: &'static str) -> SubjectMapError {
    SubjectMapError::Destination { token: token.to_string(), fault }
}

impl Cut {
    /// Cuts a token; one that is too short, or that the cut would split inside a character, stays.
    fn apply(self, token: &str, len: usize) -> String {
        let is_long = len > 0 && len < token.len();
        let head = token.split_at_checked(len).filter(|_| is_long);
        let tail = token.split_at_checked(token.len().saturating_sub(len)).filter(|_| is_long);
        let cut = match self {
            Self::SplitFromLeft => head.map(|(head, tail)| format!("{head}.{tail}")),
            Self::SplitFromRight => tail.map(|(head, tail)| format!("{head}.{tail}")),
            Self::Left => head.map(|(head, _)| head.to_string()),
            Self::Right => tail.map(|(_, tail)| tail.to_string()),
            Self::SliceFromLeft if is_long => slices(token, len, len),
            Self::SliceFromRight if is_long => slices(token, (token.len() - 1) % len + 1, len),
            Self::SliceFromLeft | Self::SliceFromRight => None,
        };
        cut.unwrap_or_else(|| token.to_string())
    }
}

/// Cuts a token into a first slice and more of `len` bytes; the last may be shorter.
fn slices(token: &str, first: usize, len: usize) -> Option<String> {
    let (head, mut rest) = token.split_at_checked(first)?;
    let mut out = head.to_string();
    while !rest.is_empty() {
        let (slice, after) = rest.split_at_checked(len.min(rest.len()))?;
        out.push('.');
        out.push_str(slice);
        rest = after;
    }
    Some(out)
}

/// Splits a token at a separator into tokens, of which none is empty.
fn split(token: &str, separator: &str) -> String {
    if separator.is_empty() {
        return token.chars().map(String::from).collect::<Vec<_>>().join(".");
    }
    token.split(separator).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".")
}

fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_changed_as_in_nats_server() {
        for (source, destination, subject, expected) in [
            ("a.*", "b.$1", "a.x", Some("b.x")),
            ("a.*", "b.{{wildcard(1)}}", "a.x", Some("b.x")),
            ("*.*", "{{ Wildcard( 2 ) }}.$1", "a.x", Some("x.a")),
            ("a.>", "b.>", "a.x.y", Some("b.x.y")),
            ("", "p.>", "a.x", Some("p.a.x")),
            (">", ">", "a.x", Some("a.x")),
            ("a.*.>", "b.$1.c.>", "a.x.y.z", Some("b.x.c.y.z")),
            ("a", "b", "a", Some("b")),
            ("a", "b", "c", None),
            ("a", "$b.{c}", "a", Some("$b.{c}")),
            ("*", "{{splitfromleft(1,2)}}", "abcde", Some("ab.cde")),
            ("*", "{{SplitFromRight(1, 2)}}", "abcde", Some("abc.de")),
            ("*", "{{slicefromleft(1,2)}}", "abcde", Some("ab.cd.e")),
            ("*", "{{slicefromright(1,2)}}", "abcde", Some("a.bc.de")),
            ("*", "{{slicefromright(1,2)}}", "abcd", Some("ab.cd")),
            ("*", "{{left(1,2)}}", "abcde", Some("ab")),
            ("*", "{{left(1,9)}}", "abcde", Some("abcde")),
            ("*", "{{split(1,-)}}", "-ab--c-", Some("ab.c")),
            ("*", "{{partition(10,1)}}", "foo", Some("3")),
            ("*.*", "{{partition(10,1,2)}}", "foo.bar", Some("0")),
            ("foo.bar", "{{partition(10)}}", "foo.bar", Some("6")),
            ("*", "{{random(10)}}", "a", Some("7")),
            ("*", "{{partition(0,1)}}", "a", Some("0")),
        ] {
            let map = SubjectMap::new(source, destination).unwrap().unwrap();
            let mapped = map.map(subject.as_bytes(), 17);
            assert_eq!(
                mapped.as_deref(),
                expected.map(str::as_bytes),
                "{source} to {destination} of {subject}"
            );
        }
        assert_eq!(SubjectMap::new("a", ""), Ok(None));
    }

    #[test]
    fn changes_that_nats_server_refuses_are_refused() {
        for (source, destination, text) in [
            ("a..b", "c", "invalid subject"),
            ("a.>", "b", "invalid subject"),
            ("a", "b.>", "invalid subject"),
            ("a.*", "b.*", "invalid subject"),
            ("a", "b..c", "invalid mapping destination: invalid transform"),
            ("a.>", "b.>.c", "invalid mapping destination: invalid transform in c"),
            ("a", "b c", "invalid mapping destination: invalid transform"),
            ("a", "$1", "invalid mapping destination: wildcard index out of range in $1"),
            ("a.*", "$2", "invalid mapping destination: wildcard index out of range in $2: [2]"),
            ("*", "{{nope(1)}}", "invalid mapping destination: unknown function in {{nope(1)}}"),
            ("*", "{{nope}}", "invalid mapping destination: unknown function in {{nope}}"),
            (
                "*",
                "{{wildcard()}}",
                "invalid mapping destination: not enough arguments passed to the function in {{wildcard()}}",
            ),
            (
                "*",
                "{{wildcard(1,2)}}",
                "invalid mapping destination: too many arguments passed to the function in {{wildcard(1,2)}}",
            ),
            (
                "*",
                "{{left(1,x)}}",
                "invalid mapping destination: function argument is invalid or in the wrong format in {{left(1,x)}}",
            ),
        ] {
            let error = SubjectMap::new(source, destination).unwrap_err();
            assert_eq!(error.to_string(), text, "{source} to {destination}");
        }
    }
}
