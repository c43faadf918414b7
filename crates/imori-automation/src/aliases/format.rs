//! A format of a command: words, placeholders such as `{{ name=default }}`, and regular expressions.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::LazyLock;

use fancy_regex::{Captures, Regex as Pattern};
use regex::Regex;

use super::anchors::anchors;
use crate::limits::{ALIAS_COMMAND_BYTES_MAX, ALIAS_FORMAT_BYTES_MAX};
use crate::python::python_regex;
use crate::value::{Map, Value};

/// A compiled format.
#[derive(Debug, Clone)]
pub struct AliasFormat {
    source: String,
    pattern: Pattern,
    /// Placeholders with a default, in the order of the format.
    defaults: Vec<(String, String)>,
}

/// Why a format or a command is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AliasError {
    /// The format is wrong, as a sentence.
    Format(String),
    /// The command, which is named first, does not have this format.
    NoMatch(String, String),
    /// The command has no value, and the format no default.
    NoValue,
    /// The command is too long, or it takes too many steps to read.
    TooMuch(String),
}

impl fmt::Display for AliasError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AliasError::Format(reason) | AliasError::TooMuch(reason) => f.write_str(reason),
            AliasError::NoMatch(command, format) => {
                write!(f, "Command \"{command}\" doesn't match format string \"{format}\"")
            }
            AliasError::NoValue => f.write_str("No value supplied and no default value found."),
        }
    }
}

impl std::error::Error for AliasError {}

/// A placeholder with a default: the space before it, its name, and the default in one of four forms.
static OPTIONAL: LazyLock<Regex> = LazyLock::new(|| {
    syntax(r#"(?s)(\s*)\{\{\s*(\S+?)\s*=\s*(?:""|''|"(.+?)"|'(.+?)'|(\{.+?\})|(.+?))\s*\}\}"#)
});

/// A placeholder without a default: the space before it and its name.
static REQUIRED: LazyLock<Regex> = LazyLock::new(|| syntax(r"(\s*)\{\{\s*(\S+?)\s*\}\}"));

/// A further parameter in a command: its name, and its value in one of four forms.
static PAIR: LazyLock<Regex> = LazyLock::new(|| syntax(&format!("(?s){PAIR_SYNTAX}")));

/// The further parameters at the end of a command.
static PAIRS: LazyLock<Regex> = LazyLock::new(|| syntax(&format!(r"(?s)\A.*?((?:{PAIR_SYNTAX}\s*)*)\z")));

const PAIR_SYNTAX: &str = r#"(?:\A|\s+)\s*(\S+?)\s*=(?:""|''|"(.+?)"|'(.+?)'|(\{.+?\})|(\S+))"#;

/// The value of a placeholder: quoted, in braces, or as little as the rest of the format leaves.
const VALUE_SYNTAX: &str = r#"(?:(?<=').+?(?=')|(?<=").+?(?=")|\{.+?\}|.+?)"#;

fn syntax(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a test uses the pattern")
}

impl AliasFormat {
    /// Compiles a format.
    ///
    /// # Errors
    /// It is too long, or its regular expression is wrong.
    pub fn compile(source: &str) -> Result<AliasFormat, AliasError> {
        if source.len() > ALIAS_FORMAT_BYTES_MAX {
            let reason = format!("a format has at most {ALIAS_FORMAT_BYTES_MAX} bytes; use several formats");
            return Err(AliasError::Format(reason));
        }
        let defaults = OPTIONAL
            .captures_iter(source)
            .map(|found| (text(&found, 2).to_owned(), (3..=6).map(|form| text(&found, form)).collect()))
            .collect();
        check_names(source)?;
        let value = |found: &regex::Captures<'_>| {
            format!(r#"{}["']?(?P<{}>{VALUE_SYNTAX})["']?"#, text(found, 1), text(found, 2))
        };
        let pattern =
            OPTIONAL.replace_all(source, |found: &regex::Captures<'_>| format!("(?:{})?", value(found)));
        let pattern = REQUIRED.replace_all(&pattern, value);
        let found = anchors(&pattern);
        let begin = if found.begins { "" } else { r"^\s*" };
        let end = if found.ends { "" } else { r"\s*$" };
        let pattern = python_regex(&format!("(?s){begin}{pattern}{end}"), false)
            .map_err(|_| AliasError::Format(format!("format `{source}` is no regular expression")))?;
        Ok(AliasFormat { source: source.to_owned(), pattern, defaults })
    }

    /// The format as it is written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The parameters in a command.
    ///
    /// # Errors
    /// The command does not have this format, or it has no value.
    pub fn parameters(&self, command: &str) -> Result<Map, AliasError> {
        let command = Command::read(command)?;
        let found = self.pattern.captures(command.stream.as_str()).map_err(|_| self.too_much())?;
        let found = found.ok_or_else(|| AliasError::NoMatch(command.text.to_owned(), self.source.clone()))?;
        self.complete(&command, &found)
    }

    /// The parameters of each place in a command that has this format.
    ///
    /// # Errors
    /// A place has no value.
    pub fn all_parameters(&self, command: &str) -> Result<Vec<Map>, AliasError> {
        let command = Command::read(command)?;
        let found = self.pattern.captures_iter(command.stream.as_str());
        found.map(|found| self.complete(&command, &found.map_err(|_| self.too_much())?)).collect()
    }

    fn too_much(&self) -> AliasError {
        AliasError::TooMuch(format!("format `{}` takes too many steps to read the command", self.source))
    }

    /// The parameters of a place: its placeholders, their defaults, and the further parameters.
    fn complete(&self, command: &Command<'_>, found: &Captures<'_, str>) -> Result<Map, AliasError> {
        let mut parameters = Map::new();
        for name in self.pattern.capture_names().flatten() {
            parameters.insert(name, found.name(name).map(|value| value.as_str()));
        }
        for (name, default) in &self.defaults {
            let is_given =
                parameters.get(name).and_then(Value::as_str).is_some_and(|value| !value.is_empty());
            if !is_given {
                parameters.insert(name.as_str(), default.as_str());
            }
        }
        for (name, value) in &command.pairs {
            parameters.insert(name.as_str(), value.as_str());
        }
        let has_value = parameters.iter().any(|(_, value)| value.is_truthy());
        if !self.source.is_empty() && command.stream.trim().is_empty() && !has_value {
            return Err(AliasError::NoValue);
        }
        Ok(parameters)
    }
}

/// A command without the further parameters at its end.
struct Command<'a> {
    text: &'a str,
    stream: String,
    pairs: Vec<(String, String)>,
}

impl Command<'_> {
    fn read(text: &str) -> Result<Command<'_>, AliasError> {
        if text.len() > ALIAS_COMMAND_BYTES_MAX {
            let reason = format!("a command has at most {ALIAS_COMMAND_BYTES_MAX} bytes");
            return Err(AliasError::TooMuch(reason));
        }
        let found = PAIRS.captures(text);
        let ending = found.and_then(|found| found.get(1)).map_or("", |ending| ending.as_str());
        let pair = |found: regex::Captures<'_>| {
            (self::text(&found, 1).to_owned(), (2..=5).map(|form| self::text(&found, form)).collect())
        };
        let pairs = PAIR.captures_iter(ending).map(pair).collect();
        // As in StackStorm, the same text is removed at each of its places.
        let stream = if ending.is_empty() { text.to_owned() } else { text.replace(ending, "") };
        Ok(Command { text, stream: format!(" {stream} "), pairs })
    }
}

/// Checks that the placeholders are named, each by a name of its own.
fn check_names(source: &str) -> Result<(), AliasError> {
    let without_defaults = OPTIONAL.replace_all(source, "");
    let optional = OPTIONAL.captures_iter(source);
    let mut names = BTreeSet::new();
    for found in optional.chain(REQUIRED.captures_iter(&without_defaults)) {
        let name = text(&found, 2);
        let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_')
            && !name.starts_with(|c: char| c.is_numeric());
        let reason = match (is_name, names.insert(name.to_owned())) {
            (true, true) => continue,
            (true, false) => "is there twice; rename one",
            (false, _) => "is no name; use letters, digits and underscores",
        };
        return Err(AliasError::Format(format!("placeholder `{name}` of format `{source}` {reason}")));
    }
    Ok(())
}

fn text<'a>(found: &regex::Captures<'a>, group: usize) -> &'a str {
    found.get(group).map_or("", |part| part.as_str())
}
