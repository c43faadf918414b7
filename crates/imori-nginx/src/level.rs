//! The directives of one block, `http`, `server` or `location`, and what it has from the block around it.

use std::collections::{BTreeMap, BTreeSet};

use super::amounts;
use super::draft::Script;
use super::known::{self, Restriction, Verdict};
use super::limits::VARIABLES_MAX;
use super::mruby::{self, Context, Meaning, Phase};
use super::problem::{Note, Problems};
use super::syntax::{Directive, one_line};
use super::template::{Names, template};

/// What a block gives to the blocks in it.
#[derive(Debug, Clone, Default)]
pub(super) struct Level<'a> {
    /// `root` or `alias`.
    pub(super) root: Option<&'a Directive>,
    pub(super) index: Option<&'a Directive>,
    pub(super) body_bytes: Option<u64>,
    pub(super) timeout_ms: Option<u64>,
    /// `proxy_set_header`; those of an inner block replace all of an outer one.
    pub(super) proxy_headers: Vec<&'a Directive>,
    /// `add_header`, likewise.
    pub(super) added_headers: Vec<&'a Directive>,
    pub(super) default_type: Option<&'a Directive>,
    pub(super) handler: Option<&'a Directive>,
    pub(super) scripts: BTreeMap<Phase, Script>,
    /// Directives that restricted access and have no translation.
    pub(super) restrictions: Vec<(Restriction, &'a Directive)>,
}

/// Variables that a block sets for each request. A location has those of its server, and not those of a location around
/// it.
#[derive(Debug, Clone, Default)]
pub(super) struct Values {
    /// Names and templates.
    pub(super) variables: Vec<(String, String)>,
    pub(super) sets: Vec<(String, Script)>,
}

impl Values {
    /// The bytes of their texts.
    pub(super) fn bytes(&self) -> usize {
        let variables = self.variables.iter().map(|(name, value)| name.len() + value.len());
        variables.sum::<usize>()
            + self.sets.iter().map(|(name, script)| name.len() + script.bytes()).sum::<usize>()
    }
}

/// What a block keeps for itself.
#[derive(Debug, Default)]
pub(super) struct Own<'a> {
    pub(super) listens: Vec<&'a Directive>,
    pub(super) names: Vec<&'a Directive>,
    pub(super) servers: Vec<&'a Directive>,
    pub(super) upstreams: Vec<&'a Directive>,
    pub(super) locations: Vec<&'a Directive>,
    pub(super) proxy_pass: Option<&'a Directive>,
    pub(super) respond: Option<&'a Directive>,
    pub(super) is_internal: bool,
    pub(super) notes: Vec<Note>,
    /// Phases whose script stands in this block.
    pub(super) phases: BTreeSet<Phase>,
}

/// Reads the directives of a block.
pub(super) struct Reader<'a, 'p> {
    pub(super) level: Level<'a>,
    pub(super) values: Values,
    pub(super) own: Own<'a>,
    context: Context,
    names: &'p Names<'p>,
    problems: &'p mut Problems,
    given: BTreeSet<&'a str>,
    /// Kinds of restrictions that this block has.
    restricted: BTreeSet<Restriction>,
}

impl<'a, 'p> Reader<'a, 'p> {
    pub(super) fn new(
        (level, values): (Level<'a>, Values),
        context: Context,
        names: &'p Names<'p>,
        problems: &'p mut Problems,
    ) -> Reader<'a, 'p> {
        Reader {
            level,
            values,
            own: Own::default(),
            context,
            names,
            problems,
            given: BTreeSet::new(),
            restricted: BTreeSet::new(),
        }
    }

    /// Reads all directives, and returns what the block gives to others and keeps.
    pub(super) fn read(
        mut self,
        directives: impl Iterator<Item = &'a Directive>,
    ) -> (Level<'a>, Values, Own<'a>) {
        for directive in directives {
            self.directive(directive);
        }
        (self.level, self.values, self.own)
    }

    fn directive(&mut self, directive: &'a Directive) {
        match (directive.name.as_str(), self.context) {
            ("server", Context::Http) => self.own.servers.push(directive),
            ("upstream", Context::Http) => self.own.upstreams.push(directive),
            ("location", Context::Server | Context::Location) => self.own.locations.push(directive),
            ("listen", Context::Server) => self.own.listens.push(directive),
            ("server_name", Context::Server) => self.own.names.push(directive),
            ("proxy_pass", Context::Location) => {
                if self.is_first(directive) {
                    self.own.proxy_pass = Some(directive);
                }
            }
            ("internal", Context::Location) => self.own.is_internal = true,
            ("return", Context::Server | Context::Location) => match self.own.respond {
                Some(before) => {
                    let message = format!("it is never reached after the `return` on line {}", before.line);
                    self.problems.add(directive, message);
                }
                None => self.own.respond = Some(directive),
            },
            ("set", Context::Server | Context::Location) => self.set(directive),
            ("alias", Context::Location) | ("root", _) => {
                // nginx takes either of them, once.
                if self.has_argument(directive) && self.is_first_of("root", directive) {
                    self.level.root = Some(directive);
                }
            }
            ("index", _) => {
                if self.has_argument(directive) {
                    self.level.index = Some(directive);
                }
            }
            ("proxy_set_header", _) => {
                if self.given.insert("proxy_set_header") {
                    self.level.proxy_headers.clear();
                }
                self.level.proxy_headers.push(directive);
            }
            ("add_header", _) => {
                if self.given.insert("add_header") {
                    self.level.added_headers.clear();
                }
                self.level.added_headers.push(directive);
            }
            ("proxy_read_timeout", _) => {
                if self.is_first(directive) {
                    self.timeout(directive);
                }
            }
            ("client_max_body_size", _) => {
                if self.is_first(directive) {
                    self.body_size(directive);
                }
            }
            ("default_type", _) => {
                if self.has_argument(directive) && self.is_first(directive) {
                    self.level.default_type = Some(directive);
                    if is_usual_type(directive.first()) {
                        let reason =
                            "scripts and files set their types themselves, and a `return` has this one";
                        self.own.notes.push(Note::new(directive, reason));
                    }
                }
            }
            ("types", _) => self.types(directive),
            ("include", _) => self.include(directive),
            (name, context) if mruby::is_own(name) => self.mruby(directive, context),
            (name @ ("server" | "upstream"), _) => {
                self.problems.add(directive, format!("`{name}` belongs in `http`; nginx refuses it here"));
            }
            ("listen" | "server_name", _) => {
                self.problems.add(directive, "it belongs in `server`; nginx refuses it here");
            }
            ("location" | "return" | "set", _) => {
                self.problems.add(directive, "it belongs in `server` or `location`; nginx refuses it here");
            }
            ("proxy_pass" | "internal" | "alias", _) => {
                self.problems.add(directive, "it belongs in `location`; nginx refuses it here");
            }
            _ => self.other(directive),
        }
    }

    /// Notes a restriction that is left out: what the block is for refuses every request. Those of the same kind around
    /// the block count no longer.
    fn restrict(&mut self, kind: Restriction, directive: &'a Directive) {
        self.forget_outer(kind);
        self.level.restrictions.push((kind, directive));
    }

    fn forget_outer(&mut self, kind: Restriction) {
        // What has run before the inner block is chosen cannot be taken back there.
        if kind != Restriction::Rewrite && self.restricted.insert(kind) {
            self.level.restrictions.retain(|(known, _)| *known != kind);
        }
    }

    fn is_first(&mut self, directive: &'a Directive) -> bool {
        self.is_first_of(directive.name.as_str(), directive)
    }

    fn is_first_of(&mut self, key: &'a str, directive: &Directive) -> bool {
        let is_first = self.given.insert(key);
        if !is_first {
            self.problems.add(directive, "nginx takes it once in a block; this one is left out");
        }
        is_first
    }

    fn has_argument(&mut self, directive: &Directive) -> bool {
        if directive.words.is_empty() || directive.has_block() {
            self.problems.add(directive, "it needs a value and `;`");
            return false;
        }
        true
    }

    fn set(&mut self, directive: &Directive) {
        let [variable, value] = directive.words.as_slice() else {
            self.problems.add(directive, "it takes a variable and a value");
            return;
        };
        let Some(name) = mruby::variable_name(variable) else {
            self.problems.add(directive, "the name of a variable begins with `$`");
            return;
        };
        if let Some((later, _)) = self.values.sets.iter().find(|(later, _)| uses(value, later)) {
            let message = format!(
                "`${later}` is computed by a script, and routes set their variables before that; set it in the script"
            );
            self.problems.add(directive, message);
            return;
        }
        match template(value, self.names, &self.values.variables) {
            Ok(_) if self.values.variables.len() + self.values.sets.len() >= VARIABLES_MAX => {
                self.problems.add(directive, format!("a route has at most {VARIABLES_MAX} variables"));
            }
            Ok(template) => {
                self.values.variables.retain(|(known, _)| known != name);
                self.values.variables.push((String::from(name), template));
            }
            Err(message) => self.problems.add(directive, message),
        }
    }

    fn timeout(&mut self, directive: &Directive) {
        match amounts::milliseconds(&directive.words.join(" ")) {
            Some(0) | None => self.problems.add(directive, "it takes a time above 0, as `30s` or `500ms`"),
            Some(timeout_ms) => self.level.timeout_ms = Some(timeout_ms),
        }
    }

    fn body_size(&mut self, directive: &Directive) {
        match directive.words.as_slice() {
            [size] => match amounts::bytes(size) {
                Some(0) => self.problems.add(
                    directive,
                    "every body has a limit; set `body_bytes` in the route's `limits` to the largest that you expect",
                ),
                Some(bytes) if i64::try_from(bytes).is_ok() => self.level.body_bytes = Some(bytes),
                _ => self.problems.add(directive, format!("`{size}` is no size; write it as `10m`")),
            },
            _ => self.problems.add(directive, "it takes one size, as `10m`"),
        }
    }

    fn types(&mut self, directive: &Directive) {
        for entry in directive.block() {
            for extension in &entry.words {
                let known = mime_guess::from_ext(extension).first_raw();
                if known != Some(entry.name.as_str()) {
                    let (extension, known) =
                        (one_line(extension), known.unwrap_or("application/octet-stream"));
                    let message = format!(
                        "files with `.{extension}` are sent as `{known}`; set `content_type` in a header filter"
                    );
                    self.problems.add(entry, message);
                }
            }
        }
        self.own.notes.push(Note::new(directive, "the gateway has a table of types of its own"));
    }

    fn include(&mut self, directive: &Directive) {
        let file = directive.first().rsplit('/').next().unwrap_or_default();
        match file {
            "mime.types" => {
                self.own.notes.push(Note::new(directive, "the gateway has a table of types of its own"));
            }
            _ => self
                .problems
                .add(directive, "other files are not read; put their text here, or import them one by one"),
        }
    }

    fn mruby(&mut self, directive: &'a Directive, context: Context) {
        match mruby::read(directive, context) {
            Meaning::Script(phase, script) => {
                if !self.own.phases.insert(phase) {
                    self.problems.add(
                        directive,
                        format!("this block has a script for `{}` already; join the two", phase.key()),
                    );
                    self.restrict_by_script(directive);
                    return;
                }
                if phase == Phase::Access {
                    self.forget_outer(Restriction::Access);
                }
                let kind = std::mem::discriminant(&script.source);
                if let Some(outer) = self.level.scripts.insert(phase, script)
                    && std::mem::discriminant(&outer.source) != kind
                {
                    let line = outer.line;
                    let message = format!(
                        "nginx also runs the script of line {line}, which is left out here; join the two"
                    );
                    self.problems.add(directive, message);
                    self.restrict_by_script(directive);
                }
            }
            Meaning::Set(..) if self.values.variables.len() + self.values.sets.len() >= VARIABLES_MAX => {
                self.problems.add(directive, format!("a route has at most {VARIABLES_MAX} variables"));
            }
            Meaning::Set(name, script) => {
                self.values.sets.retain(|(known, _)| *known != name);
                self.values.sets.push((name, script));
            }
            Meaning::Handler(is_on) => {
                if self.is_first(directive) {
                    self.level.handler = is_on.then_some(directive);
                }
            }
            Meaning::Needless(reason) => self.own.notes.push(Note::new(directive, reason)),
            Meaning::Problem(message) => {
                self.problems.add(directive, message);
                self.restrict_by_script(directive);
                self.restrict_by_content(directive);
            }
        }
    }

    /// A script that is left out may have been what refuses a request.
    fn restrict_by_script(&mut self, directive: &'a Directive) {
        let kinds = [
            ("rewrite", Restriction::Rewrite),
            ("post_read", Restriction::Rewrite),
            ("access", Restriction::Access),
        ];
        if let Some((_, kind)) = kinds.iter().find(|(part, _)| directive.name.contains(part)) {
            self.level.restrictions.push((*kind, directive));
        }
    }

    /// A script that is left out may have kept its own text from being served as a file.
    fn restrict_by_content(&mut self, directive: &'a Directive) {
        if directive.name.contains("content") || directive.name.contains("add_handler") {
            self.level.restrictions.push((Restriction::Content, directive));
        }
    }

    fn other(&mut self, directive: &'a Directive) {
        if let Some(kind) = known::taken_back(&directive.name, directive.first()) {
            self.forget_outer(kind);
        }
        let verdict = match known::verdict(&directive.name, directive.first()) {
            Some(Verdict::Lost(hint)) if directive.name == "if" && refuses(directive) => {
                Some(Verdict::Restricts(Restriction::Rewrite, hint))
            }
            verdict => verdict,
        };
        match verdict {
            Some(Verdict::Needless(reason)) => self.own.notes.push(Note::new(directive, reason)),
            Some(Verdict::Lost(hint)) => self.problems.add(directive, hint),
            Some(Verdict::Restricts(kind, hint)) => {
                self.problems.add(directive, format!("{hint}; until then its routes answer 403"));
                self.restrict(kind, directive);
            }
            None => self.problems.add(
                directive,
                "the import does not know this directive; if a script can do what it does, write one",
            ),
        }
    }
}

/// Whether an `if` refuses requests that meet its condition.
fn refuses(directive: &Directive) -> bool {
    directive.block().iter().any(|inner| match inner.name.as_str() {
        "return" => inner.first().starts_with('4'),
        "deny" => true,
        _ => refuses(inner),
    })
}

/// Whether a default type makes no difference but for `return`.
pub(super) fn is_usual_type(text: &str) -> bool {
    matches!(text, "text/plain" | "text/html" | "application/octet-stream")
}

/// Whether a value has `$name` or `${name}` in it.
fn uses(value: &str, name: &str) -> bool {
    value.match_indices('$').any(|(at, _)| {
        let rest = value.get(at + 1..).unwrap_or_default();
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        let is_end = |rest: &str| !rest.starts_with(|char: char| char.is_ascii_alphanumeric() || char == '_');
        rest.strip_prefix(name).is_some_and(is_end)
    })
}
