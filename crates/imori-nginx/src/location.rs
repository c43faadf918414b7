//! A `location` as a route.

use super::draft::{Action, Matcher, Route, Script, Source};
use super::known::Restriction;
use super::level::{Level, Own, Values, is_usual_type};
use super::limits::REGEX_BYTES_MAX;
use super::mruby::Phase;
use super::problem::{Note, Problems};
use super::proxy::{self, Upstreams};
use super::syntax::{Directive, one_line};
use super::template::{Names, template};

/// The requests that a `location` takes, as its arguments say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Path {
    Exact(String),
    Prefix { text: String, is_before_regex: bool },
    Regex(Pattern),
}

/// A regular expression that the gateway can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    /// Its text, with `(?i)` before it if case does not count.
    pub(super) text: String,
    groups: Vec<String>,
    group_count: usize,
}

impl Pattern {
    /// Reads a text; the error says why it is none.
    pub(super) fn read(text: String) -> Result<Pattern, String> {
        let regex = regex::RegexBuilder::new(&text).size_limit(REGEX_BYTES_MAX).build();
        let regex = regex.map_err(|error| reason(&error))?;
        let groups = regex.capture_names().flatten().map(String::from).collect();
        Ok(Pattern { text, groups, group_count: regex.captures_len() - 1 })
    }
}

impl Path {
    /// Reads the arguments of a `location`; the error says what is wrong with them.
    pub(super) fn read(words: &[String]) -> Result<Path, String> {
        let (modifier, path) = match words {
            [path] => split(path),
            [modifier, path] => (modifier.as_str(), path.as_str()),
            _ => return Err(String::from("it takes a modifier and a path, or a path alone")),
        };
        if matches!(modifier, "~" | "~*") {
            let regex = if modifier == "~*" { format!("(?i){path}") } else { String::from(path) };
            return Pattern::read(regex).map(Path::Regex).map_err(|reason| {
                format!(
                    "the gateway's regular expressions take linear time, without look-around and back-references: {reason}"
                )
            });
        }
        if path.starts_with('@') {
            return Err(String::from(
                "only `error_page` and `try_files` lead to a named location; give it a path and `internal`, and call it from a \
                 script",
            ));
        }
        if !path.starts_with('/') {
            return Err(format!(
                "no path of a request begins like `{}`; write a `/` before it",
                one_line(path)
            ));
        }
        let text = String::from(path);
        match modifier {
            "=" => Ok(Path::Exact(text)),
            "^~" => Ok(Path::Prefix { text, is_before_regex: true }),
            "" => Ok(Path::Prefix { text, is_before_regex: false }),
            other => {
                Err(format!("`{}` is no modifier; nginx knows `=`, `^~`, `~` and `~*`", one_line(other)))
            }
        }
    }

    /// The prefix or exact path.
    pub(super) fn plain(&self) -> Option<&str> {
        match self {
            Path::Exact(text) | Path::Prefix { text, .. } => Some(text),
            Path::Regex(_) => None,
        }
    }

    /// The names that values of this location may use.
    pub(super) fn names<'a>(&self, outer: &Names<'a>) -> Names<'a> {
        let mut names = outer.clone();
        if let Path::Regex(pattern) = self {
            names.groups.clone_from(&pattern.groups);
            names.group_count = pattern.group_count;
        }
        names
    }

    /// As a route matches it.
    pub(super) fn matcher(self) -> Matcher {
        match self {
            // A brace would begin a parameter.
            Path::Exact(text) if text.contains(['{', '}']) => {
                Matcher::Regex(format!("^{}$", regex::escape(&text)))
            }
            Path::Exact(text) => Matcher::Path(text),
            Path::Prefix { text, is_before_regex } => Matcher::Prefix { text, is_before_regex },
            Path::Regex(pattern) => Matcher::Regex(pattern.text),
        }
    }
}

/// nginx reads a modifier that stands right before the path, too.
fn split(path: &str) -> (&str, &str) {
    for modifier in ["^~", "~*", "~", "="] {
        if let Some(rest) = path.strip_prefix(modifier) {
            return (modifier, rest);
        }
    }
    ("", path)
}

/// The last line of an error of a regular expression says what is wrong.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next_back().unwrap_or_default();
    one_line(line.trim_start_matches("error: "))
}

/// What a location becomes a route with.
pub(super) struct LocationContext<'a, 'p> {
    /// The `location`, or the `server` for requests that no location takes.
    pub(super) directive: &'a Directive,
    /// What a comment calls it.
    pub(super) title: String,
    pub(super) path: Path,
    pub(super) level: Level<'a>,
    pub(super) values: Values,
    pub(super) own: Own<'a>,
    pub(super) names: Names<'p>,
    pub(super) hosts: &'p [String],
    pub(super) ports: &'p [u16],
}

impl LocationContext<'_, '_> {
    /// The route of this location. Where what answers its requests cannot be imported, or what restricts them, it refuses
    /// them, for another route might serve them to anybody (SECURITY ROOM-13).
    pub(super) fn route(self, upstreams: &Upstreams, problems: &mut Problems) -> Route {
        let mut notes = self.own.notes.clone();
        let action = self.action(upstreams, &mut notes, problems);
        let action = self.unless_restricted(action, &mut notes);
        self.unused(&action, &mut notes, problems);
        notes.sort_by_key(|note| note.line);
        let phases = [Phase::Rewrite, Phase::Access, Phase::HeaderFilter, Phase::BodyFilter, Phase::Log];
        let phases =
            phases.iter().filter_map(|phase| Some((phase.key(), self.level.scripts.get(phase)?.clone())));
        Route {
            line: self.directive.line,
            title: self.title,
            hosts: self.hosts.to_vec(),
            ports: self.ports.to_vec(),
            matcher: self.path.matcher(),
            is_internal: self.own.is_internal,
            body_bytes: self.level.body_bytes,
            variables: self.values.variables,
            phases: phases.collect(),
            sets: self.values.sets,
            action,
            notes,
        }
    }

    /// What answers, unless nothing does or a restriction was left out.
    fn unless_restricted(&self, action: Option<Action>, notes: &mut Vec<Note>) -> Action {
        // nginx answers by `return` before it looks who asks.
        let is_early = self.own.respond.is_some();
        let counts = |(kind, _): &&(Restriction, &Directive)| match kind {
            Restriction::Rewrite => true,
            Restriction::Content => matches!(action, Some(Action::Files { .. })),
            _ => !is_early,
        };
        let left_out: Vec<&Directive> =
            self.level.restrictions.iter().filter(counts).map(|(_, directive)| *directive).collect();
        for directive in &left_out {
            notes.push(Note {
                line: directive.line,
                text: format!("403 to every request, because this is not imported: {}", directive.summary()),
            });
        }
        match action {
            Some(action) if left_out.is_empty() => return action,
            Some(_) => {}
            None => notes.push(Note {
                line: self.directive.line,
                text: String::from("403 to every request, because what answers them is not imported"),
            }),
        }
        Action::Return { status: 403, location: None, body: None, headers: Vec::new() }
    }

    /// What answers: `return` before `proxy_pass` before a script before files, as in nginx. Code comes before the file
    /// of `mruby_add_handler`, and that before the one of `mruby_content_handler`.
    fn action(
        &self,
        upstreams: &Upstreams,
        notes: &mut Vec<Note>,
        problems: &mut Problems,
    ) -> Option<Action> {
        if let Some(respond) = self.own.respond {
            return self.respond(respond, notes, problems);
        }
        if let Some(proxy_pass) = self.own.proxy_pass {
            let prefix = match &self.path {
                Path::Prefix { text, .. } => Some(text.as_str()),
                Path::Exact(_) | Path::Regex(_) => None,
            };
            let target = proxy::target(proxy_pass, prefix, upstreams, &self.names, problems)?;
            notes.extend(target.note);
            let headers = proxy::headers(&self.level.proxy_headers, &self.names, notes, problems);
            return Some(Action::Proxy { to: target.to, timeout_ms: self.level.timeout_ms, headers });
        }
        let script = self.level.scripts.get(&Phase::Content);
        match (self.level.handler, script.filter(|script| matches!(script.source, Source::Code(_)))) {
            (Some(handler), None) => return self.handler(handler, problems),
            // ngx_mruby 2.6, ngx_http_mruby_content_handler: the code is asked before the file of the path.
            (Some(handler), Some(code)) => problems.add(
                handler,
                format!(
                    "the content script of line {} answers first, and nginx runs the file only if that script declines; \
                     the file is left out here, so join the two",
                    code.line
                ),
            ),
            (None, _) => {}
        }
        if let Some(script) = script {
            return Some(Action::Content(script.clone()));
        }
        if let Some(root) = self.level.root {
            return self.files(root, problems);
        }
        let has_scripts =
            [Phase::Rewrite, Phase::Access].iter().any(|phase| self.level.scripts.contains_key(phase));
        if has_scripts {
            notes.push(Note {
                line: self.directive.line,
                text: String::from("a request that no script answers gets 404"),
            });
        } else {
            problems.add(
                self.directive,
                "nothing answers its requests but files of nginx's own `html` folder, so that they get 404; add `root` or a script",
            );
        }
        Some(Action::Return { status: 404, location: None, body: None, headers: Vec::new() })
    }

    /// Tells about settings that this action has no use for.
    fn unused(&self, action: &Action, notes: &mut Vec<Note>, problems: &mut Problems) {
        let respond = self.own.respond.map(|_| "return");
        let first = respond.or(self.own.proxy_pass.map(|_| "proxy_pass"));
        let unreached =
            |answers: &str| format!("it is never reached, here and in nginx: `{answers}` answers first");
        if let (Some(proxy_pass), Some(answers)) = (self.own.proxy_pass, respond) {
            notes.push(Note::new(proxy_pass, &unreached(answers)));
        }
        let is_own =
            |directive: &Directive| self.directive.block().iter().any(|own| std::ptr::eq(own, directive));
        let handler = self.level.handler;
        if let (Some(handler), Some(answers)) = (handler.filter(|handler| is_own(handler)), first) {
            notes.push(Note::new(handler, &unreached(answers)));
        }
        if let Some(script) = self.level.scripts.get(&Phase::Content)
            && self.own.phases.contains(&Phase::Content)
        {
            let is_file = matches!(script.source, Source::File(_));
            let answers = first.or(handler.filter(|_| is_file).map(|_| "mruby_add_handler"));
            notes.extend(answers.map(|answers| Note {
                line: script.line,
                text: format!("the content script never runs, here and in nginx: `{answers}` answers first"),
            }));
        }
        let is_return = matches!(action, Action::Return { .. });
        if let Some(default_type) = self.level.default_type
            && !is_return
            && !is_usual_type(default_type.first())
        {
            problems.add(
                default_type,
                "only `return` keeps it; set `content_type` in the script, or in a header filter",
            );
        }
        if !is_return {
            for header in &self.level.added_headers {
                problems.add(
                    header,
                    "only `return` keeps it; set `headers_out` in `mruby_output_header_filter_code`",
                );
            }
        }
    }

    /// `return` with its status, text or URL.
    fn respond(
        &self,
        directive: &Directive,
        notes: &mut Vec<Note>,
        problems: &mut Problems,
    ) -> Option<Action> {
        let (status, text) = match directive.words.as_slice() {
            [url] if !url.starts_with(|char: char| char.is_ascii_digit()) => (302, Some(url)),
            [status] => (self.status(directive, status, problems)?, None),
            [status, text] => (self.status(directive, status, problems)?, Some(text)),
            _ => {
                problems.add(directive, "it takes a status and a text, or one of them");
                return None;
            }
        };
        let text = match text.map(|text| template(text, &self.names, &[])).transpose() {
            Ok(text) => text,
            Err(message) => {
                problems.add(directive, message);
                return None;
            }
        };
        let is_redirect = matches!(status, 301 | 302 | 303 | 307 | 308);
        let (location, body) = if is_redirect { (text, None) } else { (None, text) };
        let mut headers = Vec::new();
        if body.is_some() {
            let content_type = self.level.default_type.map_or("text/plain", Directive::first);
            if content_type != "text/plain" {
                headers.push((String::from("Content-Type"), String::from(content_type)));
            }
        }
        self.add_headers(status, &mut headers, notes, problems);
        Some(Action::Return { status, location, body, headers })
    }

    fn status(&self, directive: &Directive, status: &str, problems: &mut Problems) -> Option<u16> {
        match status.parse() {
            Ok(444) => {
                problems.add(
                    directive,
                    "the gateway closes no connection without an answer; the route answers 403",
                );
                Some(403)
            }
            Ok(status @ 200..=999) => Some(status),
            _ => {
                problems.add(directive, "its status is a number from 200 to 999");
                None
            }
        }
    }

    /// `add_header` of a `return`.
    fn add_headers(
        &self,
        status: u16,
        headers: &mut Vec<(String, String)>,
        notes: &mut Vec<Note>,
        problems: &mut Problems,
    ) {
        for directive in &self.level.added_headers {
            let (name, value, is_always) = match directive.words.as_slice() {
                [name, value] => (name, value, false),
                [name, value, always] if always == "always" => (name, value, true),
                _ => {
                    problems.add(directive, "it takes a name, a value, and `always` or nothing");
                    continue;
                }
            };
            // ngx_http_headers_module, add_header: without `always`, only these statuses have it.
            if !is_always && !matches!(status, 200 | 201 | 204 | 206 | 301 | 302 | 303 | 304 | 307 | 308) {
                notes.push(Note::new(
                    directive,
                    "a response with this status does not have it, in nginx neither",
                ));
                continue;
            }
            let is_plain =
                proxy::is_header_name(name) && !value.contains(['$', '\r', '\n', '\0']) && value.is_ascii();
            if !is_plain || value.contains(|char: char| char.is_control() && char != '\t') {
                problems.add(
                    directive,
                    "headers of a `return` are fixed texts; set `headers_out` in a header filter",
                );
                continue;
            }
            if headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
                problems.add(directive, "a `return` has each header once; join the values");
                continue;
            }
            headers.push((name.clone(), value.clone()));
        }
    }

    /// `mruby_add_handler`: of an exact path it is known which file answers.
    fn handler(&self, directive: &Directive, problems: &mut Problems) -> Option<Action> {
        let (Path::Exact(path), Some(root)) = (&self.path, self.level.root) else {
            problems.add(
                directive,
                "no request chooses the script that runs; make a `location = /name.rb` with `root` and `mruby_add_handler` for each",
            );
            return None;
        };
        let folder = self.folder(root, problems)?;
        let file = match root.name.as_str() {
            "alias" => folder,
            _ => format!("{}{path}", folder.trim_end_matches('/')),
        };
        Some(Action::Content(Script { source: Source::File(file), line: directive.line }))
    }

    fn files(&self, root: &Directive, problems: &mut Problems) -> Option<Action> {
        let is_alias = root.name == "alias";
        if is_alias && matches!(self.path, Path::Regex(_)) {
            problems.add(root, "with a regular expression the file comes from its groups; make it a `location` with a prefix");
            return None;
        }
        let folder = self.folder(root, problems)?;
        if is_alias && let Some(path) = self.path.plain() {
            // Otherwise `/i../x` would lead to a folder beside the alias; nginx serves it, the gateway does not.
            if path.ends_with('/') != folder.ends_with('/') {
                problems.add(root, "location and alias have to end both with `/`, or both without");
                return None;
            }
        }
        let mut index = Vec::new();
        for name in self.level.index.iter().flat_map(|directive| &directive.words) {
            match (self.level.index, name.contains(['/', '$'])) {
                (Some(directive), true) => problems.add(
                    directive,
                    format!(
                        "`{}` is left out; it takes names of files, without `/` and variables",
                        one_line(name)
                    ),
                ),
                _ => index.push(name.clone()),
            }
        }
        Some(Action::Files { root: folder, is_alias, index })
    }

    fn folder(&self, root: &Directive, problems: &mut Problems) -> Option<String> {
        match root.words.as_slice() {
            [folder] if folder.contains('$') => {
                problems.add(root, "a folder is a fixed text; make one route for each value of the variable");
                None
            }
            [folder] if folder.contains('\0') => {
                problems.add(root, "a path has no NUL");
                None
            }
            [folder] if folder.is_empty() => {
                problems.add(root, "it needs a folder");
                None
            }
            [folder] => Some(folder.clone()),
            _ => {
                problems.add(root, "it takes one folder");
                None
            }
        }
    }
}
