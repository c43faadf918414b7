//! The problems of a configuration, each with its location.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use imori_core::name::Printable;
use imori_server::config::without_password;

use super::nearest::{nearest_key, nearest_section};

/// The prefix of our environment variables.
pub(super) const PREFIX: &str = "IMORI__";

/// The largest number of characters of a wrong value to show.
const SHOWN_CHARS_MAX: usize = 60;

/// The place where a value was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    /// Line and column of a file, counted from 1.
    File { path: PathBuf, line: usize, column: usize },
    /// An environment variable.
    Variable(String),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Location::Variable(name) => write!(f, "environment variable `{name}`"),
        }
    }
}

/// A problem with its location and remedy, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem(String);

impl Problem {
    pub(super) fn unreadable(path: &Path, error: &io::Error) -> Problem {
        Problem(format!("{}: cannot be read: {error}", path.display()))
    }

    pub(super) fn syntax(location: &Location, message: &str) -> Problem {
        Problem(format!("{location}: not TOML: {}", message.replace('\n', ", ")))
    }

    pub(super) fn not_in_a_section(location: &Location, key: &str) -> Problem {
        let hint = match nearest_section(key) {
            Some(section) if section == key => format!("`{key}` is a section; write `[{key}]`"),
            _ => format!("key `{}` stands outside of a section", printable(key)),
        };
        Problem(format!("{location}: {hint}"))
    }

    pub(super) fn unknown_section(location: &Location, section: &str) -> Problem {
        let hint = match nearest_section(section) {
            Some(nearest) => format!("; did you mean `[{nearest}]`?"),
            None => String::from("; `imori config show --sample` prints them all"),
        };
        Problem(format!("{location}: unknown section `[{}]`{hint}", printable(section)))
    }

    pub(super) fn unknown_key(location: &Location, section: &str, key: &str) -> Problem {
        let hint = match (nearest_key(section, key), location) {
            (Some((section, key)), Location::Variable(_)) => {
                format!("; did you mean `{}`?", variable(section, key))
            }
            (Some((section, key)), _) => format!("; did you mean `{section}.{key}`?"),
            (None, _) => String::from("; `imori config show --sample` prints them all"),
        };
        let dotted = format!("{section}.{key}");
        Problem(format!("{location}: unknown key `{}`{hint}", printable(dotted.trim_end_matches('.'))))
    }

    pub(super) fn refused(
        location: &Location,
        section: &str,
        key: &str,
        shown: &str,
        expected: &str,
    ) -> Problem {
        let shown = shortened(&without_password(shown));
        Problem(format!("{location}: `{section}.{key}` is `{shown}`; expected {expected}"))
    }

    /// A problem that concerns several keys, one of which was set at `place`.
    pub(super) fn of_keys(place: Option<&Location>, what: &dyn fmt::Display) -> Problem {
        Problem(place.map_or_else(|| what.to_string(), |place| format!("{place}: {what}")))
    }

    pub(super) fn not_text(location: &Location) -> Problem {
        Problem(format!("{location}: the value is not UTF-8"))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// All problems, in the order of the sources.
#[derive(Debug, PartialEq, Eq)]
pub struct Problems(pub(crate) Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(Problem::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl Error for Problems {}

/// The environment variable that sets this key.
fn variable(section: &str, key: &str) -> String {
    format!("{PREFIX}{section}__{key}").to_uppercase()
}

fn printable(text: &str) -> String {
    Printable(text.as_bytes()).to_string()
}

/// The start of the text, on one line.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", printable(text.get(..end).unwrap_or_default())),
        None => printable(text),
    }
}
