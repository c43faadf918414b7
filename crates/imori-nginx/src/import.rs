//! A whole file.

use std::collections::BTreeSet;

use super::draft::{Draft, Script};
use super::known::{self, Verdict};
use super::level::{Level, Reader, Values};
use super::limits::{FILE_BYTES_MAX, PLACES_MAX, ROUTES_BYTES_MAX};
use super::listen::{self, Listen};
use super::mruby::{self, Context, Meaning, Phase};
use super::problem::{Note, Problem, Problems};
use super::proxy::{self, Upstreams};
use super::server::{Budget, Routing, Server};
use super::syntax::{Body, Directive, parse};
use super::template::Names;
use super::text;

/// What a configuration of nginx became.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// The text of a routes file; empty if the configuration cannot be read.
    pub routes: String,
    /// Addresses for `listeners.http`.
    pub listeners: Vec<String>,
    /// What was left out, in the order of its lines.
    pub problems: Vec<Problem>,
}

/// Translates `text`, a configuration of nginx from the file of this name. The name is for comments only.
pub fn import(text: &str, file: &str) -> Imported {
    let fault = |line, message| Imported {
        problems: vec![Problem { line, directive: String::new(), message }],
        ..Imported::default()
    };
    if text.len() > FILE_BYTES_MAX {
        return fault(1, format!("the file has more than {FILE_BYTES_MAX} bytes; import parts of it"));
    }
    let tree = match parse(text) {
        Ok(tree) => tree,
        Err(error) => return fault(error.line, error.message),
    };
    if let Some(line) = one_too_many(&tree) {
        let message =
            format!("the file has more than {PLACES_MAX} servers and locations; import parts of it");
        return fault(line, message);
    }
    let mut problems = Problems::default();
    let mut budget = Budget::new(ROUTES_BYTES_MAX);
    let draft = draft(&tree, &mut budget, &mut problems);
    if let Some(line) = budget.exceeded {
        return fault(
            line,
            String::from("with this location the routes become too long; import parts of the file"),
        );
    }
    Imported { routes: text::write(&draft, file), listeners: draft.listeners, problems: problems.sorted() }
}

/// The line of the first server or location that is one too many.
fn one_too_many(tree: &[Directive]) -> Option<usize> {
    let mut count = 0;
    let mut waiting: Vec<&Directive> = tree.iter().rev().collect();
    while let Some(directive) = waiting.pop() {
        count +=
            usize::from(directive.has_block() && matches!(directive.name.as_str(), "server" | "location"));
        if count > PLACES_MAX {
            return Some(directive.line);
        }
        waiting.extend(directive.block().iter().rev());
    }
    None
}

fn draft(tree: &[Directive], budget: &mut Budget, problems: &mut Problems) -> Draft {
    let mut draft = Draft::default();
    let fragment;
    let http: Vec<&Directive> = if tree.iter().any(|directive| directive.name == "http") {
        main_level(tree, &mut draft.notes, problems)
    } else {
        fragment = Fragment::of(tree);
        fragment.http()
    };
    let defined = defined_variables(tree);
    let names = Names { defined: Some(&defined), ..Names::default() };
    let reader = Reader::new((Level::default(), Values::default()), Context::Http, &names, problems);
    let (level, values, own) = reader.read(http.into_iter());
    draft.notes.extend(own.notes.iter().cloned());
    let in_scripts = upstreams_in_scripts(tree);
    let mut upstreams = Upstreams::new();
    for upstream in &own.upstreams {
        proxy::upstream(upstream, &in_scripts, &mut upstreams, &mut draft.notes, problems);
    }
    let servers: Vec<Server<'_>> = own
        .servers
        .iter()
        .map(|server| {
            self::server(server, (level.clone(), values.clone()), &names, &mut draft.notes, problems)
        })
        .collect();
    addresses(&servers, &mut draft, problems);
    draft.scripts = global_scripts(&level, &servers, problems);
    for (server, hosts, ports) in placed(&servers, &mut draft.notes, problems) {
        let (names, upstreams) = (&names, &upstreams);
        let routing = Routing { server, hosts: &hosts, ports: &ports, names, upstreams, problems, budget };
        draft.routes.extend(routing.routes());
    }
    draft.notes.sort_by_key(|note| note.line);
    draft
}

/// Reads the directives around `http`, and returns those in it.
fn main_level<'a>(
    tree: &'a [Directive],
    notes: &mut Vec<Note>,
    problems: &mut Problems,
) -> Vec<&'a Directive> {
    let mut http = Vec::new();
    for directive in tree {
        let name = directive.name.as_str();
        match known::verdict(name, directive.first()) {
            _ if name == "http" => http.extend(directive.block()),
            _ if name == "load_module"
                && directive.words.iter().any(|word| word.contains("mruby") || word.contains("ndk")) =>
            {
                notes.push(Note::new(directive, "scripts need no module"));
            }
            Some(Verdict::Needless(reason)) => notes.push(Note::new(directive, reason)),
            Some(Verdict::Lost(hint) | Verdict::Restricts(_, hint)) => problems.add(directive, hint),
            None => problems.add(directive, "it does not belong outside of `http`; nginx refuses it here"),
        }
    }
    http
}

/// A file without `http`, as other files include it: what stands in `http`, or in a `server`.
struct Fragment<'a> {
    outside: Vec<&'a Directive>,
    server: Option<Directive>,
}

impl<'a> Fragment<'a> {
    fn of(tree: &'a [Directive]) -> Fragment<'a> {
        let has_locations = tree.iter().any(|directive| directive.name == "location");
        let is_outside = |directive: &&Directive| {
            let is_global = matches!(
                mruby::read(directive, Context::Http),
                Meaning::Script(Phase::Init | Phase::InitWorker | Phase::ExitWorker, _)
            );
            !has_locations
                || is_global && mruby::is_own(&directive.name)
                || matches!(directive.name.as_str(), "server" | "upstream")
        };
        let (outside, inside): (Vec<&Directive>, Vec<&Directive>) = tree.iter().partition(is_outside);
        let server = inside.first().map(|first| Directive {
            name: String::from("server"),
            words: Vec::new(),
            line: first.line,
            body: Body::Block(inside.iter().copied().cloned().collect()),
        });
        Fragment { outside, server }
    }

    fn http(&self) -> Vec<&Directive> {
        self.outside.iter().copied().chain(self.server.iter()).collect()
    }
}

/// All names of variables that the file defines, in whatever block: nginx knows them everywhere.
fn defined_variables(tree: &[Directive]) -> BTreeSet<String> {
    let mut defined = BTreeSet::new();
    let mut waiting: Vec<&Directive> = tree.iter().collect();
    while let Some(directive) = waiting.pop() {
        let is_set =
            matches!(directive.name.as_str(), "set" | "mruby_set" | "mruby_set_code" | "mruby_set_inline");
        let is_map = matches!(directive.name.as_str(), "map" | "geo" | "split_clients");
        // `map`, `geo` and `split_clients` name their variable last.
        let variable =
            if is_set { directive.words.first() } else { directive.words.last().filter(|_| is_map) };
        defined.extend(variable.and_then(|word| mruby::variable_name(word)).map(String::from));
        waiting.extend(directive.block());
    }
    defined
}

/// All strings of scripts that use `Nginx::Upstream`, among them the names of upstreams.
fn upstreams_in_scripts(tree: &[Directive]) -> BTreeSet<&str> {
    let mut strings = BTreeSet::new();
    let mut waiting: Vec<&Directive> = tree.iter().collect();
    while let Some(directive) = waiting.pop() {
        if mruby::is_own(&directive.name) {
            let codes = directive.words.iter().filter(|word| word.contains("Upstream"));
            strings.extend(codes.flat_map(|code| code.split(['"', '\''])));
        }
        waiting.extend(directive.block());
    }
    strings
}

fn server<'a>(
    directive: &'a Directive,
    outer: (Level<'a>, Values),
    names: &Names<'_>,
    notes: &mut Vec<Note>,
    problems: &mut Problems,
) -> Server<'a> {
    if !directive.words.is_empty() {
        problems.add(directive, "it takes a block and nothing before it");
    }
    let (level, values, mut own) =
        Reader::new(outer, Context::Server, names, problems).read(directive.block().iter());
    notes.append(&mut own.notes);
    let mut listens: Vec<Listen> =
        own.listens.iter().filter_map(|listen| Listen::read(listen, notes, problems)).collect();
    if own.listens.is_empty() {
        listens.push(Listen::default());
    }
    let hosts = listen::hosts(&own.names, problems);
    Server { directive, level, values, own, listens, hosts }
}

/// Collects the addresses; those with TLS belong to another listener.
fn addresses(servers: &[Server<'_>], draft: &mut Draft, problems: &mut Problems) {
    let mut known = BTreeSet::new();
    for server in servers {
        for listen in &server.listens {
            if !known.insert((listen.is_tls, listen.address.clone())) {
                continue;
            }
            if listen.is_tls {
                let at = server.own.listens.first().copied().unwrap_or(server.directive);
                problems.add(
                    at,
                    format!(
                        "add `{}` to `listeners.http_tls`, and set `tls.certificate` and `tls.key`",
                        listen.address
                    ),
                );
            } else {
                draft.listeners.push(listen.address.clone());
            }
        }
    }
}

/// The scripts that all servers share. One that only some servers have is a problem, because the gateway would run it for
/// all.
fn global_scripts(
    http: &Level<'_>,
    servers: &[Server<'_>],
    problems: &mut Problems,
) -> Vec<(&'static str, Script)> {
    let phases = [
        Phase::Init,
        Phase::InitWorker,
        Phase::ExitWorker,
        Phase::SslHandshake,
        Phase::PostRead,
        Phase::ServerRewrite,
    ];
    let mut scripts = Vec::new();
    for phase in phases {
        let of_servers: Vec<Option<&Script>> =
            servers.iter().map(|server| server.level.scripts.get(&phase)).collect();
        let first = of_servers.iter().flatten().next().copied().or_else(|| http.scripts.get(&phase));
        let Some(first) = first else { continue };
        let is_same = |script: &Option<&Script>| script.is_some_and(|script| script.source == first.source);
        // The handshake's script only matters where there is TLS.
        let is_shared = servers.iter().zip(&of_servers).all(|(server, script)| {
            is_same(script)
                || phase == Phase::SslHandshake && !server.listens.iter().any(|listen| listen.is_tls)
        });
        if is_shared {
            scripts.push((phase.key(), first.clone()));
            continue;
        }
        for (server, script) in servers.iter().zip(&of_servers) {
            let Some(script) = script else { continue };
            let directive = directive_at(server.directive, script.line);
            problems.add(
                directive,
                format!(
                    "`{}` of the gateway runs for all servers, and another server has none or another one; write one script that \
                     looks at `Nginx::Request.new.hostname`",
                    phase.key()
                ),
            );
        }
    }
    scripts
}

/// The directive of a server that begins on this line; the server itself if it is one of `http`.
fn directive_at(server: &Directive, line: usize) -> &Directive {
    let inner = server.block().iter().find(|inner| inner.line == line && mruby::is_own(&inner.name));
    inner.unwrap_or(server)
}

/// The servers with the hosts and ports of their routes, in the order in which the gateway has to look at them: those with
/// names before those with patterns before those that take every host.
fn placed<'s, 'a>(
    servers: &'s [Server<'a>],
    notes: &mut Vec<Note>,
    problems: &mut Problems,
) -> Vec<(&'s Server<'a>, Vec<String>, Vec<u16>)> {
    let mut all: Vec<u16> = servers.iter().flat_map(Server::ports).collect();
    all.sort_unstable();
    all.dedup();
    let mut placed = Vec::new();
    for (at, server) in servers.iter().enumerate() {
        let ports = server.ports();
        let others = |(other_at, other): &(usize, &Server<'_>)| *other_at != at && server.shares_port(other);
        let mut others = servers.iter().enumerate().filter(others).peekable();
        let is_alone = others.peek().is_none();
        let is_default = server.listens.iter().any(|listen| listen.is_default);
        let hosts = if is_alone || is_default { Vec::new() } else { server.hosts.clone() };
        if !is_alone && hosts.is_empty() && (!server.own.locations.is_empty()) {
            let has_long_paths = server.own.locations.iter().any(|location| location.words != ["/"]);
            if has_long_paths && server.own.respond.is_none() {
                problems.add(
                    server.directive,
                    "it takes every host, so that its locations also take requests for the hosts of other servers on this port; add \
                     `hosts` to their routes",
                );
            }
        }
        let is_first = !others
            .any(|(other_at, other)| other_at < at || other.listens.iter().any(|listen| listen.is_default));
        if !hosts.is_empty() && is_first {
            notes.push(Note {
                line: server.directive.line,
                text: String::from("nginx gives this server also the requests for hosts that no server names; here they get 404"),
            });
        }
        let ports = if ports == all { Vec::new() } else { ports };
        let order = match hosts.as_slice() {
            [] => 2,
            hosts => u8::from(hosts.iter().any(|host| host.starts_with('*'))),
        };
        placed.push((order, (server, hosts, ports)));
    }
    placed.sort_by_key(|(order, _)| *order);
    placed.into_iter().map(|(_, placed)| placed).collect()
}
