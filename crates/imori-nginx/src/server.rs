//! A `server`: its locations as routes, also those in other locations.

use super::draft::{Action, Matcher, Route, Script};
use super::level::{Level, Own, Reader, Values};
use super::listen::Listen;
use super::location::{LocationContext, Path, Pattern};
use super::mruby::{Context, Phase};
use super::problem::{Note, Problems};
use super::proxy::Upstreams;
use super::syntax::Directive;
use super::template::Names;

/// A `server` that has been read.
pub(super) struct Server<'a> {
    pub(super) directive: &'a Directive,
    pub(super) level: Level<'a>,
    pub(super) values: Values,
    pub(super) own: Own<'a>,
    pub(super) listens: Vec<Listen>,
    /// The names that it lists; empty if it takes every host.
    pub(super) hosts: Vec<String>,
}

impl Server<'_> {
    /// The ports on which it listens, each once.
    pub(super) fn ports(&self) -> Vec<u16> {
        let mut ports: Vec<u16> = self.listens.iter().map(|listen| listen.port).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// Whether both listen on the same port.
    pub(super) fn shares_port(&self, other: &Server<'_>) -> bool {
        let ports = other.ports();
        self.ports().iter().any(|port| ports.contains(port))
    }
}

/// Makes the routes of a server.
pub(super) struct Routing<'a, 's, 'p> {
    pub(super) server: &'s Server<'a>,
    /// The `hosts` and `ports` of its routes.
    pub(super) hosts: &'s [String],
    pub(super) ports: &'s [u16],
    pub(super) names: &'s Names<'s>,
    pub(super) upstreams: &'s Upstreams,
    pub(super) problems: &'p mut Problems,
    pub(super) budget: &'p mut Budget,
}

/// How long the routes may still become.
#[derive(Debug)]
pub(super) struct Budget {
    left: usize,
    /// The line of the location for which there was too little left.
    pub(super) exceeded: Option<usize>,
}

impl Budget {
    pub(super) const fn new(bytes: usize) -> Budget {
        Budget { left: bytes, exceeded: None }
    }

    fn take(&mut self, line: usize, bytes: usize) -> bool {
        if self.exceeded.is_none() {
            match self.left.checked_sub(bytes) {
                Some(left) => self.left = left,
                None => self.exceeded = Some(line),
            }
        }
        self.exceeded.is_none()
    }
}

/// A `location` and its path, if it has one.
type Found<'a> = (&'a Directive, Path);

impl<'a, 's> Routing<'a, 's, '_> {
    /// All routes: regular expressions in locations first, because nginx tries those before the outer ones.
    pub(super) fn routes(mut self) -> Vec<Route> {
        let server = self.server;
        let mut routes = Routes::default();
        if let Some(respond) = server.own.respond {
            for location in &server.own.locations {
                let message =
                    format!("it is never reached after the server's `return` on line {}", respond.line);
                self.problems.add(location, message);
            }
            let own = Own { respond: Some(respond), ..Own::default() };
            let title = String::from("the server answers all requests");
            let place = self.rest(title, own);
            routes.outer.push(place.route(self.upstreams, self.problems));
            return routes.all();
        }
        let locations = self.paths(&server.own.locations);
        let has_rest =
            locations.iter().any(|(_, path)| matches!(path, Path::Prefix { text, .. } if text == "/"));
        let all: Vec<Path> = locations.iter().map(|(_, path)| path.clone()).collect();
        for (directive, path) in locations {
            self.location(directive, &path, &all, (server.level.clone(), None), &mut routes);
        }
        let level = &server.level;
        let answers = level.root.is_some()
            || [Phase::Rewrite, Phase::Access, Phase::Content]
                .iter()
                .any(|phase| level.scripts.contains_key(phase));
        if !has_rest && answers {
            let title = String::from("requests that no location takes");
            let place = self.rest(title, Own::default());
            routes.outer.push(place.route(self.upstreams, self.problems));
        }
        routes.all()
    }

    /// The requests that no location takes, which the server itself answers.
    fn rest(&self, title: String, own: Own<'a>) -> LocationContext<'a, 's> {
        let server = self.server;
        LocationContext {
            directive: server.directive,
            title,
            path: Path::Prefix { text: String::from("/"), is_before_regex: false },
            level: server.level.clone(),
            values: server.values.clone(),
            own,
            names: self.names.clone(),
            hosts: self.hosts,
            ports: self.ports,
        }
    }

    /// Reads the arguments of locations, and leaves out those that have no path or one that was there.
    fn paths(&mut self, locations: &[&'a Directive]) -> Vec<Found<'a>> {
        let mut found: Vec<Found<'a>> = Vec::new();
        for location in locations {
            match Path::read(&location.words) {
                Ok(path) => found.push((location, path)),
                Err(message) => self.problems.add(location, message),
            }
        }
        let mut known = std::collections::BTreeMap::new();
        found.retain(|(location, path)| {
            let key = (matches!(path, Path::Exact(_)), path.plain().map(String::from));
            let Some(_) = key.1 else { return true };
            let first = *known.entry(key).or_insert(location.line);
            if first != location.line {
                self.problems
                    .add(location, format!("line {first} has the same path; nginx refuses the second"));
            }
            first == location.line
        });
        found
    }

    /// Makes the routes of a location and of those in it. `siblings` are the paths beside it, `outer` what it has from
    /// around it and the path of the location there.
    fn location(
        &mut self,
        directive: &'a Directive,
        path: &Path,
        siblings: &[Path],
        outer: (Level<'a>, Option<&Path>),
        routes: &mut Routes,
    ) {
        let (level, parent) = outer;
        let hosts: usize = self.hosts.iter().map(String::len).sum();
        let scripts: usize = level.scripts.values().map(Script::bytes).sum();
        if !self.budget.take(directive.line, hosts + scripts + self.server.values.bytes()) {
            return;
        }
        let names = path.names(self.names);
        let values = self.server.values.clone();
        let reader = Reader::new((level, values), Context::Location, &names, self.problems);
        let (level, values, own) = reader.read(directive.block().iter());
        let inner = self.paths(&own.locations);
        let is_internal = own.is_internal;
        let place = LocationContext {
            directive,
            title: directive.summary(),
            path: path.clone(),
            level: level.clone(),
            values,
            own,
            names: names.clone(),
            hosts: self.hosts,
            ports: self.ports,
        };
        let route = place.route(self.upstreams, self.problems);
        let hidden = is_internal && is_below_others(path, siblings);
        let slash = with_slash(&route, siblings);
        let list = match (path, parent) {
            (Path::Regex(_), Some(_)) => &mut routes.inner_regexes,
            _ => &mut routes.outer,
        };
        let companion = hidden.then(|| refusal(&route)).or(slash);
        list.push(route);
        list.extend(companion);
        let all: Vec<Path> = inner.iter().map(|(_, path)| path.clone()).collect();
        for (directive, inner_path) in inner {
            match nested(path, inner_path, siblings) {
                Ok(inner_path) => {
                    self.location(directive, &inner_path, &all, (level.clone(), Some(path)), routes);
                }
                Err(message) => self.problems.add(directive, message),
            }
        }
    }
}

/// Routes of a server in two lists.
#[derive(Default)]
struct Routes {
    inner_regexes: Vec<Route>,
    outer: Vec<Route>,
}

impl Routes {
    fn all(mut self) -> Vec<Route> {
        self.inner_regexes.append(&mut self.outer);
        self.inner_regexes
    }
}

/// The path of a location in another one, as a route of its own matches it; the error says why there is none.
fn nested(outer: &Path, inner: Path, siblings: &[Path]) -> Result<Path, String> {
    let Path::Prefix { text: prefix, is_before_regex } = outer else {
        return Err(String::from(
            "a location within an exact path or a regular expression is left out; make it one of the server",
        ));
    };
    match inner {
        Path::Exact(text) if text.starts_with(prefix) => Ok(Path::Exact(text)),
        Path::Prefix { text, is_before_regex: is_own } if text.starts_with(prefix) => {
            let has_outer_regexes = siblings.iter().any(|sibling| matches!(sibling, Path::Regex(_)));
            if is_own && !is_before_regex && has_outer_regexes {
                return Err(String::from(
                    "`^~` within a location does not keep the server's regular expressions away; make it a location of the server",
                ));
            }
            Ok(Path::Prefix { text, is_before_regex: *is_before_regex || is_own })
        }
        Path::Exact(_) | Path::Prefix { .. } => {
            Err(format!("its path does not begin with `{prefix}`; nginx refuses it"))
        }
        Path::Regex(pattern) => {
            let is_longer = |sibling: &&Path| {
                sibling
                    .plain()
                    .is_some_and(|path| path.len() > prefix.len() && path.starts_with(prefix.as_str()))
            };
            if let Some(sibling) = siblings.iter().find(is_longer) {
                let path = sibling.plain().unwrap_or_default();
                return Err(format!(
                    "as a route it would also take requests of `{path}`; write that path into the regular expression's place"
                ));
            }
            within(prefix, &pattern.text).map(Path::Regex).ok_or_else(|| {
                format!(
                    "make it a location of the server, with a regular expression that begins with `^{prefix}`"
                )
            })
        }
    }
}

/// A regular expression for what `regex` finds in paths that begin with `prefix`.
fn within(prefix: &str, regex: &str) -> Option<Pattern> {
    let (flags, plain) = match regex.strip_prefix("(?i)") {
        Some(plain) => ("i", plain),
        None => ("", regex),
    };
    let escaped = regex::escape(prefix);
    if let Some(anchored) = plain.strip_prefix('^') {
        let begins = anchored.starts_with(&escaped) || anchored.starts_with(prefix);
        let is_within = begins && flags.is_empty() && !plain.contains('|');
        return is_within.then(|| Pattern::read(String::from(regex)).ok()).flatten();
    }
    // Another beginning of the text would never be found after the prefix.
    if plain.replace("[^", "").contains('^') || plain.contains("\\A") {
        return None;
    }
    let combined = match prefix.strip_suffix('/') {
        // The slash may be the last one of the prefix.
        Some(folder) if plain.starts_with('/') && !plain.contains('|') => {
            format!("^{}(?:/(?s:.*?))??(?{flags}:{plain})", regex::escape(folder))
        }
        _ => format!("^{escaped}(?s:.*?)(?{flags}:{plain})"),
    };
    Pattern::read(combined).ok()
}

/// Whether requests from outside to an internal location would reach another one.
fn is_below_others(path: &Path, siblings: &[Path]) -> bool {
    siblings.iter().any(|sibling| match (sibling, path.plain()) {
        (sibling, _) if sibling == path => false,
        (Path::Regex(_), _) | (_, None) => true,
        (Path::Prefix { text, .. }, Some(own)) => own.starts_with(text.as_str()),
        (Path::Exact(_), Some(_)) => false,
    })
}

/// A copy of an internal route that refuses requests from outside, as nginx does.
fn refusal(route: &Route) -> Route {
    Route {
        title: format!("{} from outside", route.title),
        is_internal: false,
        body_bytes: None,
        variables: Vec::new(),
        phases: Vec::new(),
        sets: Vec::new(),
        notes: Vec::new(),
        action: Action::Return { status: 404, location: None, body: None, headers: Vec::new() },
        ..route.clone()
    }
}

/// nginx redirects `/a` to `/a/` if that is the path of a proxy.
fn with_slash(route: &Route, siblings: &[Path]) -> Option<Route> {
    let (Action::Proxy { .. }, Matcher::Prefix { text, .. }, false) =
        (&route.action, &route.matcher, route.is_internal)
    else {
        return None;
    };
    let path = text.strip_suffix('/').filter(|path| !path.is_empty())?;
    if siblings.contains(&Path::Exact(String::from(path))) || path.contains(['{', '}']) {
        return None;
    }
    let location = Some(format!("{text}{{$is_args}}{{$args}}"));
    Some(Route {
        title: format!("{} without its slash", route.title),
        matcher: Matcher::Path(String::from(path)),
        action: Action::Return { status: 301, location, body: None, headers: Vec::new() },
        notes: vec![Note {
            line: route.line,
            text: String::from("nginx adds the slash that the path lacks"),
        }],
        ..refusal(route)
    })
}

#[cfg(test)]
mod tests {
    use super::within;

    #[test]
    fn regular_expressions_stay_within_their_prefix() {
        for (prefix, regex, path, expected) in [
            ("/a/", "\\.php$", "/a/x.php", Some(true)),
            ("/a/", "\\.php$", "/b/x.php", Some(false)),
            ("/a/", "/[0-9]+$", "/a/12", Some(true)),
            ("/a/", "/[0-9]+$", "/a/b/12", Some(true)),
            ("/a/", "/[0-9]+$", "/ab/12", Some(false)),
            ("/a", "/[0-9]+$", "/a/12", Some(true)),
            ("/a/", "(?i)\\.PHP$", "/a/x.php", Some(true)),
            ("/a/", "(?i)\\.PHP$", "/A/x.php", Some(false)),
            ("/a/", "^/a/[0-9]+$", "/a/1", Some(true)),
            ("/a/", "[^x]\\.js$", "/a/y.js", Some(true)),
            ("/a.b/", "^/a\\.b/x", "/a.b/x", Some(true)),
            ("/a/", "^/[a-z]/", "/a/", None),
            ("/a/", "x|^/b", "/a/x", None),
            ("/a/", "^/a/x|y", "/a/x", None),
        ] {
            let found =
                within(prefix, regex).map(|found| regex::Regex::new(&found.text).unwrap().is_match(path));
            assert_eq!(found, expected, "{prefix} {regex} {path}");
        }
    }
}
