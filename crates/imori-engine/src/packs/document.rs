//! Documents: YAML files of a pack as values, with the line of each key.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use imori_automation::value::Value;
use imori_automation::yaml::{Lines, load_with_lines};

use crate::limits::DOCUMENT_BYTES_MAX;

/// What is wrong with a file of a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackProblem {
    /// The file, relative to the folder of the pack; empty where a document came by the API.
    pub file: String,
    /// The line, counted from 1, where it is known.
    pub line: Option<usize>,
    /// What is wrong and what to do.
    pub message: String,
    /// Whether the file is left out.
    pub severity: Severity,
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// What the file describes is not registered.
    Error,
    /// It is registered, and may not do what its author meant.
    Warning,
}

impl PackProblem {
    /// An error of a whole file.
    pub fn of(file: impl Into<String>, message: impl Into<String>) -> PackProblem {
        PackProblem { file: file.into(), line: None, message: message.into(), severity: Severity::Error }
    }

    /// The same as a warning.
    #[must_use]
    pub fn as_warning(self) -> PackProblem {
        PackProblem { severity: Severity::Warning, ..self }
    }
}

impl fmt::Display for PackProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.file.is_empty(), self.line) {
            (true, _) => f.write_str(&self.message),
            (false, None) => write!(f, "{}: {}", self.file, self.message),
            (false, Some(line)) => write!(f, "{}:{line}: {}", self.file, self.message),
        }
    }
}

/// What a file describes with its warnings, or what is wrong with it.
pub type Read<T> = Result<(T, Vec<PackProblem>), Vec<PackProblem>>;

/// A value with the file and the lines that it was read from.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    file: String,
    value: Value,
    /// The lines of its nodes, if it is a file.
    lines: Option<Lines>,
}

impl Document {
    /// A document that is no file, as the API gets it.
    pub fn of(value: Value) -> Document {
        Document { file: String::new(), value, lines: None }
    }

    /// Its file, relative to the folder of the pack.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Its value.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The line of a node, or of the nearest node around it that is there.
    pub fn line(&self, path: &[&str]) -> Option<usize> {
        self.lines.as_ref().map(|lines| lines.nearest(path).line)
    }

    /// The same document with another value, whose nodes keep the lines of those that they had.
    #[must_use]
    pub fn with_value(self, value: Value) -> Document {
        Document { value, ..self }
    }

    /// An error at a node.
    pub fn problem(&self, path: &[&str], message: impl Into<String>) -> PackProblem {
        PackProblem { line: self.line(path), ..PackProblem::of(&self.file, message) }
    }
}

/// Reads a YAML file inside a folder. The path may not lead out of the folder, nor may a link.
///
/// # Errors
/// The file cannot be read, leaves the folder, is too large, or is no YAML.
pub fn read_document(folder: &Path, file: &str) -> Result<Document, PackProblem> {
    let path = path_inside(folder, file).map_err(|message| PackProblem::of(file, message))?;
    let text = read_text(&path, DOCUMENT_BYTES_MAX).map_err(|message| PackProblem::of(file, message))?;
    parse_document(file, &text)
}

/// Reads a YAML text; nothing in it is `null`.
///
/// # Errors
/// The text is no YAML as PyYAML reads it, or exceeds a limit.
pub fn parse_document(file: &str, text: &str) -> Result<Document, PackProblem> {
    match load_with_lines(text) {
        Ok((value, lines)) => Ok(Document { file: file.to_owned(), value, lines: Some(lines) }),
        Err(error) => {
            let line = Some(error.line).filter(|line| *line > 0);
            Err(PackProblem { line, ..PackProblem::of(file, error.message) })
        }
    }
}

/// The path of a file inside a folder.
///
/// # Errors
/// Says why: the path is absolute, has `..`, or leads out of the folder through a link.
pub fn path_inside(folder: &Path, file: &str) -> Result<PathBuf, String> {
    let is_plain = |part: Component| matches!(part, Component::Normal(_));
    if file.is_empty() || file.contains("//") || !Path::new(file).components().all(is_plain) {
        return Err(format!("path `{file}` leaves its folder; give it relative to the folder, without `..`"));
    }
    let path = folder.join(file);
    let is_inside = match (folder.canonicalize(), path.canonicalize()) {
        (Ok(folder), Ok(target)) => target.starts_with(folder),
        // What does not exist cannot be read, which is told where it is read.
        _ => true,
    };
    match is_inside {
        true => Ok(path),
        false => Err(format!("`{file}` is a link out of its folder; copy the file into the folder")),
    }
}

/// Reads a text file of at most this many bytes.
///
/// # Errors
/// Says why it cannot be read.
pub(crate) fn read_text(path: &Path, bytes_max: u64) -> Result<String, String> {
    let file = File::open(path).map_err(|error| format!("cannot be read: {error}"))?;
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err("is no file".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("has more than {bytes_max} bytes; shorten it"));
    }
    String::from_utf8(bytes).map_err(|_| "is no UTF-8; save it as UTF-8".to_owned())
}
