//! Routes as the import builds them, before they become text.

use std::rc::Rc;

use super::problem::Note;

/// A script, and the line of its directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) source: Source,
    pub(super) line: usize,
}

/// Where the Ruby of a script is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// In the configuration, as nginx gives it to mruby.
    Code(Rc<str>),
    /// In a file.
    File(String),
}

impl Script {
    /// The bytes of its text or path.
    pub(super) fn bytes(&self) -> usize {
        match &self.source {
            Source::Code(code) => code.len(),
            Source::File(path) => path.len(),
        }
    }
}

/// The requests that a route takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Matcher {
    /// `location = path`.
    Path(String),
    /// `location prefix` or, before all regular expressions, `location ^~ prefix`.
    Prefix { text: String, is_before_regex: bool },
    /// `location ~ regex`.
    Regex(String),
}

/// What a route does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// A script answers.
    Content(Script),
    /// An upstream server answers.
    Proxy { to: String, timeout_ms: Option<u64>, headers: Vec<(String, String)> },
    /// Files answer.
    Files { root: String, is_alias: bool, index: Vec<String> },
    /// The route answers itself.
    Return { status: u16, location: Option<String>, body: Option<String>, headers: Vec<(String, String)> },
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) line: usize,
    /// The directive that it comes from.
    pub(super) title: String,
    pub(super) hosts: Vec<String>,
    pub(super) ports: Vec<u16>,
    pub(super) matcher: Matcher,
    pub(super) is_internal: bool,
    pub(super) body_bytes: Option<u64>,
    /// Names and templates, in the order of their directives.
    pub(super) variables: Vec<(String, String)>,
    /// Keys and scripts of phases, in the order of the phases.
    pub(super) phases: Vec<(&'static str, Script)>,
    /// Variables that a script computes.
    pub(super) sets: Vec<(String, Script)>,
    pub(super) action: Action,
    pub(super) notes: Vec<Note>,
}

/// All that becomes the text.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// Keys of `[scripts]` and their scripts.
    pub(super) scripts: Vec<(&'static str, Script)>,
    pub(super) routes: Vec<Route>,
    /// Notes on the file as a whole.
    pub(super) notes: Vec<Note>,
    /// Addresses to listen on, each once.
    pub(super) listeners: Vec<String>,
}
